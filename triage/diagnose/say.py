"""How ranks are said in a sentence."""

from __future__ import annotations

from collections.abc import Iterable


def say_ranks(ranks: Iterable[int]) -> str:
    """`rank 3`, `ranks 0-2, 5`."""
    numbers = sorted(ranks)
    if not numbers:
        return "no known rank"
    parts: list[list[int]] = []
    for rank in numbers:
        if parts and rank == parts[-1][-1] + 1:
            parts[-1][1:] = [rank]
        else:
            parts.append([rank])
    text = ", ".join("-".join(map(str, part)) if len(part) > 1 and part[1] > part[0] + 1 else ", ".join(map(str, part)) for part in parts)
    return f"rank {text}" if len(numbers) == 1 else f"ranks {text}"
