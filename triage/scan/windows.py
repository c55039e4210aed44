"""Windows: few short pieces such that every literal contains one of them.

A thousand literals make a slow automaton, a hundred pieces of four bytes a fast one (2.2 against 0.6 GB/s on one core). They are chosen once for
a catalog, rare in a corpus of healthy logs, and then fitted to the job: those that turn out common there are given up for others.
"""

from __future__ import annotations

import heapq
import re
from collections import Counter
from collections.abc import Collection, Sequence

_WIDTHS = (4, 6, 8)
# A piece that healthy logs hold so often is no window. Rare ones may be: they let many literals share a window, and the job's own text decides.
_COMMON = 4
_FLEETING = bytes(range(33)) + b"0123456789"


def choose(literals: Sequence[bytes], healthy: bytes) -> list[bytes]:
    """Windows that are rare in `healthy`, each shared by as many literals as possible; a literal without any stands for itself."""
    chosen: set[bytes] = set()
    left = _shortest(literals)
    for width in _WIDTHS:
        counts = Counter(healthy[index : index + width] for index in range(len(healthy) - width + 1))
        common = {piece for piece, count in counts.items() if count >= _COMMON}
        holders: dict[bytes, set[bytes]] = {}
        for literal in left:
            for piece in _pieces(literal, width):
                if piece not in common and _is_steady(piece):
                    holders.setdefault(piece, set()).add(literal)
        covered = _cover(holders, chosen)
        left = [literal for literal in left if literal not in covered]
    return sorted(chosen.union(left))


def _shortest(literals: Sequence[bytes]) -> list[bytes]:
    """Without literals that contain another one: where the longer stands, the shorter is found."""
    kept: dict[bytes, list[bytes]] = {}  # by how they begin, so that few are compared
    for literal in sorted(set(literals), key=lambda literal: (len(literal), literal)):
        starts = (kept.get(literal[index : index + _WIDTHS[0]], ()) for index in range(len(literal)))
        if not any(literal.startswith(known, index) for index, begun in enumerate(starts) for known in begun):
            kept.setdefault(literal[: _WIDTHS[0]], []).append(literal)
    return sorted(literal for begun in kept.values() for literal in begun)


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


def complete(windows: Collection[bytes], literals: Sequence[bytes]) -> list[bytes]:
    """`windows`, and every literal that contains none of them."""
    if not windows:
        return sorted(set(literals))
    some = re.compile(b"|".join(re.escape(window) for window in windows))
    return sorted({*windows, *(literal for literal in literals if some.search(literal) is None)})


def refit(windows: Collection[bytes], common: Collection[bytes], literals: Sequence[bytes], *, last: bool) -> list[bytes]:
    """Give up the `common` windows: literals that had only those get a longer piece around it, in the `last` fitting themselves."""
    kept = set(windows).difference(common)
    bare = [
        literal for literal in literals if any(window in literal for window in common) and not any(window in literal for window in kept)
    ]
    return sorted(kept.union(bare if last else (_around(literal, common) for literal in bare)))


def _around(literal: bytes, common: Collection[bytes]) -> bytes:
    """The common window in the literal, longer by up to four bytes; the literal itself where nothing is left to add."""
    window = max((window for window in common if window in literal), key=lambda window: (len(window), window), default=literal)
    start = literal.find(window)
    return literal[max(0, start - 2) : start + len(window) + 2] if len(window) + 2 < len(literal) else literal


def _is_steady(piece: bytes) -> bool:
    """Numbers and blanks come and go with the steps of a job: `   9` is rare until step 9000."""
    letters = len(piece.translate(None, _FLEETING))
    return piece.isascii() and (letters >= 3 if len(piece) == _WIDTHS[0] else letters >= 2)


def _pieces(literal: bytes, width: int) -> list[bytes]:
    return [literal[index : index + width] for index in range(max(1, len(literal) - width + 1))]
