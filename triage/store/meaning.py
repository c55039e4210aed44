"""What somebody describes in their own words, found by meaning and by words together.

Both rankings are fused by reciprocal rank: sentence vectors find a paraphrase, full text finds names and codes that no
vector knows.
Only causes are compared (signatures, guides, clusters), which are few; incidents come with their cause.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from triage.catalog.model import Signature
from triage.clusters import meaning
from triage.model.store import Cluster
from triage.store import pages

if TYPE_CHECKING:
    from triage.store.search import Hit, Search

Best = Callable[[str, Sequence[Sequence[str]]], list[float]]
_RANK = 20  # how fast the weight of a place falls
_DEPTH = 200  # places of the full text that count


def index(known: Sequence[Signature]) -> pages.Words:
    """The texts of signatures and guides, to be asked for words."""
    return pages.Words([document(item) for item in known])


def everywhere(causes: pages.Words, incidents: Search | None, words: str, limit: int) -> tuple[list[int], list[Hit]]:
    """Numbers of the causes and incidents that have all the words, best first: full text alone. Where nothing has, what
    has some of them.
    """
    for some in (False, True):
        numbers = [number for number, _ in causes.found(words, limit, some=some)]
        hits = incidents.text(words, limit=limit, some=some) if incidents is not None else []
        if numbers or hits:
            return numbers, hits
    return [], []


def causes(
    known: Sequence[Signature], clusters: Sequence[Cluster], words: str, limit: int, *, best: Best = meaning.best
) -> list[Signature | Cluster]:
    """Signatures, guides and clusters that mean what `words` say, best first. Raises OptionError where the model is not
    installed.
    """
    everything: list[Signature | Cluster] = [*known, *clusters]
    scores = best(words, [passages(item) for item in everything])
    near = sorted(range(len(everything)), key=lambda number: (-scores[number], number))
    texts = [document(item) for item in everything]
    told = [number for number, _ in pages.found(texts, words, _DEPTH)]
    return [everything[number] for number in fused(near, told)[:limit]]


def passages(item: Signature | Cluster) -> list[str]:
    """The sentences that stand for a cause."""
    said = (
        (item.title, item.name or "", item.note)
        if isinstance(item, Cluster)
        else (item.title, item.meaning, item.summary)
    )
    return list(dict.fromkeys(text for text in said if text))


def fused(*rankings: Sequence[int]) -> list[int]:
    """One ranking of several: each place counts for the less, the deeper it is."""
    sums: dict[int, float] = {}
    for ranking in rankings:
        for place, number in enumerate(ranking):
            sums[number] = sums.get(number, 0.0) + 1.0 / (_RANK + place + 1)
    return sorted(sums, key=lambda number: (-sums[number], number))


def document(item: Signature | Cluster) -> tuple[str, str, str]:
    """What the full text has of a cause: (name, title, body)."""
    if isinstance(item, Cluster):
        return item.id, item.name or item.title, f"{item.title} {item.note}"
    body = (item.meaning, item.impact, item.summary, *item.steps, *item.falsepositives)
    return item.id.replace(".", " "), item.title, " ".join(body)
