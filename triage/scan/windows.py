"""Choose windows: pieces of eight bytes such that every literal contains one of them.

The automaton hashes pairs of bytes and uses the last eight bytes of each pattern. Shorter pieces and pieces of common
pairs pass its filter too often by chance (1.2 GB/s on one core with pieces of four bytes, 2.2 with these). Windows are
chosen once per catalog, to be rare in healthy logs, and then fitted to the job: those that are common there are
replaced.
"""

from __future__ import annotations

import heapq
import itertools
from collections import Counter
from collections.abc import Callable, Collection, Sequence

_WIDTH = 8
# A piece that healthy logs contain so often is not a window. Rarer ones may be: many literals can share them, and they
# are fitted to the job.
_COMMON = 4
# A window whose pairs together make up 1 % of the pairs of healthy logs costs twice as much as one of rare pairs.
_CHANCE = 100
_LETTERS = 3
_PREFIX = 4
_CHANGING = bytes(range(33)) + b"0123456789"


def choose_windows(literals: Sequence[bytes], healthy: bytes) -> list[bytes]:
    """Return windows that are rare in `healthy`, each shared by as many literals as possible.

    A literal without a rare piece is its own window.
    """
    counts = Counter(healthy[index : index + _WIDTH] for index in range(len(healthy) - _WIDTH + 1))
    literals_by_piece: dict[bytes, set[bytes]] = {}
    shortest = _drop_superstrings(literals)
    for literal in shortest:
        for piece in _pieces(literal):
            if counts[piece] < _COMMON and _is_steady(piece):
                literals_by_piece.setdefault(piece, set()).add(literal)
    covered = set().union(*literals_by_piece.values())
    windows = _cover(literals_by_piece, _window_costs(literals_by_piece, healthy))
    return sorted({*windows, *(literal for literal in shortest if literal not in covered)})


def _drop_superstrings(literals: Sequence[bytes]) -> list[bytes]:
    """Return the literals that contain no other one: where a longer one occurs, the shorter one is found."""
    remaining: dict[bytes, list[bytes]] = {}  # by their first bytes, so that few are compared
    for literal in sorted(set(literals), key=lambda literal: (len(literal), literal)):
        starts = (remaining.get(literal[index : index + _PREFIX], ()) for index in range(len(literal)))
        if not any(
            literal.startswith(other, index) for index, same_prefix in enumerate(starts) for other in same_prefix
        ):
            remaining.setdefault(literal[:_PREFIX], []).append(literal)
    return sorted(literal for same_prefix in remaining.values() for literal in same_prefix)


def _window_costs(pieces: Collection[bytes], healthy: bytes) -> dict[bytes, float]:
    """Return the cost of each window: one, plus a share for how often healthy logs contain its pairs of bytes."""
    pairs = Counter(itertools.pairwise(healthy))
    return {
        piece: 1 + _CHANCE * sum(pairs[pair] for pair in itertools.pairwise(piece)) / max(1, len(healthy))
        for piece in pieces
    }


def _cover(literals_by_piece: dict[bytes, set[bytes]], costs: dict[bytes, float]) -> set[bytes]:
    """Choose pieces that cover all literals, greedily: first the one that covers the most for its cost."""
    uncovered = set().union(*literals_by_piece.values())
    chosen: set[bytes] = set()
    queue = [(-len(covered) / costs[piece], piece) for piece, covered in literals_by_piece.items()]
    heapq.heapify(queue)
    while uncovered:
        gain, piece = heapq.heappop(queue)
        covered = literals_by_piece[piece] & uncovered
        if -len(covered) / costs[piece] == gain:
            chosen.add(piece)
            uncovered -= covered
        elif covered:
            heapq.heappush(queue, (-len(covered) / costs[piece], piece))
    return chosen


def add_missing_windows(windows: Collection[bytes], literals: Sequence[bytes]) -> list[bytes]:
    """Return `windows` and every literal that contains none of them."""
    windows_in = _window_finder(windows)
    return sorted({*windows, *(literal for literal in literals if not windows_in(literal))})


def literals_by_window(windows: Sequence[bytes], literals: Sequence[bytes]) -> list[tuple[int, ...]]:
    """Return, for each window, the numbers of the literals that contain it."""
    windows_in = _window_finder(windows)
    covered: dict[bytes, list[int]] = {window: [] for window in windows}
    for number, literal in enumerate(literals):
        for window in windows_in(literal):
            covered[window].append(number)
    return [tuple(numbers) for numbers in covered.values()]


def _window_finder(windows: Collection[bytes]) -> Callable[[bytes], set[bytes]]:
    """Return a function that finds the windows in a literal: those of the usual length by lookup, others by prefix."""
    width = max(Counter(map(len, windows)).items(), key=lambda item: item[::-1], default=(1, 0))[0]
    alike = {window for window in windows if len(window) == width}
    prefix = min((_PREFIX, *map(len, windows)))
    others: dict[bytes, list[bytes]] = {}
    for window in windows:
        if len(window) != width:
            others.setdefault(window[:prefix], []).append(window)

    def windows_in(literal: bytes) -> set[bytes]:
        present = alike.intersection(literal[at : at + width] for at in range(len(literal) - width + 1))
        for at in range(len(literal) - prefix + 1) if others else ():
            for window in others.get(literal[at : at + prefix], ()):
                if literal.startswith(window, at):
                    present.add(window)
        return present

    return windows_in


def replace_common_windows(
    windows: Collection[bytes], common: Collection[bytes], literals: Sequence[bytes], *, last: bool
) -> list[bytes]:
    """Return the windows without the `common` ones, which are replaced for literals that have no other.

    The replacement is a longer piece around the common window, or the whole literal in the `last` fitting.
    """
    remaining = set(windows).difference(common)
    uncovered = [
        literal
        for literal in literals
        if any(window in literal for window in common) and not any(window in literal for window in remaining)
    ]
    return sorted(remaining.union(uncovered if last else (_widen_window(literal, common) for literal in uncovered)))


def _widen_window(literal: bytes, common: Collection[bytes]) -> bytes:
    """Return the common window in the literal with up to four bytes more; the literal itself if that is not longer."""
    window = max(
        (window for window in common if window in literal), key=lambda window: (len(window), window), default=literal
    )
    start = literal.find(window)
    return literal[max(0, start - 2) : start + len(window) + 2] if len(window) + 2 < len(literal) else literal


def _is_steady(piece: bytes) -> bool:
    """Whether the piece has enough letters: numbers and blanks change with each step, so `step 9000` is not steady."""
    return piece.isascii() and len(piece.translate(None, _CHANGING)) >= _LETTERS


def _pieces(literal: bytes) -> list[bytes]:
    return [literal[index : index + _WIDTH] for index in range(len(literal) - _WIDTH + 1)]
