"""From literal matches to lines, and the keeping of few among many.

A `Collector` sees the hit lines of one span in order. It is the storm breaker: the first `SPAN_LINES` hit lines are all
looked at; of
those with the same literals and the same writer the first and the last few are kept and the others counted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable
from typing import Any

from triage.scan.interface import (
    CELL,
    KEEP,
    KEEP_ALIKE,
    MAX_LINE,
    OVERLAP,
    SLICE,
    SPAN,
    SPAN_LINES,
    WRITER_BYTES,
    Gate,
    Hit,
    Place,
    WriterKey,
)


class Kept:
    """The first and last `keep` hits of one kind, and how many there were."""

    __slots__ = ("count", "first", "keep", "last")

    def __init__(self, keep: int) -> None:
        self.count = 0
        self.keep = keep
        self.first: list[tuple[int, int, tuple[int, ...]]] = []
        self.last: deque[tuple[int, int, tuple[int, ...]]] = deque(maxlen=keep)

    def see(self, start: int, end: int, literals: tuple[int, ...], more: int = 0) -> None:
        self.count += 1 + more
        kept = self.first if len(self.first) < self.keep else self.last
        kept.append((start, end, literals))

    def add(self, hit: Hit) -> None:
        self.see(hit.start, hit.end, hit.literals, hit.more)

    def hits(self) -> list[Hit]:
        kept = [Hit(*seen) for seen in (*self.first, *self.last)]
        left_out = self.count - len(kept)
        if left_out:
            end = kept[len(self.first) - 1]
            kept[len(self.first) - 1] = Hit(end.start, end.end, end.literals, left_out)
        return kept


# After so many lines looked at for nothing a span is searched for whole literals.
MAX_WRONG = 1000

Kinds = dict[tuple[tuple[int, ...], bytes], Kept]
"""Kept lines by their literals and their writer."""


class Collector:
    """Collects the hit lines of one span; `feed` must get whole lines in ascending order."""

    def __init__(self, gate: Gate, writer: WriterKey, generic: frozenset[int] = frozenset()) -> None:
        self.gate = gate
        self.writer = writer
        self.generic = generic
        self.kinds: Kinds = {}
        self._lines = 0
        self.sampled = 0
        self.touched: set[int] | None = None  # the cells of the hits, where somebody asks for them
        self._wrong = 0  # lines that were looked at for nothing
        self._span = -1
        self._slice = -1
        self._seen: set[int] = set()

    def feed(self, data: bytearray, base: int, stop: int, line_start: int, fresh: int = 0) -> None:
        """Look at `data[:stop]`; `base` is the absolute offset of `data[0]`.

        `line_start` is the absolute start of the first line: before the data when an overlong line is fed in pieces;
        then
        `data[:fresh]` ends the piece before and is seen again.
        """
        start = self._pieces(data, base, line_start - base, fresh, stop) if line_start < base else 0
        while start < stop:
            self._enter(base + start)
            finish = _line_end(data, (self._span + 1) * SPAN - base, stop)
            overlong = _overlong(data, start, finish)
            self._feed_lines(data, base, start, overlong)
            start = finish if overlong == finish else self._pieces(data, base, overlong, overlong, finish)

    def _enter(self, position: int) -> None:
        if position // SPAN != self._span:
            self._span, self._lines, self._wrong = position // SPAN, 0, 0

    def _feed_lines(self, data: bytearray, base: int, start: int, stop: int) -> None:
        while start < stop and self._lines < SPAN_LINES:
            limit = 4 * (SPAN_LINES - self._lines) + 64
            found = self.gate.find(data, start, stop, limit, sure=self._wrong > MAX_WRONG)
            start = self._exact(data, base, stop, found, len(found) >= limit)
        while start < stop:
            start = self._sample(data, base, start, stop)

    def _exact(self, data: bytearray, base: int, stop: int, found: list[Place], stopped: bool) -> int:
        """Add the lines around `found` that hold literals, in order; the answer is where to go on. `stopped`: the last
        line may have more.
        """
        lines: list[tuple[int, int, Collection[int]]] = []
        finish = 0
        for end, literals in found:
            if end > finish:
                begin, finish = _bounds(data, end, stop)
            else:
                _, _, among = lines.pop()
                literals = literals if among is literals else {*among, *literals}
            lines.append((begin, finish, literals))
        inside, add = self.gate.inside, self._add
        for begin, end, among in lines:
            held = inside(bytes(data[begin:end]), None if stopped and end == finish else among)
            if held:
                add(data, base, begin, end, held)
                if self._lines >= SPAN_LINES:
                    return min(end + 1, stop)
            else:
                self._wrong += 1
        return min(finish + 1, stop) if stopped else stop

    def _sample(self, data: bytearray, base: int, start: int, stop: int) -> int:
        """Storm: the lines that begin in one slice of the file are looked at for the first line of each literal."""
        number = (base + start) // SLICE
        if number != self._slice:
            self._slice, self._seen = number, set()
        finish = _line_end(data, (number + 1) * SLICE - base, stop)
        for end, literal in self.gate.first(data, start, finish):
            if literal not in self._seen:
                begin, done = _bounds(data, end, finish)
                literals = self.gate.inside(bytes(data[begin:done]))
                self._seen.update(literals)
                self._add(data, base, begin, done, literals)
        self.sampled += finish - start
        return finish

    def _pieces(self, data: bytearray, base: int, origin: int, start: int, stop: int) -> int:
        """Each piece of the overlong line that begins at `origin` (may be before the data) from `start` on; the answer
        is where the next line begins.

        Pieces are counted from the start of their line and looked at one by one, so that neither the chunk nor the
        engine
        moves them. Each reaches back by OVERLAP: a literal that the border cuts is whole in the later one.
        """
        finish = data.find(b"\n", start, stop)
        finish = stop if finish < 0 else finish
        while start < finish:
            end = min(start + MAX_LINE, finish)
            begin = start - OVERLAP if start > origin else start
            literals = tuple(sorted(literal for _, literal in self.gate.first(data, begin, end)))
            if literals:
                self._add(data, base, begin, end, literals)
            start = end
        return min(finish + 1, stop)

    def _add(self, data: bytearray, base: int, begin: int, finish: int, literals: tuple[int, ...]) -> None:
        self._lines += 1
        kind = (literals, self.writer(bytes(data[begin : min(finish, begin + WRITER_BYTES)])))
        kept = self.kinds.get(kind)
        if kept is None:
            kept = self.kinds[kind] = Kept(KEEP_ALIKE if kind[1] and not self.generic.issuperset(literals) else KEEP)
        kept.see(base + begin, base + finish, literals)
        if self.touched is not None:
            self.touched.update(((base + begin) // CELL, (base + finish) // CELL))


def _line_end(data: bytearray, edge: int, stop: int) -> int:
    """The end of the last line that starts before `edge`, at most `stop`."""
    return stop if edge >= stop else data.find(b"\n", edge - 1, stop) + 1 or stop


def _overlong(data: bytearray, start: int, stop: int) -> int:
    """Where the first line longer than MAX_LINE starts in `data[start:stop]`, or `stop`."""
    while stop - start > MAX_LINE:
        newline = data.rfind(b"\n", start, start + MAX_LINE + 1)
        if newline < 0:
            return start
        start = newline + 1
    return stop


def _bounds(data: bytearray, end: int, stop: int) -> tuple[int, int]:
    """Start and end (without newline) of the line that holds the byte before `end`."""
    begin = data.rfind(b"\n", 0, end) + 1
    finish = data.find(b"\n", end - 1, stop)
    return begin, stop if finish < 0 else finish


def rows(kinds: Kinds) -> list[Any]:
    """Kinds as JSON can carry them."""
    return [
        [literals, writer.decode("latin-1"), kept.keep, [[hit.start, hit.end, hit.more] for hit in kept.hits()]]
        for (literals, writer), kept in kinds.items()
    ]


def kept_of(rows: list[Any]) -> Kinds:
    """The kinds that these rows stand for."""
    kinds: Kinds = {}
    for literals, writer, keep, hits in rows:
        kind = tuple(literals), writer.encode("latin-1")
        kept = kinds[kind] = Kept(keep)
        for start, end, more in hits:
            kept.see(start, end, kind[0], more)
    return kinds


def merge(spans: Iterable[Kinds]) -> tuple[tuple[Hit, ...], int]:
    """The kinds of all spans of one source, in file order, thinned once more; hits ascending, and how many lines
    matched.
    """
    whole: Kinds = {}
    for kinds in spans:
        for kind, kept in kinds.items():
            target = whole.setdefault(kind, Kept(kept.keep))
            for hit in kept.hits():
                target.add(hit)
    hits = sorted((hit for kept in whole.values() for hit in kept.hits()), key=lambda hit: hit.start)
    return tuple(hits), sum(kept.count for kept in whole.values())
