"""How ranks are said in a sentence."""

from __future__ import annotations

from collections.abc import Iterable

_SHOWN = 16  # ranges, or ranks


def say_ranks(ranks: Iterable[int]) -> str:
    """`rank 3`, `ranks 0-2, 5`; of very many the first."""
    numbers = sorted(ranks)
    if not numbers:
        return "no known rank"
    parts: list[str] = []
    first = last = numbers[0]
    for rank in (*numbers[1:], -1):
        if rank != last + 1:
            parts.append(str(first) if first == last else f"{first}-{last}" if last > first + 1 else f"{first}, {last}")
            first = rank
        last = rank
    more = max(0, len(parts) - _SHOWN)
    text = ", ".join(parts[:_SHOWN]) + (f" and {more} more" if more > 1 else f", {parts[-1]}" if more else "")
    return f"rank {text}" if len(numbers) == 1 else f"ranks {text}"
