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


def guess_year(scanned: Sequence[tuple[Source, ScanResult]]) -> int:
    """Return the year for timestamps without one: the first that any source states, else that of the newest file."""
    for _, scan in scanned:
        for data in (scan.head, scan.tail):
            match = _YEAR.search(data) if b"20" in data else None  # the pattern is slow
            if match is not None:
                return int(next(filter(None, match.groups())))
    newest = max((source.mtime for source, _ in scanned if source.mtime), default=0.0)
    return time.gmtime(newest).tm_year
