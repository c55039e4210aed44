"""Recognises known prefixes in all lines of a chunk at once: an automaton over bytes whose states are stepped for all
lines together.

It learns prefixes one by one from lines that were parsed the slow way; the digits of stamps stand for any digit.
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
LONGEST = 160
_WORD = 8
_DIGITS = range(0x30, 0x3A)
_DEAD, _ROOT = 0, 1
_MOST_STATES = 1 << 16


class Automaton:
    """State 0 is dead, 1 the start. `accept[state]` is the entry whose prefix ends there, or -1."""

    def __init__(self) -> None:
        import numpy as np

        self._np = np
        self._table = np.zeros((256, 256), np.int32)
        self._accept = np.full(256, -1, np.int32)
        self._states = 2
        self._wild: set[int] = set()
        self._depths: set[int] = set()
        self._common = b""

    @property
    def reach(self) -> int:
        """The length of the longest prefix known."""
        return max(self._depths, default=0)

    def add(self, path: list[int], entry: int) -> bool:
        """Teach a prefix: bytes, or ANY_DIGIT. False when it cannot be told from another one byte by byte."""
        if not 0 < len(path) <= LONGEST or self._states + len(path) > _MOST_STATES:
            return False
        state = _ROOT
        for depth, step in enumerate(path):
            following = self._next(state, step)
            if following is None:
                return False
            if following == _DEAD:
                self._extend(state, path[depth:], entry)
                self._know(path)
                return True
            state = following
        if self._accept[state] not in (-1, entry):
            return False
        self._accept[state] = entry
        self._know(path)
        return True

    def _know(self, path: list[int]) -> None:
        exact = bytes(itertools.takewhile(lambda step: step != ANY_DIGIT, path[:_WORD]))
        same = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(self._common, exact, strict=False))
        self._common = bytes(byte for byte, _ in same) if self._depths else exact
        self._depths.add(len(path))

    def _next(self, state: int, step: int) -> int | None:
        """The state that follows; dead when there is none, None where digits are told apart by some prefixes and not by
        others.
        """
        if step == ANY_DIGIT:
            found = {int(self._table[state, digit]) for digit in _DIGITS}
            return next(iter(found)) if len(found) == 1 and found <= self._wild | {_DEAD} else None
        following = int(self._table[state, step])
        return None if following in self._wild else following

    def _extend(self, state: int, path: list[int], entry: int) -> None:
        np = self._np
        while self._states + len(path) > len(self._table):
            self._table = np.concatenate((self._table, np.zeros_like(self._table)))
            self._accept = np.concatenate((self._accept, np.full_like(self._accept, -1)))
        for step in path:
            following = self._states
            self._states += 1
            if step == ANY_DIGIT:
                self._wild.add(following)
                self._table[state, _DIGITS.start : _DIGITS.stop] = following
            else:
                self._table[state, step] = following
            state = following
        self._accept[state] = entry

    def run(self, data: Bytes, starts: Places) -> tuple[Ints, Places]:
        """For every line the entry of its longest known prefix (or -1) and where that ends. `data` must go on for
        LONGEST bytes behind.
        """
        np = self._np
        entry = np.full(len(starts), -1, np.int32)
        end = starts.copy()
        if not self._depths or not len(starts):
            return entry, end
        table, (depth, begin) = self._table.ravel(), self._begin()
        live = np.flatnonzero(alike(data, starts, self._common[:depth]))
        state, at = np.full(len(live), begin, np.int32), starts.take(live) + depth
        while len(live) and depth < self.reach:
            state = table.take((state << 8) + data.take(at))
            at += 1
            depth += 1
            if depth in self._depths:
                told = self._accept.take(state)
                hit = np.flatnonzero(told >= 0)
                where = live.take(hit)
                entry[where] = told.take(hit)
                end[where] = at.take(hit)
            elif depth - 1 not in self._depths:
                continue
            alive = np.flatnonzero(state)  # most lines end with the prefix that was just told
            if len(alive) < len(state):
                live, state, at = live.take(alive), state.take(alive), at.take(alive)
        return entry, end

    def _begin(self) -> tuple[int, int]:
        """How many bytes all prefixes have in common, none of them whole, and the state behind those."""
        depth, state = min(len(self._common), min(self._depths) - 1), _ROOT
        for byte in self._common[:depth]:
            state = int(self._table[state, byte])
        return depth, state


def alike(data: Bytes, places: Places, text: bytes) -> Bools:
    """At which of `places` `text` stands, by comparing words of eight bytes: no more of it is looked at. `data` must go
    on behind.
    """
    import numpy as np

    exact, mask = (
        np.frombuffer(part[:_WORD].ljust(_WORD, b"\0"), np.uint64)[0] for part in (text, b"\xff" * len(text))
    )
    words = np.ndarray((len(data) - _WORD,), np.uint64, data, strides=(1,))
    found: Bools = (words[places] & mask) == exact
    return found
