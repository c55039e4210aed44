"""Parse timestamps of launchers, loggers and kernels into seconds since the epoch.

A timestamp without a zone is read as UTC. glog writes no year, so the caller gives it; since torch 2.4 its nine
fractional digits come from another clock than its seconds, so they are dropped. Kernel timestamps since boot are not
wall-clock times and give None.
"""

from __future__ import annotations

import datetime
import functools
import re
from collections.abc import Mapping

ISO = (
    r"(?P<Y>\d{4})[-/](?P<M>\d\d)[-/](?P<D>\d\d)[ T_-](?P<h>\d\d):(?P<m>\d\d):(?P<s>\d\d)"
    r"(?:[.,:](?P<f>\d{1,9})(?:\.\d{3})?)?(?P<z>Z|[+-]\d\d:?\d\d)?"
)
GLOG = r"[IWEFCD](?P<Y>\d{4})?(?P<M>\d{1,2})(?P<D>\d\d) (?P<h>\d\d):(?P<m>\d\d):(?P<s>\d\d)\.\d+"
SYSLOG = (
    r"(?P<mon>Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) +(?P<D>\d{1,2}) "
    r"(?P<h>\d\d):(?P<m>\d\d):(?P<s>\d\d)(?: (?P<Y>\d{4}))?"
)
TIME = r"(?P<h>\d\d):(?P<m>\d\d):(?P<s>\d\d)"
# Timestamps of container runtimes: Go writes up to nine digits without zeros at the end, GitHub's runner seven.
NANO = rf"(?P<Y>\d{{4}})-(?P<M>\d\d)-(?P<D>\d\d)T{TIME}\.(?P<f>\d{{7,9}})(?P<z>Z)"
CTIME = rf"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) {SYSLOG}"
_FIRST_DAY = datetime.date(1970, 1, 1).toordinal()
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def epoch_seconds(match: re.Match[str], year: int) -> float | None:
    """Return the seconds since the epoch of a match of ISO, GLOG or SYSLOG; None for a date that does not exist."""
    return seconds_of_parts(match.groupdict(), year)


def seconds_of_parts(parts: Mapping[str, str], year: int) -> float | None:
    """Return the same from the groups of a match."""
    whole = _whole_seconds(parts, year)
    return None if whole is None else add_fraction(whole, parts.get("f"), parts.get("z"))


@functools.lru_cache(1 << 12)  # all ranks write at the same seconds
def whole_seconds(names: tuple[str, ...], texts: tuple[str, ...], year: int) -> int | None:
    """Return the same from some groups by their names, without the fraction and the zone."""
    return _whole_seconds(dict(zip(names, texts, strict=True)), year)


def add_fraction(whole: int, fraction: str | None, zone: str | None) -> float:
    """Return the time of whole seconds with the digits of their fraction and a zone, if there are any."""
    return whole + (float(f"0.{fraction}") if fraction else 0.0) - _zone_offset(zone)


def _whole_seconds(parts: Mapping[str, str], year: int) -> int | None:
    month = int(parts["M"]) if parts.get("M") else _MONTHS.index(parts["mon"]) + 1
    midnight = _start_of_day(int(parts.get("Y") or year), month, int(parts["D"]))
    hour, minute, second = int(parts["h"]), int(parts["m"]), int(parts["s"])
    if midnight is None or hour > 23 or minute > 59 or second > 60:
        return None
    return midnight + 3600 * hour + 60 * minute + second


@functools.lru_cache(1 << 10)
def _start_of_day(year: int, month: int, day: int) -> int | None:
    try:
        day_number = datetime.date(year, month, day).toordinal() - _FIRST_DAY
    except ValueError:
        return None
    return 86400 * day_number if day_number >= 0 else None


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
