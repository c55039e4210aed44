"""The ends of programs further back than the last lines: ranks that share a file say the same, each in its line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from triage.base.lazy_re import lazy_re
from triage.ranks.layouts import Layout
from triage.records.activity import SEARCHED_BYTES, Activity, read_activity
from triage.records.completion import FINISHED, HINT, read_completion

BYTES_PER_WRITER = 1 << 13
"""So much before the last lines is searched for an end for each writer: all may print warnings after their end."""
_MOST_SEARCHED, _MOST_HINTS = 1 << 21, 2000
_CHUNK = 1 << 20
_MOST = 1 << 14
_LETTERS = lazy_re(r"[A-Za-z]+")
_GAP = rb"[^A-Za-z\n]{0,24}"
_LONGEST = 4096  # bytes of a line, with its log wrapper


def find_last_end(
    read: Callable[[int, int], bytes], tail_start: int, writers: int, year: int, layout: Layout
) -> list[Activity]:
    """Return the last line before `tail_start` by which a program says that it ended, if there is one.

    What many writers print after it may fill the last lines.
    """
    start = max(0, tail_start - min(_MOST_SEARCHED, writers * BYTES_PER_WRITER))
    data = read(start, tail_start - start)
    first = data.find(b"\n") + 1 if start else 0
    places = sorted({data.rfind(b"\n", 0, match.start()) + 1 for match in HINT.finditer(data, first)}, reverse=True)
    for place in places[:_MOST_HINTS]:
        line = data[place:].split(b"\n", 1)[0]
        if len(line) <= _LONGEST and read_completion(line.decode("utf-8", "replace"))[0] == "program":
            activity = read_activity(line, start + place, year, layout, whole=True, by_prefix=True)
            if ends := [each for each in activity if each.end_text]:
                return ends
    return []


def find_earlier_ends(
    read: Callable[[int, int], bytes], size: int, last: Sequence[Activity], year: int, layout: Layout
) -> list[Activity]:
    """Return the other lines that say the same end as those of the `last` lines in which a program says that it ended.

    The last SEARCHED_BYTES are searched. Returns them in file order.
    """
    ends = {each.end_text for each in last if each.end_text}
    patterns = {_pattern_of(match[0]) for end in ends if (match := FINISHED.search(end))}
    if not patterns:
        return []
    known = {each.offset for each in last}
    others: list[Activity] = []
    for offset, line in find_lines_backwards(read, size, re.compile(b"|".join(sorted(patterns)))):
        activity = read_activity(line, offset, year, layout, whole=True, by_prefix=True)
        others += [each for each in activity if each.end_text in ends and each.offset not in known]
        if len(others) >= _MOST:
            break
    return others[::-1]


def _pattern_of(phrase: str) -> bytes:
    """Return a pattern of the words of a phrase, with any numbers and signs between them."""
    return _GAP.join(part.encode() for part in _LETTERS.findall(phrase))


def find_lines_backwards(
    read: Callable[[int, int], bytes], size: int, pattern: re.Pattern[bytes]
) -> Iterator[tuple[int, bytes]]:
    """Yield (offset, line) of the lines in the last SEARCHED_BYTES that a pattern matches, the last one first."""
    stop = max(0, size - SEARCHED_BYTES)
    while size > stop:
        start = max(stop, size - _CHUNK)
        data = read(start, size - start)
        cut = (data.find(b"\n") + 1 or len(data)) if start else 0  # the line that is cut is read with the chunk before
        places = {data.rfind(b"\n", 0, match.start()) + 1 for match in pattern.finditer(data, cut)}
        for place in sorted(places, reverse=True):
            line = data[place:].split(b"\n", 1)[0]
            if len(line) <= _LONGEST:
                yield start + place, line
        size = start + cut if start > stop and cut < len(data) else start
