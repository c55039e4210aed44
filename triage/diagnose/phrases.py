"""Parts of sentences about ranks."""

from __future__ import annotations

from collections.abc import Collection, Sequence


def agree(ranks: Collection[object], singular: str, plural: str) -> str:
    """Return the verb form for so many ranks (or files): `was` for rank 3, `were` for ranks 3 and 5."""
    return singular if len(ranks) == 1 else plural


def join_names(names: Sequence[str]) -> str:
    """Return `a`, `a and b` or `a, b and c`."""
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def shorten(text: str, longest: int) -> str:
    """Return at most `longest` characters of a line, cut between words, with an ellipsis for what is left out."""
    if len(text) <= longest:
        return text
    start = text[: longest - 1]
    whole = start.rpartition(" ")[0]
    return (whole.rstrip(" ,;:") if len(whole) * 2 > longest else start) + "…"


def capitalise(text: str) -> str:
    """Return the text as a sentence begins; the rest stays as it is."""
    return text[:1].upper() + text[1:]
