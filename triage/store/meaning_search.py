"""Search signatures, guides and clusters by meaning and by words together.

Both rankings are fused by reciprocal rank: sentence vectors find a paraphrase, full text finds names and codes that a
vector does not know. Only causes are compared, which are few; incidents come with their cause.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from triage.catalog.model import Signature
from triage.clusters import meaning
from triage.model.store import Cluster
from triage.store import fts_index

if TYPE_CHECKING:
    from triage.store.search import Search, SearchHit

Best = Callable[[str, Sequence[Sequence[str]]], list[float]]
_RANK = 20  # how fast the weight of a position falls
_DEPTH = 200  # positions of the full-text ranking that count


def build_index(known: Sequence[Signature]) -> fts_index.TextIndex:
    """Return a full-text index of signatures and guides."""
    return fts_index.TextIndex([cause_document(item) for item in known])


def search_text(
    index: fts_index.TextIndex, incidents: Search | None, text: str, limit: int
) -> tuple[list[int], list[SearchHit]]:
    """Return the numbers of the causes, and the incidents, that contain all words, best first.

    Where there are none, those that contain some of the words.
    """
    for some in (False, True):
        numbers = [number for number, _ in index.search(text, limit, some=some)]
        hits = incidents.search_text(text, limit=limit, some=some) if incidents is not None else []
        if numbers or hits:
            return numbers, hits
    return [], []


def search_by_meaning(
    known: Sequence[Signature],
    clusters: Sequence[Cluster],
    text: str,
    limit: int,
    *,
    best: Best = meaning.best_similarity,
) -> list[Signature | Cluster]:
    """Return signatures, guides and clusters that mean the same as `text`, best first.

    Raises OptionError when the model is not installed.
    """
    items: list[Signature | Cluster] = [*known, *clusters]
    scores = best(text, [passages(item) for item in items])
    by_meaning = sorted(range(len(items)), key=lambda number: (-scores[number], number))
    texts = [cause_document(item) for item in items]
    by_text = [number for number, _ in fts_index.search_documents(texts, text, _DEPTH)]
    return [items[number] for number in fuse_rankings(by_meaning, by_text)[:limit]]


def passages(item: Signature | Cluster) -> list[str]:
    """Return the sentences that describe a cause."""
    more = (item.name or "", item.note) if isinstance(item, Cluster) else (item.meaning, item.summary)
    return list(dict.fromkeys(text for text in (item.title, *more) if text))


def fuse_rankings(*rankings: Sequence[int]) -> list[int]:
    """Fuse rankings by reciprocal rank."""
    sums: dict[int, float] = {}
    for ranking in rankings:
        for place, number in enumerate(ranking):
            sums[number] = sums.get(number, 0.0) + 1.0 / (_RANK + place + 1)
    return sorted(sums, key=lambda number: (-sums[number], number))


def cause_document(item: Signature | Cluster) -> tuple[str, str, str]:
    """Return (name, title, body) of a cause for the full-text index."""
    if isinstance(item, Cluster):
        return item.id, item.name or item.title, f"{item.title} {item.note}"
    body = (item.meaning, item.impact, item.summary, *item.steps, *item.falsepositives)
    return item.id.replace(".", " "), item.title, " ".join(body)
