"""Which clusters a person might want to merge: near in letters, never merged by a program.

Character n-grams find spellings and inflections that whole words miss. The engine behind `Similarity` can be another;
it only ranks.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from triage.base.errors import OptionError
from triage.clusters.assign import near
from triage.clusters.fingerprint import words
from triage.clusters.model import Near
from triage.model.diagnosis import Fingerprint

LEAST = 0.35


class Similarity(Protocol):
    """How near `text` is to each of `others`, 0 to 1, in their order."""

    def __call__(self, text: str, others: Sequence[str]) -> list[float]: ...


def tfidf(text: str, others: Sequence[str]) -> list[float]:
    """Cosine of TF-IDF over character 3- to 5-grams. Raises OptionError without scikit-learn."""
    try:
        from sklearn.feature_extraction.text import TfidfVectorizer
    except ImportError as error:
        raise OptionError("suggestions need scikit-learn", hint="pip install 'triage-kb[similar]'") from error
    vectors = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5), lowercase=True, sublinear_tf=True).fit_transform(
        [text, *others]
    )
    return [float(value) for value in (vectors[1:] @ vectors[0].T).toarray().ravel()]


def suggestions(
    failure: Fingerprint,
    others: Sequence[tuple[str, Fingerprint]],
    rejected: Collection[frozenset[str]] = (),
    *,
    similarity: Similarity = tfidf,
    most: int = 5,
) -> tuple[Near, ...]:
    """The nearest clusters among `others` (cluster, one of its fingerprints) under the same guard, nearest first, each
    cluster once.

    `rejected` are pairs of keys that a person refused before.
    """
    able = [
        (cluster, other)
        for cluster, other in others
        if other.guard == failure.guard
        and other.key != failure.key
        and frozenset((other.key, failure.key)) not in rejected
    ]
    if not able or not failure.anchored:
        return ()
    scores = similarity(failure.headline, [other.headline for _, other in able])
    ranked = sorted(zip(scores, able, strict=True), key=lambda pair: (-round(pair[0], 6), pair[1][0], pair[1][1].key))
    best: dict[str, Near] = {}
    for score, (cluster, other) in ranked:
        if score >= LEAST and cluster not in best:
            best[cluster] = near(cluster, round(score, 3), words(failure.headline), words(other.headline))
    return tuple(best.values())[:most]
