"""Where failures go: the same, the same said in more or fewer words, new, or nothing to go by."""

from __future__ import annotations

from collections import defaultdict

import pytest
from hypothesis import given, strategies as st

from triage.clusters import Clusters, KnownKey, fingerprint
from triage.clusters.fingerprint import cluster_id
from triage.model.evidence import Evidence, Origin


def fact(text: str) -> Evidence:
    return Evidence("exception", "Python", text, Origin(), "x.log", 0)


def test_the_four_ways() -> None:
    """Each assignment says which way it was made and why."""
    clusters = Clusters()
    first = clusters.assign(fingerprint(fact("SinkError: segment writer lost its lease")))
    assert first.how == "new"
    assert clusters.assign(fingerprint(fact("SinkError: segment writer lost its lease"))).how == "exact"
    more = clusters.assign(fingerprint(fact("SinkError: segment writer lost its lease, retrying")))
    assert (more.how, more.cluster) == ("nested", first.cluster)
    assert "retrying" in more.why[0]
    assert more.runner_up is None
    other = clusters.assign(fingerprint(fact("SinkError: segment reader lost its lease")))
    assert (other.how, other.runner_up.cluster if other.runner_up else None) == ("new", first.cluster)
    assert other.runner_up is not None
    assert (other.runner_up.only_here, other.runner_up.only_there) == (("reader",), ("writer",))
    again = clusters.assign(fingerprint(fact("SinkError: segment reader lost its lease")))
    assert (again.how, again.runner_up) == ("exact", other.runner_up)
    assert clusters.assign(fingerprint(fact("exitcode 1"))).how == "unanchored"


_QUOTED = "thread 'writer-2' panicked at src/w.rs:7:2:\ncalled `Result::unwrap()` on an `Err` value: {}"


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        (
            "ArrowInvalid: single dictionary of a column was replaced between batches",
            "DictError: dictionary of a column was replaced between batches",
            True,
        ),
        (
            "ArrowInvalid: single dictionary of a column was replaced between batches",
            _QUOTED.format('InvalidArgumentError("dictionary of a column was replaced between batches")'),
            True,
        ),
        ("ArrowInvalid: single dictionary replaced", "DictError: dictionary replaced", False),
        (
            "Arrow: single dictionary of a column was replaced between batches",
            "Polars: dictionary of a column was replaced between batches",
            False,
        ),
    ],
    ids=["class", "quoted by a panic", "few words", "no class"],
)
def test_the_class_of_a_sentence_may_change(one: str, other: str, *, is_same: bool) -> None:
    """Releases and languages raise one sentence of three words or more as different classes, with another word."""
    clusters = Clusters()
    first, second = (clusters.assign(fingerprint(fact(text))).cluster for text in (one, other))
    assert (clusters.resolve(first) == clusters.resolve(second)) == is_same


@pytest.mark.parametrize(
    "text", ["SinkError: segment writer never lost its lease", "SinkError: local segment writer lost its lease"]
)
def test_a_word_that_turns_the_meaning_is_no_drift(text: str) -> None:
    """`not`, `local`, `reading` and their like make another failure."""
    clusters = Clusters()
    first = clusters.assign(fingerprint(fact("SinkError: segment writer lost its lease")))
    assert clusters.assign(fingerprint(fact(text))).cluster != first.cluster


def test_a_veto_keeps_two_apart() -> None:
    """What a person said to be different is not merged again."""
    one, other = (
        fingerprint(fact(text))
        for text in ("SinkError: writer lost its lease", "SinkError: writer lost its lease twice")
    )
    assert Clusters().assign(one).cluster != Clusters([KnownKey.of("u-1", one)]).assign(other).cluster == "u-1"
    apart = Clusters([KnownKey.of("u-1", one)], [frozenset((one.key, other.key))])
    assert apart.assign(other).how == "new"


def test_loaded_clusters_know_the_stored_keys() -> None:
    """Clusters loaded from their keys decide as those that saw the failures."""
    clusters = Clusters()
    prints = [
        fingerprint(fact(text))
        for text in ("A failed to open its lane", "B failed to close its lane", "B failed to close its lane again")
    ]
    names = [clusters.assign(one).cluster for one in prints]
    loaded = Clusters(KnownKey.of(cluster, one) for cluster, one in zip(names, prints, strict=True))
    assert [loaded.assign(one).cluster for one in prints] == names
    assert {loaded.assign(one).how for one in prints} == {"exact"}


@pytest.mark.parametrize(
    ("one", "other", "how"),
    [
        ("SinkError: lane queue", "SinkError: lane queue lease", "nested"),  # three words in common
        ("SinkError: lane", "SinkError: lane queue", "new"),  # two
        ("SinkError: lane queue", "SinkError: lane queue lease segment", "nested"),  # three of five words
        ("SinkError: lane queue", "SinkError: lane queue lease segment writer", "new"),  # three of six
        ("SinkError: lane queue lease", "SinkError: lane queue segment", "new"),  # each has a word of its own
    ],
)
@pytest.mark.parametrize("is_longer_first", [False, True])
def test_how_many_words_make_a_failure_the_same(one: str, other: str, how: str, is_longer_first: bool) -> None:
    """At least three words in common and 60 % of all, whichever headline came first."""
    texts = (other, one) if is_longer_first else (one, other)
    clusters = Clusters()
    clusters.assign(fingerprint(fact(texts[0])))
    assert clusters.assign(fingerprint(fact(texts[1]))).how == how


def test_the_reason_names_the_words_that_differ() -> None:
    """It also has a word, it lacks one, or only the order differs."""
    clusters = Clusters()
    texts = ("lane queue lease", "lane queue lease segment", "lane queue", "queue lane lease")
    _, *answers = [clusters.assign(fingerprint(fact(f"SinkError: {text}"))) for text in texts]
    reasons = [answer.why[0].partition("; ")[2] for answer in answers]
    assert reasons == ["it also has: segment", "it lacks: lease", "the words are the same"]


def test_a_name_grows_where_two_clusters_would_share_it() -> None:
    """A cluster is named by six digits of its key, by seven if another cluster has that name."""
    new = fingerprint(fact("SinkError: writer lost its lease"))
    assert Clusters().assign(new).cluster == cluster_id(new.key) == f"u-{new.key[:6]}"
    taken = KnownKey(cluster_id(new.key), "another key", "", frozenset(), frozenset())
    assert Clusters([taken]).assign(new).cluster == f"u-{new.key[:7]}"


TERMS = st.sampled_from(["lane", "writer", "lease", "lost", "closed", "segment", "queue", "not"])
TEXTS = st.lists(st.lists(TERMS, min_size=1, max_size=7).map(" ".join), min_size=1, max_size=12)


def groups(texts: list[str]) -> set[frozenset[str]]:
    clusters = Clusters()
    names = {text: clusters.assign(fingerprint(fact(text))).cluster for text in texts}
    members: dict[str, set[str]] = defaultdict(set)
    for text, cluster in names.items():
        members[clusters.resolve(cluster)].add(text)
    return {frozenset(texts) for texts in members.values()}


@given(TEXTS, st.randoms())
def test_the_order_of_arrival_changes_nothing(texts: list[str], draw: object) -> None:
    """The same failures make the same groups in any order."""
    shuffled = list(texts)
    draw.shuffle(shuffled)  # type: ignore[attr-defined]
    assert groups(texts) == groups(shuffled)


@given(TEXTS, TEXTS)
def test_what_is_together_stays_together(texts: list[str], later: list[str]) -> None:
    """New failures never take a group apart."""
    after = groups(texts + later)
    assert all(any(group <= other for other in after) for group in groups(texts))


@pytest.mark.parametrize(
    ("one", "other", "how"),
    [
        ("OldError: lane queue lost", "NewError: lane queue lost", "nested"),
        ("OldError: lane queue", "NewError: lane queue", "new"),
        ("SinkError: lane queue lost", "SinkError: lane queue never lost", "new"),
        ("SinkError: lane queue lost here", "SinkError: lane queue lost here; the lease never came back", "nested"),
        ("SinkError: lane queue lost", "SinkError: lane queue lost; lease segment owner", "new"),
        ("SinkError: lane queue lost here", "SinkError: lane queue lost here; lease segment owner gone away", "nested"),
    ],
)
def test_classes_are_renamed_and_sentences_are_added(one: str, other: str, how: str) -> None:
    """The class counts where the message has less than three words; four shared words allow a further sentence, in
    which words that turn the meaning do not count.
    """
    clusters = Clusters()
    clusters.assign(fingerprint(fact(one)))
    assert clusters.assign(fingerprint(fact(other))).how == how
