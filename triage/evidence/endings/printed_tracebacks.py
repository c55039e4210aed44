"""The lines of Python's tracebacks among physical lines, behind whatever stands before each of them.

Every rank prints the same frames when it loses its peers, so their shapes repeat; they are no usual output.
"""

from __future__ import annotations

from collections.abc import Sequence

_HEADER = b"Traceback (most recent call last)"
_INDENT = b"  "
# So many bytes before the header stand before each line of a traceback, as `]: ` or `": "`.
_END_OF_PREFIX = 2
_MOST_LINES = 400
_TABLE, _RULE, _RULES_OF_TABLE = b"ChildFailedError", b"=" * 20, 2


def find_traceback_lines(lines: Sequence[bytes]) -> frozenset[int]:
    """Return the indices of the lines from the header of a traceback to its exception, without those of other writers
    in between.
    """
    inside: set[int] = set()
    for index, line in enumerate(lines):
        start = line.find(_HEADER)
        if start > 0:
            inside.add(index)
            inside.update(_following(lines, index, start))
    return frozenset(inside)


def _following(lines: Sequence[bytes], header: int, start: int) -> list[int]:
    """Return the indices of the frames below a header at `start` in its line, of the exception below them, and of the
    table that torchelastic's agent prints there.
    """
    below: list[int] = []
    end_of_prefix = slice(max(0, start - _END_OF_PREFIX), start)
    rules_left = 0
    for index in range(header + 1, min(len(lines), header + _MOST_LINES)):
        line = lines[index]
        if line[end_of_prefix] != lines[header][end_of_prefix] or not line[start:]:
            continue
        below.append(index)
        if rules_left:
            rules_left -= line.startswith(_RULE, start)
            if not rules_left:
                break
        elif not line.startswith(_INDENT, start):
            if _TABLE not in line:
                break
            rules_left = _RULES_OF_TABLE
    return below
