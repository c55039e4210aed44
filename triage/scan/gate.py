"""The literal gate: one automaton for all literals of the catalog and the generic triggers.

Hyperscan (in the `hyperscan` wheel) runs without the GIL at several GB/s; google-re2 gives the same answers at about
a fifth of the speed where no such wheel exists.

The search itself looks for windows, pieces of the literals (see windows.py). A window is only a reason to look at its
line for the
literals that contain it, so the choice of windows changes the speed and never the answer.
"""

from __future__ import annotations

import contextlib
import copy
import threading
from collections.abc import Collection, Sequence
from typing import Any

from triage.scan.interface import OVERLAP, Gate, Place
from triage.scan.storm import Storm
from triage.scan.windows import complete, holders, refit

_UNLIMITED = 1 << 60
_FITTINGS = 3
_RARE = 2
# In so few bytes, what is common is found sooner by looking for one window after the other than by an automaton that
# must be built.
_LITTLE = 1 << 17
# So many lines are searched for one literal after the other: an automaton of all takes longer to build than a small job
# to read.
_BY_HAND = 256
# In a storm, the usual literals are in the first bytes of a slice.
_START = 1 << 14


class HyperscanGate:
    """Block-mode databases: the windows, all literals, and the first match of each literal; compiled when first needed.

    Databases are shared between threads; each thread asks `for_thread` for a gate with scratches of its own.
    """

    def __init__(self, literals: Sequence[bytes], windows: Sequence[bytes], sample: bytes = b"") -> None:
        import hyperscan

        self._hyperscan = hyperscan
        self._expressions = {"windows": complete(windows, literals), "all": list(literals), "first": list(literals)}
        self._databases: dict[str, Any] = {}
        self._lock = threading.Lock()
        self._scratches: dict[str, tuple[Any, Any]] = {}
        self._asked = _BY_HAND if sample else 0
        self._storm = Storm()
        self._holding: list[tuple[int, ...]] | None = None
        self._rest: tuple[Gate, Gate] | None = None  # the gate that the storm knows, and this thread's own of it
        fittings = _FITTINGS if len(sample) > _LITTLE else bool(sample)
        for left in reversed(range(fittings)):
            common = self._common(sample)
            if not common:
                break
            self._expressions["windows"] = refit(self._expressions["windows"], common, literals, last=not left)
            self._databases.pop("windows", None)
            self._scratches.pop("windows", None)
            self._holding = None

    def for_thread(self) -> HyperscanGate:
        gate = copy.copy(self)
        gate._scratches = {}
        gate._rest = None
        return gate

    def find(self, data: bytearray | bytes, start: int, stop: int, limit: int, *, sure: bool = False) -> list[Place]:
        if sure:
            return [(end, (literal,)) for end, literal in self._scan("all", data, start, stop, limit)]
        found = self._scan("windows", data, start, stop, limit)
        return [(end, self._holders()[window]) for end, window in found] if found else []

    def first(self, data: bytearray | bytes, start: int, stop: int) -> list[tuple[int, int]]:
        known = self._storm.known if stop - start > 2 * _START else None
        if known is not None:
            usual, rest = known
            found = self._scan("first", data, start, start + _START, _UNLIMITED)
            if usual.issubset(literal for _, literal in found) and not self._own(rest).find(
                data, max(start, start + _START - OVERLAP), stop, 1
            ):
                return found
        found = self._scan("first", data, start, stop, _UNLIMITED)
        if 0 < len(found) < len(self._expressions["all"]) and stop - start > 2 * _START:
            self._storm.learn(
                frozenset(literal for _, literal in found), lambda usual: self._without(usual, bytes(data[start:stop]))
            )
        return found

    def inside(self, line: bytes, among: Collection[int] | None = None) -> tuple[int, ...]:
        literals = self._expressions["all"]
        if among is not None:
            return tuple([literal for literal in sorted(among) if literals[literal] in line])
        if self._asked < _BY_HAND:
            self._asked += 1
            return tuple(index for index, literal in enumerate(literals) if literal in line)
        found: set[int] = set()
        add = found.add
        database, scratch = self._ready("all")
        database.scan(line, match_event_handler=lambda literal, *_: add(literal), scratch=scratch)
        return tuple(sorted(found))

    def _holders(self) -> list[tuple[int, ...]]:
        """For each window the literals that contain it."""
        if self._holding is None:
            self._holding = holders(self._expressions["windows"], self._expressions["all"])
        return self._holding

    def _scan(self, name: str, data: bytearray | bytes, start: int, stop: int, limit: int) -> list[tuple[int, int]]:
        found: list[tuple[int, int]] = []
        append = found.append

        def on_match(literal: int, _from: int, end: int, _flags: int, _context: object) -> bool | None:
            append((start + end, literal))
            return True if len(found) >= limit else None

        database, scratch = self._ready(name)
        with contextlib.suppress(self._hyperscan.ScanTerminated):  # raised when `limit` was reached
            database.scan(memoryview(data)[start:stop], match_event_handler=on_match, scratch=scratch)
        found.sort()
        return found

    def _own(self, rest: Gate) -> Gate:
        if self._rest is None or self._rest[0] is not rest:
            self._rest = rest, rest.for_thread()
        return self._rest[1]

    def _without(self, usual: frozenset[int], sample: bytes) -> HyperscanGate:
        """A gate for all literals but the usual ones."""
        others = [literal for number, literal in enumerate(self._expressions["all"]) if number not in usual]
        return HyperscanGate(others, self._expressions["windows"], sample)

    def _ready(self, name: str) -> tuple[Any, Any]:
        """A database with this thread's scratch for it."""
        ready = self._scratches.get(name)
        if ready is None:
            database = self._database(name)
            ready = self._scratches[name] = (database, self._hyperscan.Scratch(database))
        return ready

    def _common(self, sample: bytes) -> set[bytes]:
        """The windows that open the gate too often in the sample, on lines that hold none of their literals."""
        if len(sample) <= _LITTLE:
            return {window for window in self._expressions["windows"] if sample.count(window) > _RARE}
        counts: dict[int, int] = {}
        for end, window in self._scan("windows", sample, 0, len(sample), _UNLIMITED):
            line = sample[sample.rfind(b"\n", 0, end) + 1 : end + 256].split(b"\n", 1)[0]
            if counts.get(window, 0) < _RARE or not self.inside(line, self._holders()[window]):
                counts[window] = counts.get(window, 0) + 1
        return {self._expressions["windows"][window] for window, count in counts.items() if count > _RARE}

    def _database(self, name: str) -> Any:
        with self._lock:
            if name not in self._databases:
                expressions = self._expressions[name]
                flags = int(self._hyperscan.HS_FLAG_SINGLEMATCH) if name == "first" else 0
                database = self._hyperscan.Database(mode=self._hyperscan.HS_MODE_BLOCK)
                database.compile(expressions=expressions, ids=list(range(len(expressions))), flags=flags, literal=True)
                self._databases[name] = database
            return self._databases[name]


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

    def find(self, data: bytearray | bytes, start: int, stop: int, limit: int, *, sure: bool = False) -> list[Place]:
        part = bytes(data[start:stop])
        found: list[Place] = []
        any_of_them = range(len(self._literals))
        position = 0
        while len(found) < limit and (match := self._any.search(part, position)) is not None:
            position = match.end()
            found.append((start + position, any_of_them))
        return found

    def first(self, data: bytearray | bytes, start: int, stop: int) -> list[tuple[int, int]]:
        found = [(data.find(literal, start, stop), index) for index, literal in enumerate(self._literals)]
        return sorted((at + len(self._literals[index]), index) for at, index in found if at >= 0)

    def inside(self, line: bytes, among: Collection[int] | None = None) -> tuple[int, ...]:
        return tuple(index for index, literal in enumerate(self._literals) if literal in line)


def build(literals: Sequence[str], engine: str = "auto", windows: Sequence[str] = (), sample: bytes = b"") -> Gate:
    """Compile `literals`. `windows` (see windows.py) are fitted to `sample`, some bytes of what will be scanned.

    `engine` is auto, hyperscan or re2; auto falls back to re2 where Hyperscan has no wheel.
    """
    encoded = [literal.encode() for literal in literals]
    if engine != "re2":
        try:
            return HyperscanGate(encoded, [window.encode() for window in windows], sample)
        except ImportError:
            if engine == "hyperscan":
                raise
    return Re2Gate(encoded)
