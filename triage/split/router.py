"""Decide who wrote each line of a source: known prefixes for all lines of a chunk at once, the rest line by line."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from triage.base.lazy_re import lazy_re
from triage.model.evidence import Origin
from triage.ranks.identity import JobMap
from triage.ranks.layouts import LONGEST_CUT_LINE
from triage.ranks.log_wrappers import CRI_PREFIX
from triage.records import line_cuts
from triage.split.launcher_layout import HEAD, LauncherLayout, Layer, origin_of_layers, parse_layers
from triage.split.prefix_automaton import ANY_DIGIT, LONGEST_PREFIX, PrefixAutomaton, matches_at

if TYPE_CHECKING:
    from triage.split.prefix_automaton import Bools, Bytes, Ints, Places

_COLOUR = lazy_re(r"\x1b\[[0-9;]*[A-Za-z]")
_COLOUR_RESET = lazy_re(r"\x1b\[(?:0|39)?m")
_CRI = "Kubernetes CRI"
_MOST_ENTRIES = 1 << 15


class WriterKey(NamedTuple):
    """A writer as one line names it: a rank, else a local rank and host, else a process, else a prefix, else nobody."""

    rank: int | None = None
    local_rank: int | None = None
    host: str | None = None
    name: str = ""
    pid: int | None = None


UNASSIGNED = WriterKey()


@dataclass(frozen=True, slots=True)
class PrefixEntry:
    """The meaning of one prefix: the number of its writer, and how many bytes to remove.

    `is_partial`: the line continues in the next one of its writer (Kubernetes CRI). `is_final`: nothing behind the
    prefix can name another writer.
    """

    key: int
    strip: int
    is_partial: bool
    is_final: bool


class RoutedChunk(NamedTuple):
    """The pieces of a chunk: where each begins (behind its prefix) and ends, and who wrote it.

    `unterminated` are the pieces that need a newline, `partial` those that lose theirs.
    """

    starts: Places
    ends: Places
    keys: Ints
    unterminated: list[int]
    partial: list[int]
    lines: int


def _alternatives(patterns: Iterable[str]) -> re.Pattern[bytes]:
    unnamed = (re.sub(r"\(\?P<\w+>", "(?:", pattern) for pattern in patterns)
    return re.compile("|".join(f"(?:{pattern})" for pattern in unnamed).encode("utf-8"))


class Router:
    """Route the lines of one source. `job` holds what the samples of all sources say about ranks."""

    def __init__(self, source: str, layout: LauncherLayout, job: JobMap, keep_prefix: bool = False) -> None:
        self.source = source
        self.layout = layout
        self.job = job
        self.keep_prefix = keep_prefix
        self.keys: list[WriterKey] = [UNASSIGNED]
        self.learned: list[Origin] = []
        # A prefix, its rank, and the other rank that a line behind it names.
        self.differing: set[tuple[str, int, int]] = set()
        self._key_numbers: dict[WriterKey, int] = {UNASSIGNED: 0}
        self._entries: list[PrefixEntry] = []
        self._entry_numbers: dict[tuple[int, int, bool, bool], int] = {}
        self._automaton = PrefixAutomaton()
        self._any_prefix = _alternatives(grammar.pattern.pattern for grammar in layout.grammars)
        naming = {"rank", "local_rank", "pid"} if layout.has_inner_ranks else {"rank", "local_rank"}
        self._naming_prefix = _alternatives(
            grammar.pattern.pattern for grammar in layout.grammars if naming & set(grammar.origin_parts)
        )
        self._bracketed_prefix = _bracketed_prefix(layout)
        self._unassigned = self._entry(0, 0, False, False)
        self._tables_cache: tuple[Ints, Bools] | None = None
        # Where a cut line continues in the next chunk: offset to its writer and the length of its prefix.
        self._awaited: dict[int, tuple[int, int]] = {}
        # Streams (stdout, stderr) whose last CRI piece continues, and their writer.
        self._continuing: dict[bytes, int] = {}

    def route(self, data: bytes, ahead: bytes = b"") -> RoutedChunk:
        """Route whole lines; the last one may lack its newline.

        `ahead` is the start of what follows, needed where the launcher cuts lines.
        """
        import numpy as np

        padded = np.zeros(len(data) + LONGEST_PREFIX + 1, np.uint8)
        padded[: len(data)] = np.frombuffer(data, np.uint8)
        breaks = np.flatnonzero(padded[: len(data)] == 10) + 1
        if not len(breaks) or breaks[-1] < len(data):
            breaks = np.append(breaks, len(data))
        lines = len(breaks)
        second = self._second_writers(data, padded)
        if second:
            breaks = np.union1d(breaks, np.array(second, np.intp))
        starts = np.concatenate((np.zeros(1, np.intp), breaks[:-1]))
        entry, stop = self._automaton.run(padded, starts)
        self._parse_unknown(data, padded, starts, breaks, entry, stop)
        table = self._tables()[0]
        keys = table[:, 0].take(entry)
        begins = starts + table[:, 1].take(entry)
        partial = np.flatnonzero(table[:, 2].take(entry)).tolist() if table[:, 2].any() else []
        if partial or self._continuing:
            self._route_cri_pieces(data, starts, partial, keys, begins)
            partial = [] if self.keep_prefix else partial
        if self.layout.cuts_lines and not self.keep_prefix:
            partial = sorted([*partial, *self._route_cut_lines(data, ahead, starts, breaks, keys, begins)])
        unterminated = [int(index) for index in np.searchsorted(breaks, np.array(second, np.intp))] if second else []
        return RoutedChunk(begins, breaks, keys, unterminated, partial, lines)

    def _route_cri_pieces(self, data: bytes, starts: Places, partial: list[int], keys: Ints, begins: Places) -> None:
        """Assign pieces that the container runtime cut to the writer of the first piece, whatever they begin with."""
        after = iter(partial)
        index = 0
        while index < len(starts):
            if not self._continuing:
                index = next((place for place in after if place >= index), len(starts))
                if index == len(starts):
                    return
            piece = CRI_PREFIX.match(data, starts[index])
            if piece is None and not self._continuing:
                index += 1
                continue
            if piece is not None:
                if piece[1] in self._continuing:
                    keys[index] = self._continuing[piece[1]]
                    begins[index] = starts[index] if self.keep_prefix else piece.end()
                if piece[2] == b"P":
                    self._continuing[piece[1]] = int(keys[index])
                else:
                    self._continuing.pop(piece[1], None)
            index += 1

    def _route_cut_lines(
        self, data: bytes, ahead: bytes, starts: Places, breaks: Places, keys: Ints, begins: Places
    ) -> list[int]:
        """Assign pieces that the launcher cut to the writer of the first piece. Return all but the last pieces."""
        import numpy as np

        awaited, self._awaited = {**self._awaited}, {}
        partial = []
        lengths = breaks - starts
        long_lines = np.flatnonzero((lengths > line_cuts.SHORTEST) & (lengths <= LONGEST_CUT_LINE + 1)).tolist()
        for index in long_lines:
            is_later_piece = self._assign_awaited(awaited, starts[index], starts, keys, begins)
            end = int(breaks[index])
            line = data[starts[index] : end]
            piece = line_cuts.parse_piece(line[:-1], self.layout.table) if line.endswith(b"\n") else None
            after = data[end : end + line_cuts.REACH] if end + line_cuts.REACH <= len(data) else data[end:] + ahead
            place = line_cuts.find_next_line(after, 0, piece, self.layout.table) if piece is not None else None
            if piece is None or place is None:
                continue
            rest = after[place[0] + piece.start : place[1]]
            if line_cuts.is_continuation(piece, line[:-1], rest, self.layout.table, is_later_piece):
                partial.append(index)
                awaited[end + place[0]] = int(keys[index]), piece.start
        for at in list(awaited):
            self._assign_awaited(awaited, at, starts, keys, begins)
        self._awaited = {at - len(data): writer for at, writer in awaited.items()}
        return partial

    def _assign_awaited(
        self, awaited: dict[int, tuple[int, int]], at: int, starts: Places, keys: Ints, begins: Places
    ) -> bool:
        """Assign the line at `at` to the writer that it is awaited from. False where none is."""
        import numpy as np

        index = int(np.searchsorted(starts, at))
        if at in awaited and index < len(starts) and starts[index] == at:
            key, strip = awaited.pop(int(at))
            keys[index], begins[index] = key, at + strip
            return True
        return False

    def _parse_unknown(
        self, data: bytes, padded: Bytes, starts: Places, breaks: Places, entry: Ints, stop: Places
    ) -> None:
        """Parse the lines whose writer no known prefix decides, one by one, and add their prefixes to the automaton."""
        import numpy as np

        is_final = self._tables()[1]
        unknown = np.flatnonzero(entry < 0)
        match = self._any_prefix.match
        suspects = [
            index
            for index, start in zip(unknown.tolist(), starts.take(unknown).tolist(), strict=True)
            if match(data, start) or data[start] == 27
        ]
        entry[unknown] = self._unassigned
        if not is_final.all():
            undecided = np.flatnonzero((entry != self._unassigned) & ~is_final.take(entry))
            if not self.layout.has_inner_ranks:
                following = padded.take(stop.take(undecided))
                undecided = undecided[(following == ord("[")) | (following == ord("("))]
            match = self._naming_prefix.match
            behind = stop.take(undecided).tolist()
            suspects += [index for index, start in zip(undecided.tolist(), behind, strict=True) if match(data, start)]
        for index in suspects:
            entry[index] = self._parse(data[starts[index] : breaks[index]])

    def _parse(self, line: bytes) -> int:
        """Return the entry of one line, parsed by the grammars."""
        raw = line[:HEAD].rstrip(b"\r\n").decode("latin-1")
        head = _COLOUR.sub("", raw) if "\x1b" in raw else raw
        layers = parse_layers(head, self.layout.table)
        count = self.layout.count_launcher_layers(layers)
        own, inside = layers[:count], layers[count:]
        has_inner_ranks = self.layout.has_inner_ranks
        origin = origin_of_layers(layers if has_inner_ranks or not own else own)
        full_origin = origin_of_layers(layers)
        if full_origin.rank is not None or full_origin.local_rank is not None:
            self.learned.append(full_origin)
        key = self._key(origin, own)
        strip = self.layout.end_of(own[-1]) if own else 0
        is_partial = any(layer.grammar.name == _CRI and layer.text.endswith(" P ") for layer in own)
        is_final = any(layer.names_rank for layer in (inside if has_inner_ranks else inside[:1]))
        if (
            is_final
            and not has_inner_ranks
            and None not in (key.rank, full_origin.rank)
            and key.rank != full_origin.rank
        ):
            self.differing.add((own[-1].text.strip() if own else "", key.rank or 0, full_origin.rank or 0))
            key = WriterKey(rank=full_origin.rank)  # the rank in the line overrides the launcher's
        entry = self._entry(key, 0 if self.keep_prefix else _place_in_raw(raw, head, strip), is_partial, is_final)
        self._teach(raw, head, layers, count, entry)
        return entry

    def _key(self, origin: Origin, own: list[Layer]) -> WriterKey:
        """Return the writer by what is known before the split, so that all lines of a prefix stay together."""
        rank = self.job.complete(self.source, origin).rank if own else origin.rank
        if rank is not None:
            return WriterKey(rank=rank)
        if origin.local_rank is not None:
            return WriterKey(local_rank=origin.local_rank, host=origin.host)
        name = "".join(layer.writer for layer in own).strip()
        return WriterKey(host=origin.host, name=name, pid=origin_of_layers(own).pid) if name else UNASSIGNED

    def _entry(self, key: WriterKey | int, strip: int, is_partial: bool, is_final: bool) -> int:
        number = key if isinstance(key, int) else self._number(key)
        columns = (number, strip, is_partial, is_final)
        if columns not in self._entry_numbers:
            self._entry_numbers[columns] = len(self._entries)
            self._entries.append(PrefixEntry(*columns))
        return self._entry_numbers[columns]

    def _tables(self) -> tuple[Ints, Bools]:
        """Return the entries as columns (key, strip, is_partial), and which are final."""
        if self._tables_cache is None or len(self._tables_cache[1]) < len(self._entries):
            import numpy as np

            self._tables_cache = (
                np.array([(entry.key, entry.strip, entry.is_partial) for entry in self._entries], np.int32),
                np.array([entry.is_final for entry in self._entries], bool),
            )
        return self._tables_cache

    def _number(self, key: WriterKey) -> int:
        number = self._key_numbers.get(key)
        if number is None:
            number = self._key_numbers[key] = len(self.keys)
            self.keys.append(key)
        return number

    def _teach(self, raw: str, head: str, layers: list[Layer], count: int, entry: int) -> None:
        """Add the prefix to the automaton, with any digit in its timestamps. `count` layers are the launchers'."""
        if raw != head or len(self._entries) > _MOST_ENTRIES:
            return
        used = count
        if self._entries[entry].is_final:
            used += max(index for index, layer in enumerate(layers[count:]) if layer.names_rank) + 1
        elif self.layout.has_inner_ranks:
            used = len(layers)
        if not used:
            return
        end = self.layout.end_of(layers[count - 1]) if used == count else layers[used - 1].end
        prefix = [ord(char) for char in head[:end]]
        for layer in layers[:used]:
            if layer.grammar.has_time:
                exact = {at for start, stop in layer.spans for at in range(start, stop)}
                for at in range(layer.start, min(layer.end, end)):
                    if head[at].isdigit() and at not in exact:
                        prefix[at] = ANY_DIGIT
        self._automaton.add(prefix, entry)

    def _second_writers(self, data: bytes, padded: Bytes) -> list[int]:
        """Return where a second writer's prefix stands in the middle of a line, without a newline before it."""
        import numpy as np

        brackets = np.flatnonzero(padded == ord("["))
        if len(brackets) and not brackets[0]:
            brackets = brackets[1:]
        brackets = brackets[~_line_starts().take(padded.take(brackets - 1))]
        if not len(brackets):
            return []
        places = self._joined_at(data, padded, brackets, b"[rank", line_cuts.TORCH_TAG)
        mark = self.layout.mark.encode("latin-1")
        if self._bracketed_prefix is not None and len(mark) > 1:
            places |= self._joined_at(data, padded, brackets, mark, self._bracketed_prefix)
        return sorted(places)

    @staticmethod
    def _joined_at(data: bytes, padded: Bytes, brackets: Places, mark: bytes, prefix: re.Pattern[bytes]) -> set[int]:
        marked = brackets[matches_at(padded, brackets, mark)].tolist()
        return {at for at in marked if line_cuts.is_second_writer(data, at, prefix)}


@functools.cache
def _line_starts() -> Bools:
    """Return the bytes behind which a bracket opens a line, or a further layer of its prefix."""
    import numpy as np

    table = np.zeros(256, bool)
    table[[*b"\n:"]] = True
    return table


def _bracketed_prefix(layout: LauncherLayout) -> re.Pattern[bytes] | None:
    """Return the pattern of the outermost launcher; None unless it is in brackets, because others look like text."""
    outermost = layout.launchers[:1]
    grammar = next((grammar for grammar in layout.grammars if grammar.name in outermost), None)
    if grammar is None or not grammar.is_writer or not grammar.example.startswith("["):
        return None
    return _alternatives([grammar.pattern.pattern])


def _place_in_raw(raw: str, head: str, end: int) -> int:
    """Map the place `end` of the line without colours to the line with them, behind a reset of the prefix's colour."""
    if raw == head:
        return end
    at = plain = 0
    while plain < end:
        colour = _COLOUR.match(raw, at)
        plain += colour is None
        at = at + 1 if colour is None else colour.end()
    reset = _COLOUR_RESET.match(raw, at)
    return reset.end() if reset is not None and at > end else at
