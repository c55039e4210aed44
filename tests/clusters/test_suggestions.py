"""Suggestions are ranked and never decide by themselves; upgrades of the rules are reported."""

from __future__ import annotations

import dataclasses
import re

import pytest

from triage.clusters import fingerprint
from triage.clusters.rules import Rule, load_rules
from triage.clusters.suggestions import suggest_merges, tfidf
from triage.clusters.upgrade import Example, rekey_examples
from triage.model.evidence import Evidence, Origin


def fact(text: str) -> Evidence:
    return Evidence("exception", "Python", text, Origin(), "x.log", 0)


TEXTS = (
    "SinkError: segment writer lost its lease",
    "SinkError: segment reader lost its lease",
    "CacheError: eviction of hot pages",
)


def test_the_nearest_comes_first_with_the_words_that_differ() -> None:
    """Clusters of the same guard are ranked by letters, with the words on either side."""
    pytest.importorskip("sklearn")
    failure, *others = (fingerprint(fact(text)) for text in TEXTS)
    (nearest,) = suggest_merges(failure, [("u-2", others[0]), ("u-3", others[1])])
    assert (nearest.cluster, nearest.only_here, nearest.only_there) == ("u-2", ("writer",), ("reader",))


def test_a_rejected_suggestion_does_not_come_back() -> None:
    """Pairs that a person refused are left out; so is what another guard has."""
    failure, other, _ = (fingerprint(fact(text)) for text in TEXTS)
    engine = lambda text, others: [0.9] * len(others)  # noqa: E731
    assert suggest_merges(failure, [("u-2", other)], [frozenset((failure.key, other.key))], similarity=engine) == ()
    guarded = dataclasses.replace(other, guard="NCCL|errno=5|")
    assert suggest_merges(failure, [("u-2", guarded)], similarity=engine) == ()
    assert [near.cluster for near in suggest_merges(failure, [("u-2", other)], similarity=engine)] == ["u-2"]


def test_the_score_is_that_of_three_to_five_letters() -> None:
    """docs/clustering.md was measured with these: 3 to 5 letters, any case, repeated words count by their logarithm."""
    pytest.importorskip("sklearn")
    scores = tfidf("Lane lane lane lost its leases", ["lane lost a lease", "released", "LANE"])
    assert scores == pytest.approx([0.681, 0.095, 0.651], abs=0.001)


@pytest.mark.parametrize(("score", "is_shown"), [(0.35, True), (0.3499, False)])
def test_a_suggestion_needs_a_score(score: float, is_shown: bool) -> None:
    """A cluster of exactly the least score is suggested, one below is not."""
    failure, other, _ = (fingerprint(fact(text)) for text in TEXTS)
    near = suggest_merges(failure, [("u-2", other)], similarity=lambda text, others: [score])
    assert [item.cluster for item in near] == (["u-2"] if is_shown else [])


def test_the_best_of_each_cluster_is_suggested_and_at_most_five() -> None:
    """Each cluster stands once, with its best score; ties are in the order of their names."""
    failure, *_ = (fingerprint(fact(text)) for text in TEXTS)
    others = [(f"u-{number}", fingerprint(fact(f"SinkError: lane {name}"))) for number, name in enumerate("abcdefg")]
    scores = [0.5, 0.9, 0.5, 0.5, 0.4, 0.8, 0.6]
    near = suggest_merges(failure, [*others, ("u-0", others[6][1])], similarity=lambda text, _: [*scores, 0.7])
    assert [(item.cluster, item.score) for item in near] == [
        ("u-1", 0.9),
        ("u-5", 0.8),
        ("u-0", 0.7),
        ("u-6", 0.6),
        ("u-2", 0.5),
    ]


def test_a_failure_without_an_anchor_gets_no_suggestion() -> None:
    """Nothing is suggested for what says nothing, for the same key, and where nothing else is known."""
    failure, other, _ = (fingerprint(fact(text)) for text in TEXTS)
    engine = lambda text, others: [0.9] * len(others)  # noqa: E731
    assert suggest_merges(dataclasses.replace(failure, anchored=False), [("u-2", other)], similarity=engine) == ()
    assert suggest_merges(failure, [("u-2", failure)], similarity=engine) == ()
    assert suggest_merges(failure, [], similarity=engine) == ()


def test_new_rules_tell_collisions_and_divergences() -> None:
    """Two clusters that get one key are a merge to propose, one key whose examples part is a split to propose."""
    old = load_rules()
    masks = re.compile(old.masks.pattern.replace("(?P<m0>", r"(?P<m99>\b(?:red|blue)\b)|(?P<m0>", 1), re.IGNORECASE)
    new = dataclasses.replace(
        old,
        version=old.version + 1,
        masks=masks,
        replacements={**old.replacements, "m99": "<colour>"},
        unwraps=(*old.unwraps, Rule("x", re.compile(r"^no such (?P<inner>x)"))),
    )
    examples = [
        Example(cluster, key, fingerprint(fact(text), new))
        for cluster, key, text in (
            ("u-1", fingerprint(fact("SinkError: lane red lost")).key, "SinkError: lane red lost"),
            ("u-2", fingerprint(fact("SinkError: lane blue lost")).key, "SinkError: lane blue lost"),
            ("u-3", "k3", "CacheError: page 4 was evicted"),
            ("u-3", "k3", "CacheError: page 7 was evicted from the cold store"),
        )
    ]
    upgrade = rekey_examples(examples, new.version)
    assert upgrade == rekey_examples(reversed(examples), new.version)
    assert upgrade.version == old.version + 1
    assert [clusters for _, clusters in upgrade.collisions] == [("u-1", "u-2")]
    assert [(cluster, key) for cluster, key, _ in upgrade.divergences] == [("u-3", "k3")]
    assert {cluster for cluster, _, _ in upgrade.keys} == {"u-1", "u-2", "u-3"}
