"""Search signatures, guides and clusters by meaning and by words together.

Both rankings are fused by reciprocal rank: sentence vectors find a paraphrase, full text finds names and codes that a
vector does not know. Both use the question and the words of the field for it (`glossary`). Signatures of a platform
that the question does not name come later. Only causes are compared, which are few; incidents come with their cause.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from triage.base.lazy_re import lazy_re
from triage.catalog.model import Signature
from triage.clusters import meaning
from triage.model.store import Cluster
from triage.store import fts_index, glossary

if TYPE_CHECKING:
    from triage.store.search import Search, SearchHit

Compare = Callable[[Sequence[str], Sequence[Sequence[str]]], list[float]]
_RANK = 20  # how fast the weight of a position falls
_DEPTH = 200  # positions of the full-text ranking that count
_BEST = 3  # passages of a document that count
_VECTOR_PENALTY = 0.1  # what a step away from the subject takes from the similarity
_TEXT_PENALTY = 0.3  # the share of the full-text score that it takes
_PLACEHOLDER = lazy_re(r"\s*(?:\b(?:on|of|at|in|from|for|to|with|by)\b\s*)?[(\"]*\{[^{}]*\}[)\"]*")


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


def compare_question(wordings: Sequence[str], documents: Sequence[Sequence[str]]) -> list[float]:
    """Return the similarity of a question with each document. Raises OptionError without the model."""
    return meaning.compare_wordings(wordings, documents, count=_BEST)


def search_by_meaning(
    known: Sequence[Signature],
    clusters: Sequence[Cluster],
    text: str,
    limit: int,
    *,
    compare: Compare = compare_question,
) -> list[Signature | Cluster]:
    """Return signatures, guides and clusters that mean the same as `text`, best first.

    Raises OptionError when the model is not installed.
    """
    items: list[Signature | Cluster] = [*known, *clusters]
    terms = " ".join(glossary.field_words(text))
    distances = [glossary.subject_distance(item, text) if isinstance(item, Signature) else 0.0 for item in items]
    similar = compare([text, f"{text} {terms}"] if terms else [text], [passages(item) for item in items])
    by_meaning = {number: score - _VECTOR_PENALTY * distances[number] for number, score in enumerate(similar)}
    matches = fts_index.search_documents([cause_document(item) for item in items], f"{terms} {text}".lstrip(), _DEPTH)
    by_text = {number: score * (1 - _TEXT_PENALTY * distances[number]) for number, score in matches}
    # The few words of a curator hold no full text to search: in its place their similarity counts again.
    most, closest = max(by_text.values(), default=1.0), max(similar, default=1.0)
    for number in range(len(known), len(items)):
        by_text[number] = max(by_text.get(number, 0.0), most * similar[number] / max(closest, 0.01))
    rankings = (sorted(scores, key=lambda number: (-scores[number], number)) for scores in (by_meaning, by_text))
    return [items[number] for number in fuse_rankings(*rankings)[:limit]]


def passages(item: Signature | Cluster) -> list[str]:
    """Return the sentences that describe a cause; of a row of a table, only what differs from row to row.

    The words of a curator replace the text of the error.
    """
    if isinstance(item, Cluster):
        texts = [item.name or item.title, item.note]
    else:
        texts = [item.title, item.meaning, _without_placeholders(item.summary)]
        texts += [] if item.table else [item.impact, *map(_without_placeholders, item.steps)]
    return list(dict.fromkeys(text for text in texts if text))


def _without_placeholders(text: str) -> str:
    return re.sub(r" {2,}", " ", _PLACEHOLDER.sub("", text)).strip()


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
