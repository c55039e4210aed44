"""Lines by which a program ends: it says with which code, or a logger whose fatal level ends the process wrote them.

They are the last lines of their writer, wherever others went on to write.
"""

from __future__ import annotations

from triage.base.lazy_re import lazy_re
from triage.scan.interface import ScanResult

_HINTS = (b"exiting with ", b'"fatal"')
_EXIT = lazy_re(
    rb"\bexiting with (?:exit )?(?:code|status) [1-9]\d{0,9}\W{0,3}$|\"(?:level|lvl|severity)\" ?: ?\"fatal\""
)
_LONGEST = 2000
_MOST = 64


def find_stated_exits(scan: ScanResult) -> list[int]:
    """Return the offsets of such lines in the end of a source, the first ones."""
    if not any(hint in scan.tail for hint in _HINTS):
        return []
    offsets, start = list[int](), scan.size - len(scan.tail)
    for line in scan.tail.split(b"\n"):
        if any(hint in line for hint in _HINTS) and len(line) <= _LONGEST and _EXIT.search(line) is not None:
            offsets.append(start)
            if len(offsets) == _MOST:
                break
        start += len(line) + 1
    return offsets
