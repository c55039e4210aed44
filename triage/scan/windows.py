"""Windows: few short pieces such that every literal contains one of them.

A thousand literals make a slow automaton, a hundred pieces of four bytes a fast one (2.2 against 0.6 GB/s on one core). They are chosen once for
a catalog, absent from a corpus of healthy logs, and then fitted to the job: those that turn out common there are given up for others.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Sequence

_WIDTHS = (4, 6, 8)


def choose(literals: Sequence[bytes], healthy: bytes) -> list[bytes]:
    """Windows that `healthy` does not hold, each shared by as many literals as possible; a literal without any stands for itself."""
    chosen: set[bytes] = set()
    left = sorted(set(literals))
    for width in _WIDTHS:
        common = {healthy[index : index + width] for index in range(len(healthy) - width + 1)}
        holders: dict[bytes, set[bytes]] = {}
        for literal in left:
            for piece in _pieces(literal, width):
                if piece not in common and piece.isascii():
                    holders.setdefault(piece, set()).add(literal)
        covered = _cover(holders, chosen)
        left = [literal for literal in left if literal not in covered]
    return sorted(chosen.union(left))


def _cover(holders: dict[bytes, set[bytes]], chosen: set[bytes]) -> set[bytes]:
    """Greedy set cover, the most shared piece first; adds to `chosen` and gives the literals covered."""
    todo = set().union(*holders.values())
    covered = set(todo)
    queue = [(-len(held), piece) for piece, held in holders.items()]
    heapq.heapify(queue)
    while todo:
        size, piece = heapq.heappop(queue)
        held = holders[piece] & todo
        if len(held) == -size:
            chosen.add(piece)
            todo -= held
        elif held:
            heapq.heappush(queue, (-len(held), piece))
    return covered


def complete(windows: Sequence[bytes], literals: Sequence[bytes]) -> list[bytes]:
    """`windows`, and every literal that contains none of them."""
    return sorted({*windows, *(literal for literal in literals if not any(window in literal for window in windows))})


def refit(windows: Collection[bytes], common: Collection[bytes], literals: Sequence[bytes]) -> list[bytes]:
    """Give up the `common` windows: literals that had only those get a longer piece around it, or themselves."""
    kept = sorted(set(windows).difference(common))
    bare = [literal for literal in literals if not any(window in literal for window in kept)]
    longer = {literal: _around(literal, common) for literal in bare}
    return sorted({*kept, *longer.values()})


def _around(literal: bytes, common: Collection[bytes]) -> bytes:
    """The common window in the literal, longer by up to four bytes; the literal itself where nothing is left to add."""
    window = max((window for window in common if window in literal), key=lambda window: (len(window), window), default=literal)
    start = literal.find(window)
    return literal[max(0, start - 2) : start + len(window) + 2] if len(window) + 2 < len(literal) else literal


def _pieces(literal: bytes, width: int) -> list[bytes]:
    return [literal[index : index + width] for index in range(max(1, len(literal) - width + 1))]
