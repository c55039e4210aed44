"""triage.store.search and feedback: filters, full text, similar incidents, statistics."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, example, given, settings, strategies as st

from tests.store.factories import DAY, NOW, clean_diagnosis, known_diagnosis, unknown_diagnosis
from triage.base.errors import OptionError
from triage.store import Store, fts_index
from triage.store.search import Filter


@pytest.fixture
def full(store: Store) -> Store:
    """A store with six incidents of three days."""
    for diagnosis in (
        known_diagnosis("llama", host="node1", rank=3, at=NOW - 2 * DAY),
        known_diagnosis("llama-2", host="node17", rank=0, at=NOW - DAY),
        known_diagnosis("bert", "host.sigkill", host="node17", at=NOW - DAY),
        known_diagnosis("vit", "fabric.ib-retry-exceeded", host="node2", at=NOW),
        unknown_diagnosis("gpt", "ValueError: shard 7 of été is bad"),
        clean_diagnosis("ok"),
    ):
        store.incidents.add(diagnosis, now=NOW)
    return store


@pytest.mark.parametrize(
    ("filter_", "names"),
    [
        (Filter(), ["bert", "gpt", "llama", "llama-2", "ok", "vit"]),
        (Filter(verdict="unknown"), ["gpt"]),
        (Filter(signature="cuda.out-of-memory"), ["llama", "llama-2"]),
        (Filter(cluster="u-7f3a9c"), ["gpt"]),
        (Filter(domain="host"), ["bert"]),
        (Filter(host="node17"), ["bert", "llama-2"]),
        (Filter(rank=3), ["llama"]),
        (Filter(since=NOW - 1.5 * DAY, until=NOW - 0.5 * DAY), ["bert", "llama-2"]),
        (Filter(job="LLAMA"), ["llama", "llama-2"]),
        (Filter(job="/jobs/b"), ["bert"]),
        (Filter(text="allocate gib"), ["bert", "llama", "llama-2", "vit"]),
        (Filter(host="node17", signature="host.sigkill", verdict="known"), ["bert"]),
        (Filter(host="node17' OR 1=1 --"), []),
    ],
)
def test_filters(full: Store, filter_: Filter, names: list[str]) -> None:
    """Each filter narrows the list, combined ones more, and the count is that of the list."""
    assert sorted(incident.job_name for incident in full.search.list_incidents(filter_)) == names
    assert full.search.count_incidents(filter_) == len(names)


def test_pages_of_a_list(full: Store) -> None:
    """Each incident is listed once, the latest failure first, also with equal times."""
    whole = full.search.list_incidents()
    assert [incident.at for incident in whole] == sorted((incident.at for incident in whole), reverse=True)
    paged, after = [], None
    while page := full.search.list_incidents(limit=2, after=after):
        paged += page
        after = full.search.cursor_after(page[-1])
    assert paged == whole
    with pytest.raises(OptionError):
        full.search.list_incidents(after="nonsense")


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("shard", "gpt"),
        ("SHARD bad", "gpt"),
        ("ete", "gpt"),
        ('"is bad"', "gpt"),
        ("node2", "vit"),
        ("ib-retry-exceeded", "vit"),
        ("shar", "gpt"),
        ("shard zebra", "gpt"),
        ("u-7f3a9c", "gpt"),
    ],
)
def test_full_text(full: Store, query: str, first: str) -> None:
    """Search ignores case and accents, and finds phrases, names, prefixes and texts with too many words."""
    assert full.search.search_text(query)[0].incident.job_name == first


def test_matches_are_marked(full: Store) -> None:
    """The snippet has the words between marks."""
    assert "\x02shard\x03" in full.search.search_text("shard")[0].snippet


@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.text(max_size=80)
    | st.lists(
        st.sampled_from(
            ["AND", "OR", "NOT", "NEAR(", '"', "*", "^", ":", "-", "(", ")", "title", "{a b}", "\0", "'", ";", "shard"]
        )
    ).map(" ".join)
)
@example('" OR 1')
@example("a" * 100_000)
@example("title:x NEAR/2 \x00")
@example('"""')
def test_no_input_breaks_the_search(full: Store, query: str) -> None:
    """Any input is only words, in the store and in the texts of the catalog."""
    hits = [hit.incident for hit in full.search.search_text(f"shard {query}", some=True)]
    assert "gpt" in {incident.job_name for incident in hits}
    assert len({incident.id for incident in hits}) == len(hits)
    listed = full.search.list_incidents(Filter(text=query))
    assert len(listed) == full.search.count_incidents(Filter(text=query))
    assert {hit.incident.id for hit in full.search.search_text(query, some=False)} >= {
        incident.id for incident in listed if query.strip()
    }
    assert 0 in dict(fts_index.search_documents([("a", "b", "c"), ("d", "e", "f")], f"b {query}", 3))


def test_similar_incidents_have_their_feedback(full: Store) -> None:
    """Incidents with the same cause are found, those with feedback first."""
    one, other = (full.search.list_incidents(Filter(signature="cuda.out-of-memory", rank=rank))[0] for rank in (3, 0))
    third = full.incidents.add(known_diagnosis("third", host="node17"), now=NOW)
    full.feedback.add(one.id, "agree", actor="ann", because="halved the batch")
    details = full.search.find_similar(third.id)
    assert [item.incident.id for item in details] == [one.id, other.id]
    assert details[0].feedback_notes == ("ann (agree): halved the batch",)
    assert [item.why for item in details] == ["the same cause", "the same cause, on the same host"]
    assert full.search.find_similar(full.search.list_incidents(Filter(job="ok"))[0].id) == []


def test_statistics(full: Store) -> None:
    """Incidents are counted by cause, repeated host and week."""
    sums = full.search.compute_stats()
    assert sums.incidents == 6
    assert {count.name: count.count for count in sums.verdicts} == {"known": 4, "unknown": 1, "clean": 1}
    assert (sums.signatures[0].name, sums.signatures[0].count) == ("cuda.out-of-memory", 2)
    hosts = {count.name: (count.count, count.spread) for count in sums.hosts}
    assert hosts == {"node1": (2, 2), "node17": (2, 2)}
    assert sum(count.count for count in sums.weeks) == 6
    assert full.search.compute_stats(Filter(domain="host")).incidents == 1


def test_feedback_stays(full: Store) -> None:
    """Feedback is counted and listed, and stays when the diagnosis changes."""
    incident = full.search.list_incidents(Filter(job="bert"))[0]
    full.feedback.add(
        incident.id, "wrong", actor="bob", because="it was the quota, token=abcdefgh1234", signature="host.no-space"
    )
    full.incidents.add(known_diagnosis("bert", "host.no-space", host="node17", at=NOW - DAY))
    details = full.incidents.get(incident.id)
    (opinion,) = details.feedback
    assert (opinion.diagnosed, opinion.signature, opinion.actor) == ("host.sigkill", "host.no-space", "bob")
    assert "abcdefgh1234" not in opinion.because
    assert details.incident.wrong == 1
    assert [item.incident for item in full.feedback.list_feedback(verdict="wrong", signature="host.sigkill")] == [
        incident.id
    ]
    assert [item.id for item in full.search.list_incidents(Filter(wrong=True))] == [incident.id]
