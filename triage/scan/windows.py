"""Windows: pieces of eight bytes such that every literal contains one of them.

The automaton hashes pairs of bytes and looks at the last eight of what it seeks: shorter pieces pass its filter too
often by chance, and
so do pieces of common pairs (1.2 GB/s on one core with pieces of four bytes, 2.2 with these). They are chosen once for
a catalog, away
from what healthy logs say, and then fitted to the job: those that turn out common there are given up for others.
"""

from __future__ import annotations

import heapq
import itertools
from collections import Counter
from collections.abc import Callable, Collection, Sequence

_WIDTH = 8
# A piece that healthy logs hold so often is no window. Rare ones may be: they let many literals share a window, and the
# job's own text decides.
_COMMON = 4
# A window all of whose pairs are together one in a hundred of a healthy log's is taken as gladly as one of rare pairs
# for half the literals.
_CHANCE = 100
_LETTERS = 3
_PREFIX = 4
_FLEETING = bytes(range(33)) + b"0123456789"


def choose(literals: Sequence[bytes], healthy: bytes) -> list[bytes]:
    """Windows that are rare in `healthy`, each shared by as many literals as possible; a literal without any stands for
    itself.
    """
    counts = Counter(healthy[index : index + _WIDTH] for index in range(len(healthy) - _WIDTH + 1))
    holders: dict[bytes, set[bytes]] = {}
    whole = _shortest(literals)
    for literal in whole:
        for piece in _pieces(literal):
            if counts[piece] < _COMMON and _is_steady(piece):
                holders.setdefault(piece, set()).add(literal)
    held = set().union(*holders.values())
    return sorted({*_cover(holders, _costs(holders, healthy)), *(literal for literal in whole if literal not in held)})


def _shortest(literals: Sequence[bytes]) -> list[bytes]:
    """Without literals that contain another one: where the longer stands, the shorter is found."""
    kept: dict[bytes, list[bytes]] = {}  # by how they begin, so that few are compared
    for literal in sorted(set(literals), key=lambda literal: (len(literal), literal)):
        starts = (kept.get(literal[index : index + _PREFIX], ()) for index in range(len(literal)))
        if not any(literal.startswith(known, index) for index, begun in enumerate(starts) for known in begun):
            kept.setdefault(literal[:_PREFIX], []).append(literal)
    return sorted(literal for begun in kept.values() for literal in begun)


def _costs(pieces: Collection[bytes], healthy: bytes) -> dict[bytes, float]:
    """What a window costs: one, and more the more often its pairs of bytes stand in healthy logs."""
    pairs = Counter(itertools.pairwise(healthy))
    return {
        piece: 1 + _CHANCE * sum(pairs[pair] for pair in itertools.pairwise(piece)) / max(1, len(healthy))
        for piece in pieces
    }


def _cover(holders: dict[bytes, set[bytes]], costs: dict[bytes, float]) -> set[bytes]:
    """Greedy set cover: pieces that hold all the literals, first the one that holds the most for what it costs."""
    todo = set().union(*holders.values())
    chosen: set[bytes] = set()
    queue = [(-len(held) / costs[piece], piece) for piece, held in holders.items()]
    heapq.heapify(queue)
    while todo:
        gain, piece = heapq.heappop(queue)
        held = holders[piece] & todo
        if -len(held) / costs[piece] == gain:
            chosen.add(piece)
            todo -= held
        elif held:
            heapq.heappush(queue, (-len(held) / costs[piece], piece))
    return chosen


def complete(windows: Collection[bytes], literals: Sequence[bytes]) -> list[bytes]:
    """`windows`, and every literal that contains none of them."""
    inside = _finder(windows)
    return sorted({*windows, *(literal for literal in literals if not inside(literal))})


def holders(windows: Sequence[bytes], literals: Sequence[bytes]) -> list[tuple[int, ...]]:
    """For each window the numbers of the literals that contain it."""
    inside = _finder(windows)
    held: dict[bytes, list[int]] = {window: [] for window in windows}
    for number, literal in enumerate(literals):
        for window in inside(literal):
            held[window].append(number)
    return [tuple(numbers) for numbers in held.values()]


def _finder(windows: Collection[bytes]) -> Callable[[bytes], set[bytes]]:
    """Finds the windows in a literal. Most are as long as each other and are looked up; the others are tried."""
    width = max(Counter(map(len, windows)).items(), key=lambda item: item[::-1], default=(1, 0))[0]
    alike = {window for window in windows if len(window) == width}
    others = [window for window in windows if len(window) != width]

    def inside(literal: bytes) -> set[bytes]:
        pieces = {literal[at : at + width] for at in range(len(literal) - width + 1)}
        return (alike & pieces).union(window for window in others if window in literal)

    return inside


def refit(
    windows: Collection[bytes], common: Collection[bytes], literals: Sequence[bytes], *, last: bool
) -> list[bytes]:
    """Give up the `common` windows: literals that had only those get a longer piece around it, in the `last` fitting
    themselves.
    """
    kept = set(windows).difference(common)
    bare = [
        literal
        for literal in literals
        if any(window in literal for window in common) and not any(window in literal for window in kept)
    ]
    return sorted(kept.union(bare if last else (_around(literal, common) for literal in bare)))


def _around(literal: bytes, common: Collection[bytes]) -> bytes:
    """The common window in the literal, longer by up to four bytes; the literal itself where nothing is left to add."""
    window = max(
        (window for window in common if window in literal), key=lambda window: (len(window), window), default=literal
    )
    start = literal.find(window)
    return literal[max(0, start - 2) : start + len(window) + 2] if len(window) + 2 < len(literal) else literal


def _is_steady(piece: bytes) -> bool:
    """Numbers and blanks come and go with the steps of a job: `step 9000` is rare until then."""
    return piece.isascii() and len(piece.translate(None, _FLEETING)) >= _LETTERS


def _pieces(literal: bytes) -> list[bytes]:
    return [literal[index : index + _WIDTH] for index in range(len(literal) - _WIDTH + 1)]
