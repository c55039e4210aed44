"""Decides for every line of a source whose it is: known prefixes for all lines of a chunk at once, the rest line by
line.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from triage.base.lazy_re import lazy_re
from triage.model.evidence import Origin
from triage.ranks import cuts, glue
from triage.ranks.envelopes import CRI
from triage.ranks.identity import JobMap
from triage.ranks.splitting.automaton import ANY_DIGIT, LONGEST, Automaton, alike
from triage.ranks.splitting.layout import HEAD, Layer, Layout, layers, origin_of_layers

if TYPE_CHECKING:
    from triage.ranks.splitting.automaton import Bools, Bytes, Ints, Places

_COLOUR = lazy_re(r"\x1b\[[0-9;]*[A-Za-z]")
_RESET = lazy_re(r"\x1b\[(?:0|39)?m")
_CONTAINER = "Kubernetes CRI"
_MOST_ENTRIES = 1 << 15


class Key(NamedTuple):
    """A writer as far as a line alone tells it: a rank, else a local rank with its host, else a process, else a prefix,
    else nobody.
    """

    rank: int | None = None
    local_rank: int | None = None
    host: str | None = None
    name: str = ""
    pid: int | None = None


NOBODY = Key()


@dataclass(frozen=True, slots=True)
class Entry:
    """What a prefix means. `strip` bytes come off; `partial`: the line goes on in the next one of its writer
    (Kubernetes CRI).
    """

    key: int
    strip: int
    partial: bool
    settled: bool


class Routed(NamedTuple):
    """The pieces of a chunk: where each begins behind its prefix and ends, whose it is, and which need a newline or
    lose theirs.
    """

    starts: Places
    ends: Places
    keys: Ints
    open: list[int]
    partial: list[int]
    lines: int


def _alternatives(names: Iterable[str]) -> re.Pattern[bytes]:
    texts = (re.sub(r"\(\?P<\w+>", "(?:", name) for name in names)
    return re.compile("|".join(f"(?:{text})" for text in texts).encode("utf-8"))


class Router:
    """For one source. `job` knows what was said of ranks before it is read."""

    def __init__(self, source: str, layout: Layout, job: JobMap, keep_prefix: bool = False) -> None:
        self.source = source
        self.layout = layout
        self.job = job
        self.keep = keep_prefix
        self.keys: list[Key] = [NOBODY]
        self.learned: list[Origin] = []
        self.differing: set[tuple[str, int, int]] = (
            set()
        )  # prefix, its rank, and which one a line behind it calls itself
        self.parsed = 0
        self._index: dict[Key, int] = {NOBODY: 0}
        self._entries: list[Entry] = []
        self._known: dict[tuple[int, int, bool, bool], int] = {}
        self._automaton = Automaton()
        self._any = _alternatives(grammar.pattern.pattern for grammar in layout.grammars)
        wanted = {"rank", "local_rank", "pid"} if layout.inner else {"rank", "local_rank"}
        self._telling = _alternatives(
            grammar.pattern.pattern for grammar in layout.grammars if wanted & set(grammar.says)
        )
        self._glue = _gluing(layout)
        self._nobody = self._entry(0, 0, False, False)
        self._arrays: tuple[Ints, Bools] | None = None
        self._awaited: dict[
            int, tuple[int, int]
        ] = {}  # where in what comes next a line goes on, whose it is, and how long its prefix
        self._going_on: dict[bytes, int] = {}  # streams whose last piece goes on, and whose it is

    def route(self, data: bytes, ahead: bytes = b"") -> Routed:
        """Of whole lines (the last one may lack its newline). `ahead`: some of what follows, where the launcher cuts
        lines.
        """
        import numpy as np

        padded = np.zeros(len(data) + LONGEST + 1, np.uint8)
        padded[: len(data)] = np.frombuffer(data, np.uint8)
        breaks = np.flatnonzero(padded[: len(data)] == 10) + 1
        if not len(breaks) or breaks[-1] < len(data):
            breaks = np.append(breaks, len(data))
        lines = len(breaks)
        opened = self._glued(data, padded)
        if opened:
            breaks = np.union1d(breaks, np.array(opened, np.intp))
        starts = np.concatenate((np.zeros(1, np.intp), breaks[:-1]))
        entry, stop = self._automaton.run(padded, starts)
        self._slowly(data, padded, starts, breaks, entry, stop)
        table = self._tables()[0]
        keys = table[:, 0].take(entry)
        begins = starts + table[:, 1].take(entry)
        partial = np.flatnonzero(table[:, 2].take(entry)).tolist() if table[:, 2].any() else []
        if partial or self._going_on:
            self._continue(data, starts, partial, keys, begins)
            partial = [] if self.keep else partial
        if self.layout.cut and not self.keep:
            partial = sorted([*partial, *self._mend(data, ahead, starts, breaks, keys, begins)])
        ends = [int(index) for index in np.searchsorted(breaks, np.array(opened, np.intp))] if opened else []
        return Routed(begins, breaks, keys, ends, partial, lines)

    def _continue(self, data: bytes, starts: Places, partial: list[int], keys: Ints, begins: Places) -> None:
        """Pieces of a line that the container runtime cut are by whoever wrote the first, whatever they begin with."""
        after = iter(partial)
        index = 0
        while index < len(starts):
            if not self._going_on:
                index = next((place for place in after if place >= index), len(starts))
                if index == len(starts):
                    return
            piece = CRI.match(data, starts[index])
            if piece is None and not self._going_on:
                index += 1
                continue
            if piece is not None:
                if piece[1] in self._going_on:
                    keys[index] = self._going_on[piece[1]]
                    begins[index] = starts[index] if self.keep else piece.end()
                if piece[2] == b"P":
                    self._going_on[piece[1]] = int(keys[index])
                else:
                    self._going_on.pop(piece[1], None)
            index += 1

    def _mend(self, data: bytes, ahead: bytes, starts: Places, breaks: Places, keys: Ints, begins: Places) -> list[int]:
        """The pieces of lines that the launcher cut, but for the last ones: what follows of a line is by whoever wrote
        its first piece.
        """
        import numpy as np

        awaited, self._awaited = {**self._awaited}, {}
        partial = []
        lengths = breaks - starts
        pieces = np.flatnonzero((lengths > cuts.SHORTEST) & (lengths <= cuts.LONGEST + 1)).tolist()
        for index in pieces:
            later = self._take(awaited, starts[index], starts, keys, begins)
            end = int(breaks[index])
            line = data[starts[index] : end]
            piece = cuts.piece_of(line[:-1], self.layout.table) if line.endswith(b"\n") else None
            after = data[end : end + cuts.REACH] if end + cuts.REACH <= len(data) else data[end:] + ahead
            place = cuts.following(after, 0, piece, self.layout.table) if piece is not None else None
            if piece is None or place is None:
                continue
            rest = after[place[0] + piece.start : place[1]]
            if cuts.goes_on(piece, line[:-1], rest, self.layout.table, later):
                partial.append(index)
                awaited[end + place[0]] = int(keys[index]), piece.start
        for at in list(awaited):
            self._take(awaited, at, starts, keys, begins)
        self._awaited = {at - len(data): found for at, found in awaited.items()}
        return partial

    def _take(self, awaited: dict[int, tuple[int, int]], at: int, starts: Places, keys: Ints, begins: Places) -> bool:
        """Give the line at `at` to the writer that it is awaited from, if it is."""
        import numpy as np

        index = int(np.searchsorted(starts, at))
        if at in awaited and index < len(starts) and starts[index] == at:
            key, strip = awaited.pop(int(at))
            keys[index], begins[index] = key, at + strip
            return True
        return False

    def _slowly(self, data: bytes, padded: Bytes, starts: Places, breaks: Places, entry: Ints, stop: Places) -> None:
        """Look at the lines that no known prefix settles, one by one, and teach the automaton what they begin with."""
        import numpy as np

        nobody = self._nobody
        settled = self._tables()[1]
        unknown = np.flatnonzero(entry < 0)
        match = self._any.match
        begins = starts.take(unknown).tolist()
        suspects = [
            index
            for index, start in zip(unknown.tolist(), begins, strict=True)
            if match(data, start) or data[start] == 27
        ]
        entry[unknown] = nobody
        if not settled.all():
            open_ends = np.flatnonzero((entry != nobody) & ~settled.take(entry))
            if not self.layout.inner:
                following = padded.take(stop.take(open_ends))
                open_ends = open_ends[(following == ord("[")) | (following == ord("("))]
            match = self._telling.match
            behind = stop.take(open_ends).tolist()
            suspects += [index for index, start in zip(open_ends.tolist(), behind, strict=True) if match(data, start)]
        for index in suspects:
            entry[index] = self._parse(data[starts[index] : breaks[index]])

    def _parse(self, line: bytes) -> int:
        """The entry of one line, by its grammar."""
        self.parsed += 1
        raw = line[:HEAD].rstrip(b"\r\n").decode("latin-1")
        head = _COLOUR.sub("", raw) if "\x1b" in raw else raw
        found = layers(head, self.layout.table)
        count = self.layout.outer(found)
        own, inside = found[:count], found[count:]
        origin = origin_of_layers(found if self.layout.inner or not own else own)
        whole = origin_of_layers(found)
        if whole.rank is not None or whole.local_rank is not None:
            self.learned.append(whole)
        key = self._key(origin, own)
        strip = self.layout.end(own[-1]) if own else 0
        partial = any(layer.grammar.name == _CONTAINER and layer.text.endswith(" P ") for layer in own)
        settled = any(layer.tells for layer in (inside if self.layout.inner else inside[:1]))
        if settled and not self.layout.inner and None not in (key.rank, whole.rank) and key.rank != whole.rank:
            self.differing.add((own[-1].text.strip() if own else "", key.rank or 0, whole.rank or 0))
            key = Key(rank=whole.rank)  # what a line says itself is believed before what stands around it
        entry = self._entry(key, 0 if self.keep else _in_raw(raw, head, strip), partial, settled)
        self._teach(raw, head, found, own, inside, entry)
        return entry

    def _key(self, origin: Origin, own: list[Layer]) -> Key:
        """By what was known before reading, so that the lines of a prefix stay together; what they say is taken in when
        all is read.
        """
        rank = self.job.complete(self.source, origin).rank if own else origin.rank
        if rank is not None:
            return Key(rank=rank)
        if origin.local_rank is not None:
            return Key(local_rank=origin.local_rank, host=origin.host)
        name = "".join(layer.who for layer in own).strip()
        return Key(host=origin.host, name=name, pid=origin_of_layers(own).pid) if name else NOBODY

    def _entry(self, key: Key | int, strip: int, partial: bool, settled: bool) -> int:
        number = key if isinstance(key, int) else self._number(key)
        known = (number, strip, partial, settled)
        if known not in self._known:
            self._known[known] = len(self._entries)
            self._entries.append(Entry(*known))
        return self._known[known]

    def _tables(self) -> tuple[Ints, Bools]:
        """The entries as columns (key, strip, partial), and which are settled."""
        if self._arrays is None or len(self._arrays[1]) < len(self._entries):
            import numpy as np

            table = np.array([(known.key, known.strip, known.partial) for known in self._entries], np.int32)
            self._arrays = table, np.array([known.settled for known in self._entries], bool)
        return self._arrays

    def _number(self, key: Key) -> int:
        number = self._index.get(key)
        if number is None:
            number = self._index[key] = len(self.keys)
            self.keys.append(key)
        return number

    def _teach(
        self, raw: str, head: str, found: list[Layer], own: list[Layer], inside: list[Layer], entry: int
    ) -> None:
        """Let the automaton know the prefix, with any digits in its stamps."""
        if raw != head or len(self._entries) > _MOST_ENTRIES:
            return
        kept = list(own)
        if self._entries[entry].settled:
            kept += inside[: max(index for index, layer in enumerate(inside) if layer.tells) + 1]
        elif self.layout.inner:
            kept = list(found)
        if not kept:
            return
        end = self.layout.end(own[-1]) if len(kept) == len(own) else kept[-1].end
        path = [ord(char) for char in head[:end]]
        for layer in kept:
            if layer.grammar.timed:
                exact = {at for start, stop in layer.spans for at in range(start, stop)}
                for at in range(layer.start, min(layer.end, end)):
                    if head[at].isdigit() and at not in exact:
                        path[at] = ANY_DIGIT
        self._automaton.add(path, entry)

    def _glued(self, data: bytes, padded: Bytes) -> list[int]:
        """Where a launcher's prefix or torch's tag stands in the middle of a line: two writers without a newline
        between them.
        """
        import numpy as np

        opening = np.flatnonzero(padded == ord("["))
        if len(opening) and not opening[0]:
            opening = opening[1:]
        opening = opening[~_layered().take(padded.take(opening - 1))]
        if not len(opening):
            return []
        found = {at for at in opening[alike(padded, opening, b"[rank")].tolist() if glue.second(data, at, glue.TAG)}
        mark = self.layout.mark.encode("latin-1")
        if self._glue is not None and len(mark) > 1:
            found.update(
                at for at in opening[alike(padded, opening, mark)].tolist() if glue.second(data, at, self._glue)
            )
        return sorted(found)


@functools.cache
def _layered() -> Bools:
    """Behind which bytes a bracket opens a line, or a further layer of its prefix."""
    import numpy as np

    found = np.zeros(256, bool)
    found[[*b"\n:"]] = True
    return found


def _gluing(layout: Layout) -> re.Pattern[bytes] | None:
    """The outermost launcher's pattern; only prefixes in brackets are unlike text."""
    grammar = next(
        (grammar for grammar in layout.grammars if layout.launchers and grammar.name == layout.launchers[0]), None
    )
    if grammar is None or not grammar.writer or not grammar.example.startswith("["):
        return None
    return _alternatives([grammar.pattern.pattern])


def _in_raw(raw: str, head: str, end: int) -> int:
    """Where the place `end` of a line without colours lies in the line with them. Of a coloured prefix the reset behind
    it goes too.
    """
    if raw == head:
        return end
    at = plain = 0
    while plain < end:
        colour = _COLOUR.match(raw, at)
        plain += colour is None
        at = at + 1 if colour is None else colour.end()
    reset = _RESET.match(raw, at)
    return reset.end() if reset is not None and at > end else at
