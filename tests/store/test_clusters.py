"""Clusters: ids that stay, decisions that stick and can be taken back, joins that an engine proposes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import pytest

from tests.store.making import DAY, NOW, unknown
from triage.base.errors import OptionError
from triage.clusters import Assignment
from triage.model.diagnosis import Finding, Fingerprint
from triage.store import Store


class Words:
    """An engine for these tests: the key is the title; under one guard, words that contain the other's are joined."""

    version = 3

    def fingerprint(self, finding: Finding) -> Fingerprint | None:
        if finding.cluster is None:
            return None
        return Fingerprint(
            3,
            f"3:{finding.title}",
            guard=finding.title.split(":")[0],
            headline=finding.title,
            anchored="?" not in finding.title,
        )

    def place(
        self, new: Fingerprint, known: Sequence[tuple[str, Fingerprint]], apart: Collection[frozenset[str]]
    ) -> Assignment:
        mine = set(new.headline.split())
        for cluster, other in known:
            if mine > set(other.headline.split()):
                return Assignment(cluster, "nested", ("it says more",))
        return Assignment("", "new", ("nothing says less",))


def ids(store: Store, state: str = "open") -> list[str]:
    return sorted(cluster.id for cluster in store.clusters.listed(states=(state,)))


def fill(store: Store, *clusters: str) -> list[str]:
    """One incident a cluster; the ids of the incidents."""
    return [
        store.incidents.add(unknown(f"job {name}", f"ValueError: {name}", name), now=NOW + n).id
        for n, name in enumerate(clusters)
    ]


def key_of(store: Store, cluster: str) -> str:
    """The only fingerprint of a cluster."""
    (key,) = store.clusters.get(cluster).keys
    return key.key


def test_the_same_failure_is_the_same_cluster(store: Store) -> None:
    """Two jobs with the same headline are one cluster of two incidents; the id is the one of the report."""
    for name in ("a", "b"):
        store.incidents.add(unknown(name))
    cluster = store.clusters.get("u-7f3a9c")
    assert (cluster.incidents, cluster.jobs, cluster.state, cluster.title) == (
        2,
        2,
        "open",
        "ValueError: shard 7 is bad",
    )
    assert len(store.clusters.incidents("7f3a")) == 2


def test_the_same_files_are_not_counted_twice(store: Store) -> None:
    """Another ingest of them is no further incident of the cluster, nor another exemplar."""
    for _ in range(3):
        store.incidents.add(unknown("a"))
    assert store.clusters.get("u-7f3a9c").incidents == 1
    assert len(store.clusters.exemplars("u-7f3a9c")) == 1


def test_few_exemplars_are_kept(store: Store) -> None:
    """The first five of each fingerprint, whole."""
    for number in range(9):
        store.incidents.add(unknown(f"job {number}"))
    kept = store.clusters.exemplars("u-7f3a9c")
    assert len(kept) == 5
    assert kept[0][2] == unknown("job 0").unknown[0].evidence


def test_what_matters_stands_first(store: Store) -> None:
    """Growing clusters before those that fade, whatever their size."""
    for day in range(12):
        store.incidents.add(unknown(f"old {day}", "OSError: fades", "u-0ddf00", at=NOW - 13 * DAY), now=NOW - 10 * DAY)
    for number in range(3):
        store.incidents.add(unknown(f"new {number}", "OSError: grows", "u-cafe00"), now=NOW)
    first, second = store.clusters.listed(now=NOW)
    assert (first.id, first.recent, first.before) == ("u-cafe00", 3, 0)
    assert (second.id, second.recent, second.before) == ("u-0ddf00", 0, 12)


def test_a_merge_sticks_and_leads(store: Store) -> None:
    """The oldest id stays, the other leads to it, and failures to come of either are the one."""
    fill(store, "u-aaaaaa", "u-bbbbbb")
    _, kept = store.moves.merge(["u-bbbbbb", "u-aaaaaa"], actor="ann", because="one and the same")
    assert kept == "u-aaaaaa"
    assert store.clusters.get("u-bbbbbb").id == "u-aaaaaa"
    again = store.incidents.add(unknown("later", "ValueError: u-bbbbbb", "u-bbbbbb"))
    assert again.diagnosis.root_cause is not None
    assert again.diagnosis.root_cause.cluster == "u-aaaaaa"
    assert store.incidents.get(again.id).incident.cluster == "u-aaaaaa"
    assert store.clusters.get("u-aaaaaa").incidents == 3
    assert ids(store) == ["u-aaaaaa"]


def test_a_merge_is_taken_back(store: Store) -> None:
    """All is as it was, and the log says who did what."""
    fill(store, "u-aaaaaa", "u-bbbbbb")
    before = store.clusters.listed()
    entry, _ = store.moves.merge(["u-aaaaaa", "u-bbbbbb"], actor="ann")
    undone = store.moves.undo(entry, actor="bob")
    assert sorted(store.clusters.listed(), key=str) == sorted(before, key=str)
    assert [(item.actor, item.action, item.undone_by) for item in store.audit.listed()] == [
        ("bob", "undo", None),
        ("ann", "merge", undone),
    ]
    with pytest.raises(OptionError, match="was taken back"):
        store.moves.undo(entry, actor="bob")


def test_a_split_sticks(store: Store) -> None:
    """A fingerprint that left is in a new cluster for good, the log of both says so, and the pair is remembered as not
    one.
    """
    fill(store, "u-aaaaaa", "u-bbbbbb")
    one, other = key_of(store, "u-aaaaaa"), key_of(store, "u-bbbbbb")
    _, kept = store.moves.merge(["u-aaaaaa", "u-bbbbbb"], actor="ann")
    entry, new = store.moves.split(kept, [other], actor="ann", because="another file")
    assert new not in ("u-aaaaaa", "u-bbbbbb")
    assert [key.key for key in store.clusters.get(new).keys] == [other]
    assert [item.action for item in store.audit.listed(subject=new)] == ["split"]
    assert [item.action for item in store.audit.listed(subject=kept)] == ["split", "merge"]
    assert {frozenset(pair) for pair in store.clusters.apart()} == {frozenset((one, other))}
    store.moves.undo(entry, actor="ann")
    assert store.clusters.apart() == set()
    assert store.clusters.get(new).id == kept


@pytest.mark.parametrize("keys", [[], ["all"], ["nothing"], [""]])
def test_a_split_must_leave_and_move_something(store: Store, keys: list[str]) -> None:
    """What cannot be a split is refused and changes nothing."""
    fill(store, "u-aaaaaa", "u-bbbbbb")
    _, kept = store.moves.merge(["u-aaaaaa", "u-bbbbbb"], actor="ann")
    all_of_them = [key.key for key in store.clusters.get(kept).keys]
    with pytest.raises(OptionError):
        store.moves.split(kept, all_of_them if keys == ["all"] else keys, actor="ann")
    assert len(store.clusters.get(kept).keys) == 2


def test_names_notes_and_states(store: Store) -> None:
    """A name is one cluster's, an ignored one leaves the list and is still counted, and each step is in the log."""
    fill(store, "u-aaaaaa", "u-bbbbbb")
    store.moves.name("u-aaaaaa", "Torn  shard", actor="ann", note="write it again, password=correct-horse")
    named = store.clusters.get("Torn shard")
    assert (named.id, named.state, named.note) == (
        "u-aaaaaa",
        "named",
        "write it again, password=[redacted assignment]",
    )
    with pytest.raises(OptionError, match="another cluster"):
        store.moves.name("u-bbbbbb", "Torn shard", actor="bob")
    store.moves.ignore("u-aaaaaa", actor="ann", because="sandbox")
    assert ids(store, "named") == []
    store.incidents.add(unknown("more", "ValueError: u-aaaaaa", "u-aaaaaa"))
    assert store.clusters.get("u-aaaaaa").incidents == 2
    store.moves.reopen("u-aaaaaa", actor="ann")
    assert ids(store, "named") == ["u-aaaaaa"]
    assert [entry.action for entry in store.audit.listed(subject="u-aaaaaa")] == ["reopen", "ignore", "name"]
    assert store.search.listed()[0].name == "Torn shard"


def test_an_incident_is_put_elsewhere(store: Store) -> None:
    """Its fingerprint moves, with all incidents of it; an emptied cluster leads to where it went."""
    first, _ = fill(store, "u-aaaaaa", "u-bbbbbb")
    store.incidents.add(unknown("twin", "ValueError: u-aaaaaa", "u-aaaaaa"))
    num = store.incidents.number(first)
    entry, into = store.moves.assign(num, "u-bbbbbb", actor="ann")
    assert into == "u-bbbbbb"
    assert store.clusters.get("u-bbbbbb").incidents == 3
    assert store.clusters.get("u-aaaaaa").id == "u-bbbbbb"
    store.moves.undo(entry, actor="ann")
    assert store.clusters.get("u-aaaaaa").incidents == 2
    with pytest.raises(OptionError, match="alone"):
        store.moves.assign(num, None, actor="ann")


def test_moves_are_taken_back_in_their_order(store: Store) -> None:
    """A move that a later one built on stays until that one is gone."""
    fill(store, "u-aaaaaa", "u-bbbbbb")
    one = key_of(store, "u-aaaaaa")
    first, kept = store.moves.merge(["u-aaaaaa", "u-bbbbbb"], actor="ann")
    second, _ = store.moves.split(kept, [one], actor="ann")
    with pytest.raises(OptionError, match=f"entry {second}"):
        store.moves.undo(first, actor="ann")
    store.moves.undo(second, actor="ann")
    store.moves.undo(first, actor="ann")
    assert {"u-aaaaaa", "u-bbbbbb"} <= {cluster.id for cluster in store.clusters.listed()}
    with pytest.raises(OptionError, match="no entry"):
        store.moves.undo(999, actor="ann")


def test_what_an_engine_joins_is_flagged_and_can_be_split(tmp_path: Path) -> None:
    """A join says why; words under another guard and failures without a usable line stay alone."""
    with Store.open(tmp_path / "triage.db", engine=Words()) as store:
        store.incidents.add(unknown("a", "ValueError: shard is torn", "u-aaaaaa"))
        store.incidents.add(unknown("b", "ValueError: shard is torn badly", "u-bbbbbb"))
        store.incidents.add(unknown("c", "OSError: shard is torn badly indeed", "u-cccccc"))
        for name in ("d", "e"):
            store.incidents.add(unknown(name, "ValueError: shard is torn ?", "u-dddddd"))
        assert len(store.clusters.listed()) == 4
        assert [key.headline for key in store.clusters.get("u-aaaaaa").keys] == [
            "ValueError: shard is torn",
            "ValueError: shard is torn badly",
        ]
        (row,) = store.connections.read("SELECT why FROM cluster_key WHERE key = '3:ValueError: shard is torn badly'")
        assert row["why"] == "joined automatically: it says more"
        _, new = store.moves.split("u-aaaaaa", ["3:ValueError: shard is torn badly"], actor="ann")
        again = store.incidents.add(unknown("f", "ValueError: shard is torn badly", "u-bbbbbb"))
        assert again.diagnosis.unknown[0].cluster == new


def test_ids_that_are_taken_are_not_given_again(store: Store) -> None:
    """Another fingerprint with the id of a cluster gets an id of its own."""
    store.incidents.add(unknown("a"))
    with store.connections.write() as db:
        db.execute("INSERT INTO cluster (id, state, title, created_at) VALUES ('u-123456', 'open', 't', 0)")
    stored = store.incidents.add(unknown("b", "KeyError: 'x'", "u-123456"))
    found = store.incidents.get(stored.id).incident.cluster
    assert found is not None
    assert found != "u-123456"
    assert stored.diagnosis.unknown[0].cluster == found


@pytest.mark.parametrize("wanted", ["", "u-", "u-zz", "nobody", "%", "x' OR '1"])
def test_a_cluster_that_is_not_there(store: Store, wanted: str) -> None:
    """An error with a hint, whatever is asked for."""
    fill(store, "u-aaaaaa", "u-bbbbbb")
    with pytest.raises(OptionError) as caught:
        store.clusters.get(wanted)
    assert caught.value.hint
