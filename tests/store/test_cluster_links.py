"""triage.store.cluster_links: clusters that one failure shows to be the same are merged."""

from __future__ import annotations

import dataclasses
import hashlib
import random
from collections import defaultdict
from zlib import crc32

import pytest

from tests.clusters.corpus import failures
from tests.store.conftest import Place
from tests.store.factories import NOW, make_fact, make_job, unknown_diagnosis
from triage.clusters import Clusters, fingerprint
from triage.clusters.assign import MOST_PLACES
from triage.model.diagnosis import Diagnosis, Finding, Stats
from triage.store import Store, cluster_links

SHORT = ("SinkError: segment writer lost its lease today", "SinkError: segment writer lost its lease remotely")
BOTH = "SinkError: segment writer lost its lease today remotely"


def add(store: Store, name: str, text: str) -> str:
    """Store a failure; return its cluster."""
    cluster = store.incidents.add(
        unknown_diagnosis(name, text, f"u-{crc32(name.encode()):08x}"), now=NOW + len(store.search.list_incidents())
    ).diagnosis
    assert cluster.root_cause is not None
    assert cluster.root_cause.cluster is not None
    return cluster.root_cause.cluster


@pytest.fixture
def two(store: Store) -> tuple[Store, str, str]:
    """A store with two clusters that a third failure links."""
    one, other = (add(store, text, text) for text in SHORT)
    assert one != other
    return store, one, other


def test_a_failure_links_two_clusters(two: tuple[Store, str, str]) -> None:
    """The older id stays, the younger redirects to it, and the audit log shows how to undo that."""
    store, one, other = two
    assert add(store, "both", BOTH) == one
    assert store.clusters.get(other).id == one
    assert store.clusters.get(one).incidents == 3
    (entry,) = store.audit.list_entries(subject=one)
    assert (entry.actor, entry.action, entry.details["linked"]) == ("triage", "link", [other])
    store.cluster_actions.undo(entry.id, actor="ann")
    assert store.clusters.get(other).id == other
    assert len(store.clusters.get(one).keys) + len(store.clusters.get(other).keys) == 3
    add(store, "both again", BOTH + " indeed")
    assert store.clusters.get(other).id == other


def add_raised(store: Store, name: str, text: str, file: str) -> str:
    """Store an exception that `check` in this file raised; return its cluster."""
    diagnosis = unknown_diagnosis(name, text, f"u-{crc32(name.encode()):08x}")
    fields = {
        "type": "Refused",
        "function": "check",
        "file": file,
        "message": text.partition(": ")[2],
        "code": "raise Refused(",
    }
    fact = dataclasses.replace(make_fact(text), kind="exception", component="Python", fields=fields)
    assert diagnosis.root_cause is not None
    root = dataclasses.replace(diagnosis.root_cause, evidence=(fact,))
    added = store.incidents.add(dataclasses.replace(diagnosis, root_cause=root, unknown=(root,)))
    assert added.diagnosis.root_cause is not None
    return added.diagnosis.root_cause.cluster or ""


def test_a_new_place_of_a_known_sentence_links_what_is_said_there(store: Store) -> None:
    """A release moved the function; there the sentence is worded anew. Each place is stored once."""
    first = add_raised(store, "a", "plan.Refused: want alpha beta", "/job/plan.py")
    other = add_raised(store, "b", "plan.Refused: alpha beta gamma delta expected", "/job/moved.py")
    assert first != other
    for name in ("c", "d"):
        assert add_raised(store, name, "plan.Refused: want alpha beta", "/job/moved.py") == first
    assert store.clusters.get(other).id == first
    (row,) = store.connections.read("SELECT trail FROM cluster_key WHERE headline LIKE '%want alpha%'")
    assert cluster_links.read_places(row["trail"]) == ("raised at plan.py:check", "raised at moved.py:check")


def test_so_many_places_of_a_key_are_stored(store: Store) -> None:
    """A sentence that any code raises would fill the store."""
    for number in range(MOST_PLACES + 2):
        add_raised(store, f"n{number}", "plan.Refused: want alpha beta", f"/job/f{number}.py")
    (row,) = store.connections.read("SELECT trail FROM cluster_key")
    assert len(cluster_links.read_places(row["trail"])) == MOST_PLACES


def test_rejected_pairs_are_not_linked(two: tuple[Store, str, str]) -> None:
    """After a rejection the third failure joins one cluster, and the two stay separate."""
    store, one, other = two
    store.cluster_actions.reject(one, other, actor="ann", because="another lease")
    assert add(store, "both", BOTH) in (one, other)
    assert (store.clusters.get(one).id, store.clusters.get(other).id) == (one, other)


def test_two_named_clusters_are_not_linked(two: tuple[Store, str, str]) -> None:
    """Two named clusters stay separate; a named one absorbs one without a name."""
    store, one, other = two
    store.cluster_actions.name(other, "Lease lost remotely", actor="ann")
    entry = store.cluster_actions.name(one, "Lease lost", actor="ann")
    add(store, "both", BOTH)
    assert (store.clusters.get(one).name, store.clusters.get(other).name) == ("Lease lost", "Lease lost remotely")
    store.cluster_actions.undo(entry, actor="ann")
    add(store, "both again", BOTH + " indeed")
    merged = store.clusters.get(other)
    assert (merged.id, merged.name, merged.state) == (one, "Lease lost remotely", "named")


def test_reasons_and_the_runner_up_are_stored(two: tuple[Store, str, str]) -> None:
    """Each fingerprint has the reason for its cluster and the nearest other cluster."""
    store, one, other = two
    first, second = (next(iter(store.clusters.list_reasons(cluster).values())) for cluster in (one, other))
    assert first == "new"
    assert second.startswith(f"new: nearest is {one}, with ")
    assert "only here: remotely; only there: today" in second


def test_arrival_order_changes_no_group(place: Place) -> None:
    """Failures in three orders form the same groups in the store as in memory."""
    some = failures(3, variants=3)[::2]
    prints = [fingerprint(failure.fact()) for failure in some]
    clusters = Clusters()
    held = [clusters.assign(one).cluster for one in prints]
    wanted = groups([clusters.resolve(cluster) for cluster in held], [one.key for one in prints])
    for seed in range(3):
        order = random.Random(seed).sample(range(len(some)), len(some))
        with Store.open(place(f"seed {seed}")) as store:
            with store.connections.write():
                for count, number in enumerate(order):
                    fact = some[number].fact()
                    finding = Finding(
                        None, fact.text[:60], "unknown", "cause", "fatal", 0.8, cluster="u-0", evidence=(fact,)
                    )
                    described = make_job(f"{seed} {number}")
                    store.incidents.add(
                        Diagnosis("0.1.0", "c", described, "unknown", finding, (), (finding,), stats=Stats(1, 1)),
                        now=NOW + count,
                    )
            rows = store.connections.read("SELECT key, cluster FROM cluster_key WHERE anchored = 1")
            assert groups([row["cluster"] for row in rows], [row["key"] for row in rows]) == wanted - {
                frozenset((one.key,)) for one in prints if not one.anchored
            }


def groups(clusters: list[str], keys: list[str]) -> set[frozenset[str]]:
    keys_by_cluster: dict[str, set[str]] = defaultdict(set)
    for cluster, key in zip(clusters, keys, strict=True):
        keys_by_cluster[cluster].add(key)
    return {frozenset(held) for held in keys_by_cluster.values()}


def test_a_merge_teaches_until_it_is_undone(place: Place) -> None:
    """Words that a person made equal join later failures of other headlines; after the undo they do not."""
    texts = [
        f"SinkError: {colour} {rest}"
        for rest in ("writer of the lane lost its lease", "cache of the page was evicted", "queue of the shard is full")
        for colour in ("red", "blue")
    ]
    with Store.open(place("a")) as store:

        def add(text: str) -> str:
            cluster = f"u-{hashlib.sha256(text.encode()).hexdigest()[:6]}"
            root = store.incidents.add(unknown_diagnosis(text, text, cluster)).diagnosis.root_cause
            assert root is not None
            assert root.cluster is not None
            return store.clusters.find_id(root.cluster)

        entry, _ = store.cluster_actions.merge([add(texts[0]), add(texts[1])], actor="ann")
        pages = [add(text) for text in texts[2:4]]
        assert pages[0] == pages[1]
        assert "as ann merged such failures" in " ".join(store.clusters.list_reasons(pages[0]).values())
        store.cluster_actions.undo(entry, actor="ann")
        assert len({add(text) for text in texts[4:]}) == 2


@pytest.mark.parametrize(
    ("why", "actor"),
    [
        ("merged by ann", "ann"),
        ("moved by bob; new key of 12 by version 9 of the rules", "bob"),
        ("moved back", ""),
        ("merged automatically with key 12", ""),
        ("new", ""),
    ],
)
def test_who_put_a_key_into_its_cluster(why: str, actor: str) -> None:
    """Only a person is named."""
    assert cluster_links.read_actor(why) == actor


def test_a_sentence_worded_anew_joins_by_the_stored_place(store: Store) -> None:
    """The place that raised an exception is read back from the stored trail, and both reasons are shown."""
    texts = ("plan.Refused: stage was drained of tokens by rows", "plan.Refused: rows drain tokens: the stage stops")
    fields = {"type": "Refused", "function": "check", "file": '/job/"a".py', "code": ""}
    for number, text in enumerate(texts):
        diagnosis = unknown_diagnosis(text, text, f"u-00000{number}")
        root = diagnosis.root_cause
        assert root is not None
        fact = dataclasses.replace(root.evidence[0], kind="exception", fields={**fields, "message": text})
        root = dataclasses.replace(root, evidence=(fact,))
        store.incidents.add(dataclasses.replace(diagnosis, root_cause=root, unknown=(root,)), now=NOW + number)
    details = store.clusters.get("u-000000")
    assert [key.trail[-1] for key in details.keys] == ['raised at "a".py:check'] * 2
    reasons = [row["why"] for row in store.connections.read("SELECT why FROM cluster_key ORDER BY created_at")]
    assert reasons[0] == "new"
    assert reasons[1].startswith("joined automatically: merged automatically with key")
