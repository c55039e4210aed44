"""The year of timestamps that have none."""

from __future__ import annotations

import time
from collections.abc import Sequence

from triage.base.lazy_re import lazy_re
from triage.model import Source
from triage.scan.interface import ScanResult

_MONTH = rb"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_YEAR = lazy_re(
    rb"\b(20\d\d)(?:-\d\d-\d\d|/\d\d/\d\d)|\b" + _MONTH + rb" [ \d]\d \d\d:\d\d:\d\d (?:[A-Z]{3,4} )?(20\d\d)\b|"
    rb"\b\d\d? " + _MONTH + rb" (20\d\d)\b"
)
_DIGITS = lazy_re(rb"20\d\d")
_BUILD = lazy_re(rb"(?i)kernel module|\bSMP\b|\bbuil[dt]\b|\bcompiled\b|\breleased?\b")
_LONGEST = 32  # of a date and time around its year


def guess_year(scanned: Sequence[tuple[Source, ScanResult]]) -> int:
    """Return the year for timestamps without one: the first that any source states, else that of the newest file."""
    for _, scan in scanned:
        for data in (scan.head, scan.tail):
            if (year := _find_year(data)) is not None:
                return year
    newest = max((source.mtime for source, _ in scanned if source.mtime), default=0.0)
    return time.gmtime(newest).tm_year


def _find_year(data: bytes) -> int | None:
    """Return the first year but that of a build; the pattern is slow, so it is asked only around what may be one."""
    for digits in _DIGITS.finditer(data):
        for match in _YEAR.finditer(data, max(0, digits.start() - _LONGEST), digits.end() + _LONGEST):
            if digits.start() not in (match.start(1), match.start(2), match.start(3)):
                continue
            line_start = data.rfind(b"\n", 0, match.start()) + 1
            if not _BUILD.search(data, line_start, match.start()):
                return int(digits.group())
    return None
