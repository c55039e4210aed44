"""How ranks, hosts and files are named in a sentence."""

from __future__ import annotations

from collections.abc import Sequence


def say_ranks(ranks: Sequence[int]) -> str:
    """`rank 3`, `ranks 0-2, 5`."""
    parts: list[list[int]] = []
    for rank in sorted(set(ranks)):
        if parts and rank == parts[-1][-1] + 1:
            parts[-1][1:] = [rank]
        else:
            parts.append([rank])
    shown = ["-".join(map(str, part)) for part in parts[:8]]
    more = f" and {len(parts) - 8} more ranges" if len(parts) > 8 else ""
    return f"{'rank' if len(set(ranks)) == 1 else 'ranks'} {', '.join(shown)}{more}"


def say_who(who: tuple[Sequence[int], Sequence[str]]) -> str:
    """Ranks, and hosts or files by name where no rank is known."""
    ranks, names = who
    said = [say_ranks(ranks)] if ranks else []
    if names:
        said.append(", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else ""))
    return " and ".join(said)
