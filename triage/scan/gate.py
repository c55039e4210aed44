"""The literal gate: one automaton for all literals of the catalog and the generic triggers.

Hyperscan (in the `hyperscan` wheel) runs without the GIL at several GB/s; google-re2 gives the same answers at about
a fifth of the speed where no such wheel exists.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from triage.scan.interface import Gate

_UNLIMITED = 1 << 60


class HyperscanGate:
    """Two block-mode databases over the same literals: all matches, and first match only. One scratch a gate: one gate a thread."""

    def __init__(self, literals: Sequence[bytes]) -> None:
        import hyperscan

        self._stopped: type[Exception] = hyperscan.ScanTerminated
        self._all = _compile(hyperscan, literals, 0)
        self._single = _compile(hyperscan, literals, hyperscan.HS_FLAG_SINGLEMATCH)

    def find(self, data: bytearray | bytes, start: int, stop: int, limit: int) -> list[tuple[int, int]]:
        return self._scan(self._all, data, start, stop, limit)

    def first(self, data: bytearray | bytes, start: int, stop: int) -> list[tuple[int, int]]:
        return self._scan(self._single, data, start, stop, _UNLIMITED)

    def inside(self, line: bytes) -> tuple[int, ...]:
        return tuple(sorted({literal for _, literal in self._scan(self._all, line, 0, len(line), _UNLIMITED)}))

    def _scan(self, database: Any, data: bytearray | bytes, start: int, stop: int, limit: int) -> list[tuple[int, int]]:
        found: list[tuple[int, int]] = []
        append = found.append

        def on_match(literal: int, _from: int, end: int, _flags: int, _context: object) -> bool | None:
            append((start + end, literal))
            return True if len(found) >= limit else None

        try:
            database.scan(memoryview(data)[start:stop], match_event_handler=on_match)
        except self._stopped:
            pass  # we asked for it: `limit` was reached
        found.sort()
        return found


def _compile(hyperscan: Any, literals: Sequence[bytes], flags: int) -> Any:
    database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    database.compile(expressions=list(literals), ids=list(range(len(literals))), flags=flags, literal=True)
    return database


class Re2Gate:
    """The same answers from google-re2: an alternation finds candidate lines, `in` decides which literals they hold."""

    def __init__(self, literals: Sequence[bytes]) -> None:
        import re2

        self._literals = tuple(literals)
        options = re2.Options()
        options.encoding = re2.Options.Encoding.LATIN1
        options.max_mem = 1 << 28
        self._any = re2.compile(b"|".join(re2.escape(literal) for literal in literals), options)

    def find(self, data: bytearray | bytes, start: int, stop: int, limit: int) -> list[tuple[int, int]]:
        found: list[tuple[int, int]] = []
        part = bytes(data[start:stop])
        position = 0
        while (match := self._any.search(part, position)) is not None:
            end_of_line = part.find(b"\n", match.end())
            end_of_line = len(part) if end_of_line < 0 else end_of_line
            begin = max(part.rfind(b"\n", 0, match.start()) + 1, position)
            found.extend(self._ends(part, begin, end_of_line, start))
            position = end_of_line
            if len(found) >= limit:
                break
        return sorted(found)

    def first(self, data: bytearray | bytes, start: int, stop: int) -> list[tuple[int, int]]:
        firsts: dict[int, int] = {}
        for end, literal in self.find(data, start, stop, _UNLIMITED):
            firsts.setdefault(literal, end)
        return sorted((end, literal) for literal, end in firsts.items())

    def inside(self, line: bytes) -> tuple[int, ...]:
        return tuple(index for index, literal in enumerate(self._literals) if literal in line)

    def _ends(self, part: bytes, begin: int, stop: int, base: int) -> list[tuple[int, int]]:
        ends = []
        for index, literal in enumerate(self._literals):
            at = part.find(literal, begin, stop)
            while at >= 0:
                ends.append((base + at + len(literal), index))
                at = part.find(literal, at + 1, stop)
        return ends


def build(literals: Sequence[str], engine: str = "auto") -> Gate:
    """Compile `literals`. `engine` is auto, hyperscan or re2; auto falls back to re2 where Hyperscan has no wheel."""
    encoded = [literal.encode() for literal in literals]
    if engine != "re2":
        try:
            return HyperscanGate(encoded)
        except ImportError:
            if engine == "hyperscan":
                raise
    return Re2Gate(encoded)
