"""Recognise known prefixes in all lines of a chunk at once: an automaton over bytes, stepped for all lines together.

It learns prefixes one by one, from lines that the grammars have parsed. In timestamps, any digit matches any digit.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int32]
    Places = NDArray[np.intp]
    Bytes = NDArray[np.uint8]
    Bools = NDArray[np.bool_]

ANY_DIGIT = -1
LONGEST_PREFIX = 160
_CPU_WORD = 8
_DIGITS = range(0x30, 0x3A)
_DEAD, _ROOT = 0, 1
_MOST_STATES = 1 << 16


class PrefixAutomaton:
    """State 0 is dead, state 1 the start. `_accept[state]` is the entry whose prefix ends there, or -1."""

    def __init__(self) -> None:
        import numpy as np

        self._np = np
        self._table = np.zeros((256, 256), np.int32)
        self._accept = np.full(256, -1, np.int32)
        self._states = 2
        self._digit_states: set[int] = set()
        self._lengths: set[int] = set()
        self._common = b""

    @property
    def longest(self) -> int:
        """The length of the longest known prefix."""
        return max(self._lengths, default=0)

    def add(self, prefix: list[int], entry: int) -> bool:
        """Add a prefix of bytes and ANY_DIGIT. Returns False when it cannot be told from another prefix bytewise."""
        if not 0 < len(prefix) <= LONGEST_PREFIX or self._states + len(prefix) > _MOST_STATES:
            return False
        state = _ROOT
        for depth, step in enumerate(prefix):
            target = self._next_state(state, step)
            if target is None:
                return False
            if target == _DEAD:
                self._extend(state, prefix[depth:], entry)
                self._register(prefix)
                return True
            state = target
        if self._accept[state] not in (-1, entry):
            return False
        self._accept[state] = entry
        self._register(prefix)
        return True

    def _register(self, prefix: list[int]) -> None:
        exact = bytes(itertools.takewhile(lambda step: step != ANY_DIGIT, prefix[:_CPU_WORD]))
        same = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(self._common, exact, strict=False))
        self._common = bytes(byte for byte, _ in same) if self._lengths else exact
        self._lengths.add(len(prefix))

    def _next_state(self, state: int, step: int) -> int | None:
        """Return the next state; _DEAD when there is none, None where one prefix has this digit and one any digit."""
        if step == ANY_DIGIT:
            targets = {int(self._table[state, digit]) for digit in _DIGITS}
            return next(iter(targets)) if len(targets) == 1 and targets <= self._digit_states | {_DEAD} else None
        target = int(self._table[state, step])
        return None if target in self._digit_states else target

    def _extend(self, state: int, steps: list[int], entry: int) -> None:
        np = self._np
        while self._states + len(steps) > len(self._table):
            self._table = np.concatenate((self._table, np.zeros_like(self._table)))
            self._accept = np.concatenate((self._accept, np.full_like(self._accept, -1)))
        for step in steps:
            target = self._states
            self._states += 1
            if step == ANY_DIGIT:
                self._digit_states.add(target)
                self._table[state, _DIGITS.start : _DIGITS.stop] = target
            else:
                self._table[state, step] = target
            state = target
        self._accept[state] = entry

    def run(self, data: Bytes, starts: Places) -> tuple[Ints, Places]:
        """Return for every line the entry of its longest known prefix (or -1), and where that prefix ends.

        `data` must have LONGEST_PREFIX bytes behind the last line.
        """
        np = self._np
        entry = np.full(len(starts), -1, np.int32)
        end = starts.copy()
        if not self._lengths or not len(starts):
            return entry, end
        table, (depth, begin) = self._table.ravel(), self._common_start()
        live = np.flatnonzero(matches_at(data, starts, self._common[:depth]))
        state, at = np.full(len(live), begin, np.int32), starts.take(live) + depth
        while len(live) and depth < self.longest:
            state = table.take((state << 8) + data.take(at))
            at += 1
            depth += 1
            if depth in self._lengths:
                accepted = self._accept.take(state)
                hits = np.flatnonzero(accepted >= 0)
                lines = live.take(hits)
                entry[lines] = accepted.take(hits)
                end[lines] = at.take(hits)
            elif depth - 1 not in self._lengths:
                continue
            alive = np.flatnonzero(state)  # most lines end with the prefix that was just accepted
            if len(alive) < len(state):
                live, state, at = live.take(alive), state.take(alive), at.take(alive)
        return entry, end

    def _common_start(self) -> tuple[int, int]:
        """Return how many bytes all prefixes share (less than the shortest), and the state behind them."""
        depth, state = min(len(self._common), min(self._lengths) - 1), _ROOT
        for byte in self._common[:depth]:
            state = int(self._table[state, byte])
        return depth, state


def matches_at(data: Bytes, places: Places, text: bytes) -> Bools:
    """Return at which of `places` the first eight bytes of `text` stand. `data` must have eight more bytes behind."""
    import numpy as np

    exact, mask = (
        np.frombuffer(part[:_CPU_WORD].ljust(_CPU_WORD, b"\0"), np.uint64)[0] for part in (text, b"\xff" * len(text))
    )
    blocks = np.ndarray((len(data) - _CPU_WORD,), np.uint64, data, strides=(1,))
    equal: Bools = (blocks[places] & mask) == exact
    return equal
