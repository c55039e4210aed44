"""The time of a line without a timestamp: that of the nearest line before it by its writer."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable

from triage.ranks.file_names import parse_file_name
from triage.ranks.grammar import Table
from triage.ranks.prefix import may_have_time
from triage.records.text import Line, Text

STAMP_REACH = 1 << 12
"""So many bytes before a line are searched."""
_NEAR_STAMPS = 8
_LONGEST_ASKED = 1 << 11
# Bytes of a line that is decoded to another text: NUL, and the colours of a terminal or a paste.
_CHANGED_BY_DECODING = (b"\0", b"\x1b", b"[0m", b"[39m")


def find_time_before(text: Text, line: Line) -> float | None:
    """Return the timestamp of the nearest line before it by the same writer or rank: the block is not older."""
    own = line.parsed
    outermost = own.writer[: own.writer.find("]:") + 2] if "]:" in own.writer else own.writer
    rank = own.origin.rank
    for before in _lines_with_time(text, line, line.start_of(outermost)):
        other = before.parsed
        if other.origin.time is not None and (
            other.writer == own.writer or (rank is not None and other.origin.rank == rank)
        ):
            return other.origin.time
    # The program's logger may write another prefix than `[rank3]: `.
    ranks = {rank, None} if rank is not None and parse_file_name(text.name).rank == rank else {rank}
    near = itertools.islice(text.lines_before(line.offset, STAMP_REACH), _NEAR_STAMPS) if rank is not None else ()
    for before in near:
        if before.parsed.origin.time is not None and before.parsed.origin.rank in ranks:
            return before.parsed.origin.time
    return None


def _lines_with_time(text: Text, line: Line, start: bytes) -> Iterable[Line]:
    """Return the lines near before one that begin with `start` and may have a time, nearest first.

    Where it has no writer, those of writers do not count.
    """
    least = max(0, line.offset - STAMP_REACH)
    places = text.places_from(least, line.offset - least) if not start else None
    if places is None:
        return text.lines_before(line.offset, STAMP_REACH, start)
    is_of_writer = bool(line.parsed.writer) or line.parsed.origin.rank is not None
    table = text.layout.table
    may_count = {mask: _may_have_time(mask, table, is_of_writer) for mask in {place[1] for place in places}}
    return map(text.line_at, [place for place in reversed(places) if may_count[place[1]]])


@functools.lru_cache(1 << 12)
def _may_have_time(mask: bytes, table: Table, is_of_writer: bool) -> bool:
    if len(mask) > _LONGEST_ASKED or not mask.isascii() or any(sign in mask for sign in _CHANGED_BY_DECODING):
        return True
    has_stamp, has_writer = may_have_time(mask, table)
    return has_stamp and (is_of_writer or not has_writer)
