"""Turn literal matches into hit lines, and limit how many of one kind are returned.

A `Collector` gets the lines of one span in order. Hit lines with the same literals and the same writer are of one kind.
It examines hit lines until `SPAN_LINES` of them repeated a kind, or there are too many kinds, and samples the rest.
Of each kind it returns the first and the last few lines and counts the others.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from typing import Any

from triage.scan.interface import (
    CELL,
    FILE_KINDS,
    KEEP_PER_END,
    KEEP_PER_END_ALIKE,
    MAX_LINE,
    MORE_KINDS,
    OVERLAP,
    SLICE,
    SPAN,
    SPAN_KINDS,
    SPAN_LINES,
    WRITER_BYTES,
    Hit,
    LiteralMatcher,
    PossibleMatch,
    WriterKey,
)


class HitGroup:
    """The first and the last `limit_per_end` hits of one kind, and how many lines there were."""

    __slots__ = ("count", "first", "last", "limit_per_end")

    def __init__(self, limit_per_end: int) -> None:
        self.count = 0
        self.limit_per_end = limit_per_end
        self.first: list[tuple[int, int, tuple[int, ...]]] = []
        self.last: Collection[tuple[int, int, tuple[int, ...]]] = ()  # most groups have one line, and a deque is large

    def add(self, start: int, end: int, literals: tuple[int, ...], omitted: int = 0) -> None:
        """Add a line, or one that stands for itself and `omitted` others."""
        self.count += 1 + omitted
        if len(self.first) < self.limit_per_end:
            self.first.append((start, end, literals))
            return
        if not isinstance(self.last, deque):
            self.last = deque(maxlen=self.limit_per_end)
        self.last.append((start, end, literals))

    def hits(self) -> list[Hit]:
        """Return the hits in order; the last of the first ones counts those that are left out."""
        hits = [Hit(*line) for line in (*self.first, *self.last)]
        omitted = self.count - len(hits)
        if omitted:
            end = hits[len(self.first) - 1]
            hits[len(self.first) - 1] = Hit(end.start, end.end, end.literals, omitted)
        return hits


# After so many lines without any literal of their windows a span is searched for whole literals.
MAX_MISSES = 1000

HitGroups = dict[tuple[tuple[int, ...], bytes], HitGroup]
"""Hit lines by their literals and their writer."""


class Collector:
    """Collect the hit lines of one span; `feed` must get whole lines in ascending order."""

    def __init__(self, matcher: LiteralMatcher, writer: WriterKey, generic: frozenset[int] = frozenset()) -> None:
        self.matcher = matcher
        self.writer = writer
        self.generic = generic
        self.groups: HitGroups = {}
        self._lines = 0  # of the span that repeat a kind
        self._kinds: set[tuple[tuple[int, ...], bytes]] = set()  # of the span
        self._most_kinds = SPAN_KINDS
        self.sampled = 0
        self.touched_cells: set[int] | None = None  # the cells of the hits, where the caller wants them
        self._misses = 0  # lines with a window that contain no literal
        self._span = -1
        self._slice = -1
        self._sampled_literals: set[int] = set()

    def feed(self, data: bytearray, base: int, stop: int, line_start: int, overlap: int = 0) -> None:
        """Search `data[:stop]`; `base` is the absolute offset of `data[0]`.

        `line_start` is the absolute start of the first line. It lies before the data when an overlong line is fed in
        pieces; then `data[:overlap]` is the end of the piece before.
        """
        start = self._feed_pieces(data, base, line_start - base, overlap, stop) if line_start < base else 0
        while start < stop:
            self._enter_span(base + start)
            finish = _line_end(data, (self._span + 1) * SPAN - base, stop)
            overlong = _find_overlong(data, start, finish)
            self._feed_lines(data, base, start, overlong)
            start = finish if overlong == finish else self._feed_pieces(data, base, overlong, overlong, finish)

    def _enter_span(self, position: int) -> None:
        if position // SPAN != self._span:
            self._span, self._lines, self._misses = position // SPAN, 0, 0
            self._kinds.clear()
            self._most_kinds = min(SPAN_KINDS, limit_new_kinds(self.groups))

    def _is_full(self) -> bool:
        """Whether the rest of the span is only sampled."""
        return self._lines >= SPAN_LINES or len(self._kinds) >= self._most_kinds

    def _feed_lines(self, data: bytearray, base: int, start: int, stop: int) -> None:
        while start < stop and not self._is_full():
            limit = 4 * (SPAN_LINES - self._lines) + 64
            matches = self.matcher.find(data, start, stop, limit, exact=self._misses > MAX_MISSES)
            start = self._add_matches(data, base, stop, matches, len(matches) >= limit)
        while start < stop:
            start = self._sample_slice(data, base, start, stop)

    def _add_matches(self, data: bytearray, base: int, stop: int, matches: list[PossibleMatch], was_cut: bool) -> int:
        """Add the lines around `matches` that contain literals, in order; return where to continue.

        `was_cut`: the search stopped at its limit, so the last line may have more matches.
        """
        lines: list[tuple[int, int, Collection[int]]] = []
        finish = 0
        for end, literals in matches:
            if end > finish:
                begin, finish = _line_bounds(data, end, stop)
            else:
                _, _, candidates = lines.pop()
                literals = literals if candidates is literals else {*candidates, *literals}
            lines.append((begin, finish, literals))
        literals_in, add = self.matcher.literals_in, self._add
        for begin, end, candidates in lines:
            literals_here = literals_in(bytes(data[begin:end]), None if was_cut and end == finish else candidates)
            if literals_here:
                add(data, base, begin, end, literals_here)
                if self._is_full():
                    return min(end + 1, stop)
            else:
                self._misses += 1
        return min(finish + 1, stop) if was_cut else stop

    def _sample_slice(self, data: bytearray, base: int, start: int, stop: int) -> int:
        """Add the first line of each literal among the lines that begin in one slice of the file."""
        number = (base + start) // SLICE
        if number != self._slice:
            self._slice, self._sampled_literals = number, set()
        finish = _line_end(data, (number + 1) * SLICE - base, stop)
        first_matches = self.matcher.find_first(data, start, finish)
        candidates = [literal for _, literal in first_matches]
        for end, literal in first_matches:
            if literal not in self._sampled_literals:
                begin, line_end = _line_bounds(data, end, finish)
                literals = self.matcher.literals_in(bytes(data[begin:line_end]), candidates)
                self._sampled_literals.update(literals)
                self._add(data, base, begin, line_end, literals)
        self.sampled += finish - start
        return finish

    def _feed_pieces(self, data: bytearray, base: int, line_start: int, start: int, stop: int) -> int:
        """Search the overlong line that begins at `line_start` (may be before the data) in pieces, from `start` on.

        Returns where the next line begins. Pieces are counted from the start of their line and searched one by one, so
        that neither the chunk nor the engine moves them. Each reaches back by OVERLAP: a literal that the border cuts
        is whole in the later piece.
        """
        finish = data.find(b"\n", start, stop)
        finish = stop if finish < 0 else finish
        while start < finish:
            end = min(start + MAX_LINE, finish)
            begin = start - OVERLAP if start > line_start else start
            literals = tuple(sorted(literal for _, literal in self.matcher.find_first(data, begin, end)))
            if literals:
                self._add(data, base, begin, end, literals)
            start = end
        return min(finish + 1, stop)

    def _add(self, data: bytearray, base: int, begin: int, finish: int, literals: tuple[int, ...]) -> None:
        kind = (literals, self.writer(bytes(data[begin : min(finish, begin + WRITER_BYTES)])))
        if kind in self._kinds:
            self._lines += 1
        else:
            self._kinds.add(kind)
        group = self.groups.get(kind)
        if group is None:
            are_alike = kind[1] and not self.generic.issuperset(literals)
            group = self.groups[kind] = HitGroup(KEEP_PER_END_ALIKE if are_alike else KEEP_PER_END)
        group.add(base + begin, base + finish, literals)
        if self.touched_cells is not None:
            self.touched_cells.update(((base + begin) // CELL, (base + finish) // CELL))


def _line_end(data: bytearray, edge: int, stop: int) -> int:
    """Return the end of the last line that starts before `edge`, at most `stop`."""
    return stop if edge >= stop else data.find(b"\n", edge - 1, stop) + 1 or stop


def _find_overlong(data: bytearray, start: int, stop: int) -> int:
    """Return where the first line longer than MAX_LINE starts in `data[start:stop]`, or `stop`."""
    while stop - start > MAX_LINE:
        newline = data.rfind(b"\n", start, start + MAX_LINE + 1)
        if newline < 0:
            return start
        start = newline + 1
    return stop


def _line_bounds(data: bytearray, end: int, stop: int) -> tuple[int, int]:
    """Return start and end (without newline) of the line that contains the byte before `end`."""
    begin = data.rfind(b"\n", 0, end) + 1
    finish = data.find(b"\n", end - 1, stop)
    return begin, stop if finish < 0 else finish


def groups_to_rows(groups: HitGroups) -> list[Any]:
    """Return the groups in a form that JSON can carry."""
    return [
        [
            literals,
            writer.decode("latin-1"),
            group.limit_per_end,
            [[hit.start, hit.end, hit.omitted] for hit in group.hits()],
        ]
        for (literals, writer), group in groups.items()
    ]


def groups_from_rows(rows: list[Any]) -> HitGroups:
    """Return the groups that `groups_to_rows` wrote."""
    groups: HitGroups = {}
    for literals, writer, limit_per_end, hits in rows:
        kind = tuple(literals), writer.encode("latin-1")
        group = groups[kind] = HitGroup(limit_per_end)
        for start, end, omitted in hits:
            group.add(start, end, kind[0], omitted)
    return groups


def limit_new_kinds(groups: HitGroups) -> int:
    """Return how many kinds the next span may add to a file that has these already."""
    return max(MORE_KINDS, FILE_KINDS - len(groups))


def add_groups(whole: HitGroups, groups: HitGroups) -> bool:
    """Add the groups of the next span to those of the spans before, which may be merged already; return whether some
    were left out.
    """
    most = len(whole) + limit_new_kinds(whole) if whole else len(groups)
    is_cut = False
    for kind, group in groups.items():
        target = whole.get(kind)
        if target is None:
            if len(whole) >= most:
                is_cut = True
                continue
            target = whole[kind] = HitGroup(group.limit_per_end)
        for hit in group.hits():
            target.add(hit.start, hit.end, hit.literals, hit.omitted)
    return is_cut


def list_hits(groups: HitGroups) -> tuple[tuple[Hit, ...], int]:
    """Return (hits, ascending; number of hit lines)."""
    hits = sorted((hit for group in groups.values() for hit in group.hits()), key=lambda hit: hit.start)
    return tuple(hits), sum(group.count for group in groups.values())
