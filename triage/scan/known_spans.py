"""What an earlier scan found in the first spans of a plain file, so that they need not be read again."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any

from triage.base.lazy_dataclass import dataclass
from triage.scan.interface import SPAN
from triage.scan.lines import HitGroups, add_groups, groups_from_rows, groups_to_rows
from triage.sources.opened_file import OpenedFile

_LINE_REACH = 1 << 16


@dataclass(frozen=True, slots=True)
class KnownSpans:
    """The hits of the lines that start in some spans of one file that follow each other.

    `digests` has the digest of the bytes of each span, `sampled` counts the bytes that were only sampled.
    """

    digests: tuple[str, ...] = ()
    sampled: int = 0
    groups: HitGroups = field(default_factory=dict)

    def to_row(self) -> list[Any]:
        """Return the spans in a form that JSON can carry."""
        return [self.digests, self.sampled, groups_to_rows(self.groups)]


def spans_from_row(row: Sequence[Any]) -> KnownSpans:
    """Return the spans that `to_row` wrote."""
    digests, sampled, groups = row
    return KnownSpans(tuple(digests), sampled, groups_from_rows(groups))


@dataclass(frozen=True, slots=True)
class FileSpans:
    """All spans of a scanned file: those that keep their hits when it grows, and the rest of it."""

    complete: KnownSpans
    rest: KnownSpans


FindKnownSpans = Callable[[str, int], FileSpans | None]
"""Returns what is known of the file at this path with this size; None if nothing is."""


def count_complete_spans(file: OpenedFile, size: int) -> int:
    """Return how many spans at the start of a file of this size keep their hits when it grows.

    The line that the end of the last one cuts must have its newline, else it grows too.
    """
    count = size // SPAN
    while count and b"\n" not in file.read_at(min(_LINE_REACH, size - count * SPAN + 1), count * SPAN - 1):
        count -= 1
    return count


def divide_spans(parts: Sequence[KnownSpans], count: int) -> FileSpans | None:
    """Return the parts of a file with its first `count` spans apart; None if these end inside a part."""
    ends = [0, *itertools.accumulate(len(part.digests) for part in parts)]
    if count not in ends:
        return None
    # Empty parts stand on either side of the border.
    border = ends.index(count)
    return FileSpans(merge_parts(parts[:border]), merge_parts(parts[border:]))


class SpanMerger:
    """Merges spans of one file that follow each other, one by one."""

    def __init__(self) -> None:
        self.digests: list[str] = []
        self._sampled = 0
        self._groups: HitGroups = {}

    def add(self, part: KnownSpans) -> None:
        """Add the next part. Where kinds of hits are left out, it counts as sampled."""
        self.digests += part.digests
        is_cut = add_groups(self._groups, part.groups)
        self._sampled += max(part.sampled, SPAN * is_cut)

    def result(self) -> KnownSpans:
        """Return all parts as one."""
        return KnownSpans(tuple(self.digests), self._sampled, self._groups)


def merge_parts(parts: Sequence[KnownSpans]) -> KnownSpans:
    """Return the parts, which follow each other, as one."""
    if len(parts) == 1:
        return parts[0]
    merger = SpanMerger()
    for part in parts:
        merger.add(part)
    return merger.result()
