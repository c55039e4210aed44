"""The same mutations at every run, for tests without a fuzzer."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

INTERESTING = (b"\0" * 4, b"\xff" * 8, b"\x7f\xff\xff\xff", b"9" * 40, b"-1", b"\n\n", b"\xed\xa0\x80", b"{[" * 20)


def mutate(seeds: Sequence[bytes], tokens: Sequence[str], count: int, seed: int) -> Iterator[bytes]:
    """Yield `count` inputs, each made of a seed by one to six changes."""
    pick = random.Random(seed)
    pieces = [*INTERESTING, *(token.encode() for token in tokens)]
    for _ in range(count):
        data = bytearray(pick.choice(seeds))
        for _ in range(pick.choice((1, 1, 2, 3, 6))):
            _change(data, pick, pieces, seeds)
        yield bytes(data)


def _change(data: bytearray, pick: random.Random, pieces: Sequence[bytes], seeds: Sequence[bytes]) -> None:
    """Change some bytes: flip, overwrite, insert, remove, repeat, or join with another seed."""
    at = pick.randrange(len(data) + 1)
    end = min(len(data), at + pick.choice((1, 4, 16, 200)))
    match pick.randrange(6):
        case 0 if at < len(data):
            data[at] ^= 1 << pick.randrange(8)
        case 1:
            piece = pick.choice(pieces)
            data[at : at + len(piece)] = piece
        case 2:
            data[at:at] = pick.choice(pieces)
        case 3:
            del data[at:end]
        case 4:
            data[at:at] = data[at:end] * pick.choice((2, 9, 50))
        case _:
            data[at:] = pick.choice(seeds)[at:]
