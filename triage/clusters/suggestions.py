"""Clusters that people may want to merge: similar in their wording, never merged automatically.

Character n-grams find spellings and inflections that whole words miss. `Similarity` only ranks, and can be replaced.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from triage.base.errors import OptionError
from triage.clusters.assign import compare_words
from triage.clusters.fingerprint import headline_words
from triage.clusters.model import NearestCluster
from triage.model.diagnosis import Fingerprint

LEAST_SCORE = 0.35


class Similarity(Protocol):
    """Returns how similar `text` is to each of `others`, 0 to 1, in their order."""

    def __call__(self, text: str, others: Sequence[str]) -> list[float]: ...


def tfidf(text: str, others: Sequence[str]) -> list[float]:
    """Return the cosine of TF-IDF over character 3- to 5-grams. Raises OptionError without scikit-learn."""
    try:
        from sklearn.feature_extraction.text import TfidfVectorizer
    except ImportError as error:
        raise OptionError("suggestions need scikit-learn", hint="pip install 'triage-kb[similar]'") from error
    vectors = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5), lowercase=True, sublinear_tf=True).fit_transform(
        [text, *others]
    )
    return [float(value) for value in (vectors[1:] @ vectors[0].T).toarray().ravel()]


def suggest_merges(
    failure: Fingerprint,
    others: Sequence[tuple[str, Fingerprint]],
    rejected: Collection[frozenset[str]] = (),
    *,
    similarity: Similarity = tfidf,
    most: int = 5,
) -> tuple[NearestCluster, ...]:
    """Return the nearest clusters under the same guard, nearest first, each once.

    `others` are (cluster, one of its fingerprints), `rejected` pairs of keys that people refused to merge.
    """
    candidates = [
        (cluster, other)
        for cluster, other in others
        if other.guard == failure.guard
        and other.key != failure.key
        and frozenset((other.key, failure.key)) not in rejected
    ]
    if not candidates or not failure.anchored:
        return ()
    scores = similarity(failure.headline, [other.headline for _, other in candidates])
    ranked = sorted(
        zip(scores, candidates, strict=True), key=lambda pair: (-round(pair[0], 6), pair[1][0], pair[1][1].key)
    )
    best: dict[str, NearestCluster] = {}
    for score, (cluster, other) in ranked:
        if score >= LEAST_SCORE and cluster not in best:
            terms = headline_words(failure.headline), headline_words(other.headline)
            best[cluster] = compare_words(cluster, round(score, 3), *terms)
    return tuple(best.values())[:most]
