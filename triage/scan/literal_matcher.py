"""Find many literals at once: one automaton for all literals of the catalog and the generic triggers.

Hyperscan (in the `hyperscan` wheel) runs without the GIL at several GB/s. google-re2 gives the same answers at about
a fifth of the speed, for platforms that have no such wheel.

The automaton searches for windows, pieces of the literals (see windows.py). A window only selects the lines to search
for the literals that contain it, so the choice of windows changes the speed and never the result.

In a storm, where many literals occur, searching for all of them is slow. `Storm` learns which literals its slices
repeat, so that most of a slice is searched for windows of the other literals only.
"""

from __future__ import annotations

import contextlib
import copy
import threading
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

from triage.scan import database_cache
from triage.scan.database_cache import StoredDatabases
from triage.scan.interface import OVERLAP, LiteralMatcher, PossibleMatch
from triage.scan.literals_by_mask import LONGEST, LiteralsByMask
from triage.scan.windows import add_missing_windows, literals_by_window, replace_common_windows

# A matcher for the other literals is built once so many slices had the same ones; building takes as long as some
# hundred slices.
_MIN_SLICES = 128
_MAX_MATCHERS = 4
_MAX_KINDS = 4096
_UNLIMITED = 1 << 60
_MAX_REFITS = 3
_MAX_RARE = 2
# In so few bytes, counting one window after the other is faster than building an automaton.
_SMALL_SAMPLE = 1 << 17
# So many lines are searched for one literal after the other: building an automaton of all literals takes longer than
# reading a small job.
_LINES_WITHOUT_AUTOMATON = 256
# In a storm, the usual literals occur in the first bytes of a slice.
_SLICE_START = 1 << 14
# For fewer candidates `in` is faster than the mask of the line.
_MANY_CANDIDATES = 8


class Storm:
    """The literals that slices of a storm repeat; shared between the threads of a scan.

    `fast_path` has the usual literals and a matcher for all others, once both are known.
    """

    def __init__(self) -> None:
        self.fast_path: tuple[frozenset[int], LiteralMatcher] | None = None
        self._slice_counts: Counter[frozenset[int]] = Counter()
        self._matcher_count = 0
        self._lock = threading.Lock()

    def record_slice(self, literals: frozenset[int], build: Callable[[frozenset[int]], LiteralMatcher]) -> None:
        """Count a slice with these literals for which `fast_path` was of no use.

        `build` returns a matcher for all literals but those that it gets.
        """
        with self._lock:
            if len(self._slice_counts) >= _MAX_KINDS:
                self._slice_counts.clear()
            self._slice_counts[literals] += 1
            if self._slice_counts[literals] != _MIN_SLICES or self._matcher_count == _MAX_MATCHERS:
                return
            self._matcher_count += 1
        self.fast_path = (literals, build(literals))


class HyperscanMatcher:
    """Search with Hyperscan: databases of the windows, of all literals, and of the first match of each literal.

    A database is compiled, or loaded from the cache, at its first use and shared between threads. Each thread gets a
    matcher with scratch space of its own from `for_thread`.
    """

    def __init__(
        self,
        literals: Sequence[bytes],
        windows: Sequence[bytes],
        sample: bytes = b"",
        stored: StoredDatabases | None = None,
    ) -> None:
        import hyperscan

        self._hyperscan = hyperscan
        self._expressions = {
            "windows": stored.windows if stored else add_missing_windows(windows, literals),
            "all": list(literals),
            "first": list(literals),
        }
        self._serialized = dict(stored.databases) if stored else {}
        self._databases: dict[str, Any] = {}
        self._lock = threading.Lock()
        self._scratches: dict[str, tuple[Any, Any]] = {}
        self._lines_searched = _LINES_WITHOUT_AUTOMATON if sample or stored else 0
        self._by_mask = LiteralsByMask(self._expressions["all"])
        self._storm = Storm()
        self._literals_of = dict(zip(stored.windows, stored.window_literals, strict=True)) if stored else {}
        self._window_literals: list[tuple[int, ...]] | None = stored.window_literals if stored else None
        # The storm's matcher for unusual literals, and this thread's copy of it.
        self._thread_rest: tuple[LiteralMatcher, LiteralMatcher] | None = None
        self._fit_windows(sample)

    def dump(self, key: str) -> StoredDatabases:
        """Compile all databases and return them, to be stored under this key."""
        databases = {name: self._hyperscan.dumpb(self._database(name)) for name in self._expressions}
        return StoredDatabases(key, self._expressions["windows"], self._literals_by_window(), databases)

    def prepare(self, sample: bytes) -> None:
        """Do what forked processes would else do again each: compile databases, and learn a storm from the sample."""
        self._database("windows")
        slices = [sample[start : start + _SLICE_START] for start in range(0, len(sample), _SLICE_START)]
        counts = Counter(
            literal for part in slices for _, literal in self._scan("first", part, 0, len(part), _UNLIMITED)
        )
        usual = frozenset(literal for literal, count in counts.items() if 2 * count > len(slices))
        if usual and len(usual) < len(self._expressions["all"]):
            self._database("all")
            rest = self._build_without(usual, sample[: _SMALL_SAMPLE // 2])
            rest._database("windows")
            self._storm.fast_path = usual, rest

    def for_thread(self) -> HyperscanMatcher:
        """Return a matcher with the same databases and its own scratch space."""
        thread_matcher = copy.copy(self)
        thread_matcher._scratches = {}
        thread_matcher._thread_rest = None
        return thread_matcher

    def find(
        self, data: bytearray | bytes, start: int, stop: int, limit: int, *, exact: bool = False
    ) -> list[PossibleMatch]:
        """Return possible matches by the windows; with `exact` and in a storm, by all literals.

        In a storm, most lines with a window have some of its literals: finding them is faster than trying all of them.
        """
        if exact or self._storm.fast_path is not None:
            return [(end, (literal,)) for end, literal in self._scan("all", data, start, stop, limit)]
        matches = self._scan("windows", data, start, stop, limit)
        return [(end, self._literals_by_window()[window]) for end, window in matches] if matches else []

    def find_first(self, data: bytearray | bytes, start: int, stop: int) -> list[tuple[int, int]]:
        """Return the first match of each literal; in a storm most of it is searched for unusual literals only."""
        fast_path = self._storm.fast_path if stop - start > 2 * _SLICE_START else None
        if fast_path is not None:
            usual, rest = fast_path
            matches = self._scan("first", data, start, start + _SLICE_START, _UNLIMITED)
            if usual.issubset(literal for _, literal in matches) and not self._rest_for_this_thread(rest).find(
                data, max(start, start + _SLICE_START - OVERLAP), stop, 1
            ):
                return matches
        matches = self._scan("first", data, start, stop, _UNLIMITED)
        if 0 < len(matches) < len(self._expressions["all"]) and stop - start > 2 * _SLICE_START:
            self._storm.record_slice(
                frozenset(literal for _, literal in matches),
                lambda usual: self._build_without(usual, bytes(data[start:stop])),
            )
        return matches

    def literals_in(self, line: bytes, candidates: Collection[int] | None = None) -> tuple[int, ...]:
        """Return the literals in one line, by `in` for candidates and for the first lines, else by the automaton.

        `candidates` have all that are in the line.
        """
        literals = self._expressions["all"]
        if candidates is not None:
            if len(candidates) >= _MANY_CANDIDATES and len(line) <= LONGEST:
                return self._by_mask.find(line)
            return tuple(sorted([literal for literal in candidates if literals[literal] in line]))
        if self._lines_searched < _LINES_WITHOUT_AUTOMATON:
            self._lines_searched += 1
            return tuple(index for index, literal in enumerate(literals) if literal in line)
        matches: set[int] = set()
        add = matches.add
        database, scratch = self._database_with_scratch("all")
        database.scan(line, match_event_handler=lambda literal, *_: add(literal), scratch=scratch)
        return tuple(sorted(matches))

    def _literals_by_window(self) -> list[tuple[int, ...]]:
        """Return the literals that contain each window."""
        if self._window_literals is None:
            windows = self._expressions["windows"]
            new = [window for window in windows if window not in self._literals_of]
            self._literals_of.update(zip(new, literals_by_window(new, self._expressions["all"]), strict=True))
            self._window_literals = [self._literals_of[window] for window in windows]
        return self._window_literals

    def _scan(self, name: str, data: bytearray | bytes, start: int, stop: int, limit: int) -> list[tuple[int, int]]:
        matches: list[tuple[int, int]] = []
        append = matches.append

        def on_match(literal: int, _from: int, end: int, _flags: int, _context: object) -> bool | None:
            append((start + end, literal))
            return True if len(matches) >= limit else None

        database, scratch = self._database_with_scratch(name)
        with contextlib.suppress(self._hyperscan.ScanTerminated):  # raised when `limit` was reached
            database.scan(memoryview(data)[start:stop], match_event_handler=on_match, scratch=scratch)
        matches.sort()
        return matches

    def _rest_for_this_thread(self, rest: LiteralMatcher) -> LiteralMatcher:
        if self._thread_rest is None or self._thread_rest[0] is not rest:
            self._thread_rest = rest, rest.for_thread()
        return self._thread_rest[1]

    def _build_without(self, usual: frozenset[int], sample: bytes) -> HyperscanMatcher:
        """Build a matcher for all literals but the usual ones, with those of the windows that they contain."""
        others = [literal for number, literal in enumerate(self._expressions["all"]) if number not in usual]
        windows = [
            window
            for window, literals in zip(self._expressions["windows"], self._literals_by_window(), strict=True)
            if not usual.issuperset(literals)
        ]
        return HyperscanMatcher(others, windows, sample)

    def _database_with_scratch(self, name: str) -> tuple[Any, Any]:
        """Return a database and this thread's scratch space for it."""
        pair = self._scratches.get(name)
        if pair is None:
            database = self._database(name)
            pair = self._scratches[name] = (database, self._hyperscan.Scratch(database))
        return pair

    def _fit_windows(self, sample: bytes) -> None:
        """Replace the windows that are common in the sample; only what replaces them is checked again."""
        unchecked = self._expressions["windows"]
        refits = _MAX_REFITS if len(sample) > _SMALL_SAMPLE else bool(sample)
        for remaining in reversed(range(refits)):
            common = self._find_common_windows(sample, unchecked)
            if not common:
                break
            before = self._expressions["windows"]
            fitted = replace_common_windows(before, common, self._expressions["all"], last=not remaining)
            unchecked = sorted({*fitted}.difference(before))
            self._expressions["windows"] = fitted
            self._window_literals = None
            for cached in (self._serialized, self._databases, self._scratches):
                cached.pop("windows", None)

    def _find_common_windows(self, sample: bytes, unchecked: list[bytes]) -> set[bytes]:
        """Return the windows that match too often in the sample, in lines without any of their literals."""
        if len(sample) <= _SMALL_SAMPLE:
            return {window for window in unchecked if sample.count(window) > _MAX_RARE}
        counts: dict[int, int] = {}
        for end, window in self._scan_once(unchecked, sample):
            line = sample[sample.rfind(b"\n", 0, end) + 1 : end + 256].split(b"\n", 1)[0]
            literals = (self._expressions["all"][number] for number in self._literals_of[unchecked[window]])
            if counts.get(window, 0) < _MAX_RARE or not any(literal in line for literal in literals):
                counts[window] = counts.get(window, 0) + 1
        return {unchecked[window] for window, count in counts.items() if count > _MAX_RARE}

    def _scan_once(self, windows: list[bytes], sample: bytes) -> list[tuple[int, int]]:
        """Return the matches of some of the windows in the sample."""
        self._literals_by_window()
        if windows is self._expressions["windows"]:
            return self._scan("windows", sample, 0, len(sample), _UNLIMITED)
        if not windows:
            return []
        self._expressions["new windows"] = windows
        try:
            return self._scan("new windows", sample, 0, len(sample), _UNLIMITED)
        finally:
            for named in (self._expressions, self._databases, self._scratches):
                named.pop("new windows")

    def _database(self, name: str) -> Any:
        with self._lock:
            if name not in self._databases:
                self._databases[name] = self._load(name) or self._compile(name)
            return self._databases[name]

    def _load(self, name: str) -> Any:
        """Return a database from the cache, or None if there is none that this version and processor can use."""
        serialized = self._serialized.pop(name, None)
        try:
            return serialized and self._hyperscan.loadb(serialized, self._hyperscan.HS_MODE_BLOCK)
        except self._hyperscan.error:
            return None

    def _compile(self, name: str) -> Any:
        expressions = self._expressions[name]
        flags = int(self._hyperscan.HS_FLAG_SINGLEMATCH) if name == "first" else 0
        database = self._hyperscan.Database(mode=self._hyperscan.HS_MODE_BLOCK)
        database.compile(expressions=expressions, ids=list(range(len(expressions))), flags=flags, literal=True)
        return database


class Re2Matcher:
    """Search with google-re2: an alternation finds the lines, `in` decides which literals they contain."""

    def __init__(self, literals: Sequence[bytes]) -> None:
        import re2

        self._literals = tuple(literals)
        self._by_mask = LiteralsByMask(self._literals)
        options = re2.Options()
        options.encoding = re2.Options.Encoding.LATIN1
        options.max_mem = 1 << 28
        self._any = re2.compile(b"|".join(re2.escape(literal) for literal in literals), options)

    def prepare(self, sample: bytes) -> None:
        """Do nothing: everything is compiled."""

    def for_thread(self) -> Re2Matcher:
        """Return this matcher: threads can share it."""
        return self

    def find(
        self, data: bytearray | bytes, start: int, stop: int, limit: int, *, exact: bool = False
    ) -> list[PossibleMatch]:
        """Return the matches of any literal; which one it is stays open."""
        part = bytes(data[start:stop])
        matches: list[PossibleMatch] = []
        every_literal = range(len(self._literals))
        position = 0
        while len(matches) < limit and (match := self._any.search(part, position)) is not None:
            position = match.end()
            matches.append((start + position, every_literal))
        return matches

    def find_first(self, data: bytearray | bytes, start: int, stop: int) -> list[tuple[int, int]]:
        """Return the first match of each literal."""
        matches = [(data.find(literal, start, stop), index) for index, literal in enumerate(self._literals)]
        return sorted((at + len(self._literals[index]), index) for at, index in matches if at >= 0)

    def literals_in(self, line: bytes, candidates: Collection[int] | None = None) -> tuple[int, ...]:
        """Return the literals in one line."""
        if len(line) <= LONGEST:
            return self._by_mask.find(line)
        return tuple(index for index, literal in enumerate(self._literals) if literal in line)


def build(
    literals: Sequence[str],
    engine: str = "auto",
    windows: Sequence[str] = (),
    sample: bytes = b"",
    cache: Path | None = None,
) -> LiteralMatcher:
    """Compile `literals` into a matcher.

    `windows` (see windows.py) are fitted to `sample`, some bytes of what will be scanned. `engine` is auto, hyperscan
    or re2; auto uses re2 where Hyperscan is not installed. `cache` is the directory of compiled databases. Raises
    ImportError when the named engine is missing.
    """
    encoded = [literal.encode() for literal in literals]
    if engine != "re2":
        try:
            return _build_hyperscan(encoded, [window.encode() for window in windows], sample, cache)
        except ImportError:
            if engine == "hyperscan":
                raise
    return Re2Matcher(encoded)


def _build_hyperscan(
    literals: Sequence[bytes], windows: Sequence[bytes], sample: bytes, cache: Path | None
) -> HyperscanMatcher:
    stored = None
    if cache is not None:
        key = database_cache.compute_key(literals, windows)
        stored = database_cache.read_databases(cache, key)
        if stored is None:
            stored = HyperscanMatcher(literals, windows).dump(key)
            database_cache.write_databases(cache, stored)
    return HyperscanMatcher(literals, windows, sample, stored)
