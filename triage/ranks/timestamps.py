"""Parse timestamps of launchers, loggers and kernels into seconds since the epoch.

A timestamp without a zone is read as UTC. glog writes no year, so the caller gives it; since torch 2.4 its nine
fractional digits come from another clock than its seconds, so they are dropped. Kernel timestamps since boot are not
wall-clock times and give None.
"""

from __future__ import annotations

import calendar
import re

ISO = (
    r"(?P<Y>\d{4})[-/](?P<M>\d\d)[-/](?P<D>\d\d)[ T_-](?P<h>\d\d):(?P<m>\d\d):(?P<s>\d\d)"
    r"(?:[.,:](?P<f>\d{1,9})(?:\.\d{3})?)?(?P<z>Z|[+-]\d\d:?\d\d)?"
)
GLOG = r"[IWEFCD](?P<M>\d{1,2})(?P<D>\d\d) (?P<h>\d\d):(?P<m>\d\d):(?P<s>\d\d)\.\d+"
SYSLOG = (
    r"(?P<mon>Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) +(?P<D>\d{1,2}) "
    r"(?P<h>\d\d):(?P<m>\d\d):(?P<s>\d\d)(?: (?P<Y>\d{4}))?"
)
TIME = r"(?P<h>\d\d):(?P<m>\d\d):(?P<s>\d\d)"
# Timestamps of container runtimes: Go writes up to nine digits without zeros at the end, GitHub's runner seven.
NANO = rf"(?P<Y>\d{{4}})-(?P<M>\d\d)-(?P<D>\d\d)T{TIME}\.(?P<f>\d{{7,9}})(?P<z>Z)"
CTIME = rf"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) {SYSLOG}"
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def epoch_seconds(match: re.Match[str], year: int) -> float | None:
    """Return the seconds since the epoch of a match of ISO, GLOG or SYSLOG; None for a date that does not exist."""
    parts = match.groupdict()
    month = int(parts["M"]) if parts.get("M") else _MONTHS.index(parts["mon"]) + 1
    stamp = (int(parts.get("Y") or year), month, int(parts["D"]), int(parts["h"]), int(parts["m"]), int(parts["s"]))
    if not (
        1 <= stamp[1] <= 12
        and 1 <= stamp[2] <= 31
        and stamp[3] < 24
        and stamp[4] < 60
        and stamp[5] <= 60
        and stamp[0] >= 1970
    ):
        return None
    if stamp[2] > 28 and stamp[2] > calendar.monthrange(stamp[0], month)[1]:
        return None
    return calendar.timegm(stamp) + (float(f"0.{parts['f']}") if parts.get("f") else 0.0) - _zone_offset(parts.get("z"))


def _zone_offset(text: str | None) -> int:
    if not text or text == "Z":
        return 0
    digits = text[1:].replace(":", "")
    offset = int(digits[:2]) * 3600 + int(digits[2:]) * 60
    return -offset if text[0] == "-" else offset


def match_time_zone(local: float, zoned: float) -> float:
    """Return `local`, without a zone, in the zone of `zoned` of the same line; `zoned` for lines 5 minutes late."""
    shift = round((zoned - local) / 900) * 900  # zones differ by quarters of an hour
    return local + shift if abs(zoned - local - shift) <= 300 else zoned
