"""The quality of the clusters on a labelled corpus: the limits in docs/clustering.md."""

from __future__ import annotations

import functools
import random

import pytest

from tests.clusters.corpus import Failure, failures, pairs
from tests.clusters.measure import merged, score
from triage.clusters import Clusters, fingerprint
from triage.model.diagnosis import Fingerprint

SEEDS = (1, 2)


@functools.cache
def corpus(seed: int) -> list[tuple[Failure, Fingerprint]]:
    """Return all failures with their fingerprints."""
    return [(failure, fingerprint(failure.fact())) for failure in failures(seed)]


def grouped(items: list[tuple[Failure, Fingerprint]], clusters: Clusters) -> list[str]:
    """Return the cluster of each failure."""
    names = [clusters.assign(print_).cluster for _, print_ in items]
    return [clusters.resolve(cluster) for cluster in names]


def test_the_corpus_is_what_it_claims() -> None:
    """At least 60 classes of 15 variants, a third of them held out, and 30 pairs that must stay apart."""
    labels = {(failure.group, failure.label) for failure, _ in corpus(1)}
    classes = {group: sum(where == group for where, _ in labels) for group in ("classes", "held_out", "pairs")}
    assert classes["classes"] + classes["held_out"] >= 60
    assert classes["held_out"] * 2 >= classes["classes"]
    assert len(pairs()) >= 30
    assert all(
        sum(failure.label == label for failure, _ in corpus(1)) == 15 for group, label in labels if group != "pairs"
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_held_out_classes_are_clustered_correctly(seed: int) -> None:
    """Pairwise precision of at least 0.995 and F1 of at least 0.93 on classes that no rule was written for."""
    items = [item for item in corpus(seed) if item[0].group == "held_out"]
    result = score([failure.label for failure, _ in items], grouped(items, Clusters()))
    assert result.precision >= 0.995
    assert result.f1 >= 0.93


@pytest.mark.parametrize("seed", SEEDS)
def test_the_same_words_for_another_cause_stay_apart(seed: int) -> None:
    """At most 0.5 % of the pairs that must not be merged are, with the whole corpus around them."""
    items = corpus(seed)
    labels = [failure.label for failure, _ in items]
    clusters = grouped(items, Clusters())
    assert merged(labels, clusters, pairs()) <= 0.005
    assert score(labels, clusters).precision >= 0.995


@pytest.mark.parametrize("seed", SEEDS)
def test_new_classes_get_new_clusters(seed: int) -> None:
    """With four examples each of 60 % of the classes known, at least 97 % of the others' failures join none of them."""
    items = [item for item in corpus(seed) if item[0].group != "pairs"]
    labels = sorted({failure.label for failure, _ in items})
    known = set(random.Random(seed).sample(labels, len(labels) * 6 // 10))
    clusters, taken, counts = Clusters(), set[str](), dict[str, int]()
    for failure, print_ in items:
        if failure.label in known and counts.setdefault(failure.label, 0) < 4:
            counts[failure.label] += 1
            taken.add(clusters.assign(print_).cluster)
    unseen = [print_ for failure, print_ in items if failure.label not in known]
    new = [
        clusters.resolve(clusters.assign(print_).cluster) not in {clusters.resolve(cluster) for cluster in taken}
        for print_ in unseen
    ]
    assert sum(new) / len(new) >= 0.97


def test_no_id_moves_when_new_classes_arrive() -> None:
    """Clusters named before 40 % new classes came are named so afterwards, and replaying all gives the same names."""
    items = [item for item in corpus(1) if item[0].group != "pairs"]
    labels = sorted({failure.label for failure, _ in items})
    early = set(random.Random(4).sample(labels, len(labels) * 6 // 10))
    before = [item for item in items if item[0].label in early]
    clusters = Clusters()
    names = grouped(before, clusters)
    grouped([item for item in items if item[0].label not in early], clusters)
    assert [clusters.resolve(clusters.assign(print_).cluster) for _, print_ in before] == names
    assert grouped(before, Clusters()) == names


def test_the_order_of_a_whole_corpus_changes_nothing() -> None:
    """Shuffled failures make the same groups."""
    items = list(corpus(2))
    one = dict(zip([id(item) for item in items], grouped(items, Clusters()), strict=True))
    shuffled = random.Random(9).sample(items, len(items))
    other = dict(zip([id(item) for item in shuffled], grouped(shuffled, Clusters()), strict=True))
    pairs_of = {(one[id(item)], other[id(item)]) for item in items}
    assert len({name for name, _ in pairs_of}) == len(pairs_of) == len({name for _, name in pairs_of})
