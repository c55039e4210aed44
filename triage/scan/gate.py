"""The literal gate: one automaton for all literals of the catalog and the generic triggers.

Hyperscan (in the `hyperscan` wheel) runs without the GIL at several GB/s; google-re2 gives the same answers at about
a fifth of the speed where no such wheel exists.

A thousand literals make a slow automaton, a few hundred short ones a fast one. So the search looks for windows: pieces of four to eight
bytes of the literals that do not stand in a sample of the text, each shared by as many literals as possible. A window is only a
reason to look at its line; which literals the line holds is asked of all of them. So the choice of windows changes the speed and never the answer.
"""

from __future__ import annotations

import contextlib
import copy
import threading
from collections.abc import Sequence
from typing import Any

from triage.scan.interface import Gate

_UNLIMITED = 1 << 60
_WIDTHS = (4, 6, 8)


class HyperscanGate:
    """Block-mode databases: the windows, all literals, and the first match of each literal; compiled when first needed.

    Databases are shared between threads; each thread asks `for_thread` for a gate with scratches of its own.
    """

    def __init__(self, literals: Sequence[bytes], sample: bytes = b"") -> None:
        import hyperscan

        self._hyperscan = hyperscan
        self._expressions = {"windows": windows(literals, sample), "all": list(literals), "first": list(literals)}
        self._databases: dict[str, Any] = {}
        self._lock = threading.Lock()
        self._scratches: dict[str, Any] = {}

    def for_thread(self) -> HyperscanGate:
        gate = copy.copy(self)
        gate._scratches = {}
        return gate

    def find(self, data: bytearray | bytes, start: int, stop: int, limit: int) -> list[int]:
        return [end for end, _ in self._scan("windows", data, start, stop, limit)]

    def first(self, data: bytearray | bytes, start: int, stop: int) -> list[tuple[int, int]]:
        return self._scan("first", data, start, stop, _UNLIMITED)

    def inside(self, line: bytes) -> tuple[int, ...]:
        return tuple(sorted({literal for _, literal in self._scan("all", line, 0, len(line), _UNLIMITED)}))

    def _scan(self, name: str, data: bytearray | bytes, start: int, stop: int, limit: int) -> list[tuple[int, int]]:
        found: list[tuple[int, int]] = []
        append = found.append

        def on_match(literal: int, _from: int, end: int, _flags: int, _context: object) -> bool | None:
            append((start + end, literal))
            return True if len(found) >= limit else None

        database = self._database(name)
        scratch = self._scratches.get(name)
        if scratch is None:
            scratch = self._scratches[name] = self._hyperscan.Scratch(database)
        with contextlib.suppress(self._hyperscan.ScanTerminated):  # raised when `limit` was reached
            database.scan(memoryview(data)[start:stop], match_event_handler=on_match, scratch=scratch)
        found.sort()
        return found

    def _database(self, name: str) -> Any:
        with self._lock:
            if name not in self._databases:
                expressions = self._expressions[name]
                flags = int(self._hyperscan.HS_FLAG_SINGLEMATCH) if name == "first" else 0
                database = self._hyperscan.Database(mode=self._hyperscan.HS_MODE_BLOCK)
                database.compile(expressions=expressions, ids=list(range(len(expressions))), flags=flags, literal=True)
                self._databases[name] = database
            return self._databases[name]


def windows(literals: Sequence[bytes], sample: bytes) -> list[bytes]:
    """Pieces such that every literal contains one, few and absent from `sample`. Without a sample: the literals themselves."""
    if not sample:
        return sorted(set(literals))
    chosen: set[bytes] = set()
    left = sorted(set(literals))
    for width in _WIDTHS:
        common = {sample[index : index + width] for index in range(len(sample) - width + 1)}
        pieces = {literal: [p for p in _pieces(literal, width) if p not in common] for literal in left}
        covers: dict[bytes, int] = {}
        for found in pieces.values():
            for piece in set(found):
                covers[piece] = covers.get(piece, 0) + 1
        for literal in sorted(left, key=lambda literal: (len(pieces[literal]), literal)):
            if pieces[literal] and chosen.isdisjoint(pieces[literal]):
                chosen.add(max(pieces[literal], key=lambda piece: (covers[piece], piece)))
        left = [literal for literal in left if not pieces[literal]]
    return sorted(chosen.union(left))


def _pieces(literal: bytes, width: int) -> list[bytes]:
    return [literal[index : index + width] for index in range(max(1, len(literal) - width + 1))]


class Re2Gate:
    """The same answers from google-re2: an alternation finds candidate lines, `in` decides which literals they hold."""

    def __init__(self, literals: Sequence[bytes]) -> None:
        import re2

        self._literals = tuple(literals)
        options = re2.Options()
        options.encoding = re2.Options.Encoding.LATIN1
        options.max_mem = 1 << 28
        self._any = re2.compile(b"|".join(re2.escape(literal) for literal in literals), options)

    def for_thread(self) -> Re2Gate:
        return self

    def find(self, data: bytearray | bytes, start: int, stop: int, limit: int) -> list[int]:
        part = bytes(data[start:stop])
        found: list[int] = []
        position = 0
        while len(found) < limit and (match := self._any.search(part, position)) is not None:
            position = match.end()
            found.append(start + position)
        return found

    def first(self, data: bytearray | bytes, start: int, stop: int) -> list[tuple[int, int]]:
        found = [(data.find(literal, start, stop), index) for index, literal in enumerate(self._literals)]
        return sorted((at + len(self._literals[index]), index) for at, index in found if at >= 0)

    def inside(self, line: bytes) -> tuple[int, ...]:
        return tuple(index for index, literal in enumerate(self._literals) if literal in line)


def build(literals: Sequence[str], engine: str = "auto", sample: bytes = b"") -> Gate:
    """Compile `literals` for texts like `sample`. `engine` is auto, hyperscan or re2; auto falls back to re2 where Hyperscan has no wheel."""
    encoded = [literal.encode() for literal in literals]
    if engine != "re2":
        try:
            return HyperscanGate(encoded, sample)
        except ImportError:
            if engine == "hyperscan":
                raise
    return Re2Gate(encoded)
