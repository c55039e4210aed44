"""triage.store.clusters and cluster_actions: ids never change, decisions last and can be undone."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import pytest

from tests.store.conftest import Place
from tests.store.factories import DAY, NOW, separated_pairs, unknown_diagnosis
from triage.base.errors import OptionError
from triage.clusters import Assignment
from triage.model.diagnosis import Finding, Fingerprint
from triage.store import Store


class WordEngine:
    """An engine whose key is the title; under one guard, titles that contain all words of another join it."""

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
        self,
        new: Fingerprint,
        known: Sequence[tuple[str, Fingerprint]],
        apart: Collection[frozenset[str]],
        moved: Mapping[str, str],
    ) -> Assignment:
        mine = set(new.headline.split())
        for cluster, other in known:
            if mine > set(other.headline.split()):
                return Assignment(cluster, "nested", ("it says more",))
        return Assignment("", "new", ("nothing says less",))


def ids(store: Store, state: str = "open") -> list[str]:
    return sorted(cluster.id for cluster in store.clusters.list_clusters(states=(state,)))


def fill(store: Store, *clusters: str) -> list[str]:
    """Store one incident per cluster; return their ids."""
    return [
        store.incidents.add(unknown_diagnosis(f"job {name}", f"ValueError: {name}", name), now=NOW + n).id
        for n, name in enumerate(clusters)
    ]


def key_of(store: Store, cluster: str) -> str:
    """Return the only fingerprint of a cluster."""
    (key,) = store.clusters.get(cluster).keys
    return key.key


def test_the_same_failure_is_the_same_cluster(store: Store) -> None:
    """Two jobs with the same headline are one cluster of two incidents, with the id of the report."""
    for name in ("a", "b"):
        store.incidents.add(unknown_diagnosis(name))
    cluster = store.clusters.get("u-7f3a9c")
    assert (cluster.incidents, cluster.jobs, cluster.state, cluster.title) == (
        2,
        2,
        "open",
        "ValueError: shard 7 is bad",
    )
    assert len(store.clusters.list_incidents("7f3a")) == 2


def test_the_same_files_are_not_counted_twice(store: Store) -> None:
    """A second ingest adds neither an incident nor an exemplar to the cluster."""
    for _ in range(3):
        store.incidents.add(unknown_diagnosis("a"))
    assert store.clusters.get("u-7f3a9c").incidents == 1
    assert len(store.clusters.list_exemplars("u-7f3a9c")) == 1


def test_few_exemplars_are_stored(store: Store) -> None:
    """The first five of each fingerprint are stored, whole."""
    for number in range(9):
        store.incidents.add(unknown_diagnosis(f"job {number}"))
    exemplars = store.clusters.list_exemplars("u-7f3a9c")
    assert len(exemplars) == 5
    assert exemplars[0][2] == unknown_diagnosis("job 0").unknown[0].evidence


def test_growing_clusters_come_first(store: Store) -> None:
    """Growing clusters come before shrinking ones, whatever their size; failures count on their own day."""
    for day in range(12):
        store.incidents.add(unknown_diagnosis(f"old {day}", "OSError: fades", "u-0ddf00", at=NOW - 13 * DAY), now=NOW)
    for number in range(3):
        store.incidents.add(unknown_diagnosis(f"new {number}", "OSError: grows", "u-cafe00"), now=NOW)
    first, second = store.clusters.list_clusters(now=NOW)
    assert (first.id, first.recent, first.before) == ("u-cafe00", 3, 0)
    assert (second.id, second.recent, second.before) == ("u-0ddf00", 0, 12)


def test_a_merge_lasts_and_redirects(store: Store) -> None:
    """The oldest id stays, the other redirects to it, and later failures of both belong to it."""
    fill(store, "u-aaaaaa", "u-bbbbbb")
    _, merged = store.cluster_actions.merge(["u-bbbbbb", "u-aaaaaa"], actor="ann", because="one and the same")
    assert merged == "u-aaaaaa"
    assert store.clusters.get("u-bbbbbb").id == "u-aaaaaa"
    again = store.incidents.add(unknown_diagnosis("later", "ValueError: u-bbbbbb", "u-bbbbbb"))
    assert again.diagnosis.root_cause is not None
    assert again.diagnosis.root_cause.cluster == "u-aaaaaa"
    assert store.incidents.get(again.id).incident.cluster == "u-aaaaaa"
    assert store.clusters.get("u-aaaaaa").incidents == 3
    assert ids(store) == ["u-aaaaaa"]


def test_a_merge_is_undone(store: Store) -> None:
    """Undo restores everything, and the log has who did what."""
    fill(store, "u-aaaaaa", "u-bbbbbb")
    before = store.clusters.list_clusters()
    entry, _ = store.cluster_actions.merge(["u-aaaaaa", "u-bbbbbb"], actor="ann")
    undone = store.cluster_actions.undo(entry, actor="bob")
    assert sorted(store.clusters.list_clusters(), key=str) == sorted(before, key=str)
    assert [(item.actor, item.action, item.undone_by) for item in store.audit.list_entries()] == [
        ("bob", "undo", None),
        ("ann", "merge", undone),
    ]
    with pytest.raises(OptionError, match="was already undone"):
        store.cluster_actions.undo(entry, actor="bob")


def test_a_split_lasts(store: Store) -> None:
    """A fingerprint that was split off stays in its new cluster, and both logs have the split."""
    fill(store, "u-aaaaaa", "u-bbbbbb")
    one, other = key_of(store, "u-aaaaaa"), key_of(store, "u-bbbbbb")
    _, merged = store.cluster_actions.merge(["u-aaaaaa", "u-bbbbbb"], actor="ann")
    entry, new = store.cluster_actions.split(merged, [other], actor="ann", because="another file")
    assert new not in ("u-aaaaaa", "u-bbbbbb")
    assert [key.key for key in store.clusters.get(new).keys] == [other]
    assert [item.action for item in store.audit.list_entries(subject=new)] == ["split"]
    assert [item.action for item in store.audit.list_entries(subject=merged)] == ["split", "merge"]
    assert separated_pairs(store) == {tuple(sorted((one, other)))}
    store.cluster_actions.undo(entry, actor="ann")
    assert separated_pairs(store) == set()
    assert store.clusters.get(new).id == merged


@pytest.mark.parametrize("keys", [[], ["all"], ["nothing"], [""]])
def test_a_split_must_leave_and_move_something(store: Store, keys: list[str]) -> None:
    """An impossible split is an error and changes nothing."""
    fill(store, "u-aaaaaa", "u-bbbbbb")
    _, merged = store.cluster_actions.merge(["u-aaaaaa", "u-bbbbbb"], actor="ann")
    all_of_them = [key.key for key in store.clusters.get(merged).keys]
    with pytest.raises(OptionError):
        store.cluster_actions.split(merged, all_of_them if keys == ["all"] else keys, actor="ann")
    assert len(store.clusters.get(merged).keys) == 2


def test_names_notes_and_states(store: Store) -> None:
    """Names are unique, ignored clusters are hidden and counted, and the log has each action."""
    fill(store, "u-aaaaaa", "u-bbbbbb")
    store.cluster_actions.name("u-aaaaaa", "Torn  shard", actor="ann", note="write it again, password=correct-horse")
    named = store.clusters.get("Torn shard")
    assert (named.id, named.state, named.note) == (
        "u-aaaaaa",
        "named",
        "write it again, password=[redacted assignment]",
    )
    with pytest.raises(OptionError, match="another cluster"):
        store.cluster_actions.name("u-bbbbbb", "Torn shard", actor="bob")
    store.cluster_actions.ignore("u-aaaaaa", actor="ann", because="sandbox")
    assert ids(store, "named") == []
    store.incidents.add(unknown_diagnosis("more", "ValueError: u-aaaaaa", "u-aaaaaa"))
    assert store.clusters.get("u-aaaaaa").incidents == 2
    store.cluster_actions.reopen("u-aaaaaa", actor="ann")
    assert ids(store, "named") == ["u-aaaaaa"]
    assert [entry.action for entry in store.audit.list_entries(subject="u-aaaaaa")] == ["reopen", "ignore", "name"]
    assert store.search.list_incidents()[0].name == "Torn shard"


def test_an_incident_is_assigned_elsewhere(store: Store) -> None:
    """Its fingerprint moves with all its incidents; an emptied cluster redirects."""
    first, _ = fill(store, "u-aaaaaa", "u-bbbbbb")
    store.incidents.add(unknown_diagnosis("twin", "ValueError: u-aaaaaa", "u-aaaaaa"))
    num = store.incidents.find_number(first)
    entry, into = store.cluster_actions.assign(num, "u-bbbbbb", actor="ann")
    assert into == "u-bbbbbb"
    assert store.clusters.get("u-bbbbbb").incidents == 3
    assert store.clusters.get("u-aaaaaa").id == "u-bbbbbb"
    store.cluster_actions.undo(entry, actor="ann")
    assert store.clusters.get("u-aaaaaa").incidents == 2
    with pytest.raises(OptionError, match="alone"):
        store.cluster_actions.assign(num, None, actor="ann")


def test_actions_are_undone_in_reverse_order(store: Store) -> None:
    """An action that a later one depends on is undone only after that one."""
    fill(store, "u-aaaaaa", "u-bbbbbb")
    one = key_of(store, "u-aaaaaa")
    first, merged = store.cluster_actions.merge(["u-aaaaaa", "u-bbbbbb"], actor="ann")
    second, _ = store.cluster_actions.split(merged, [one], actor="ann")
    with pytest.raises(OptionError, match=f"entry {second}"):
        store.cluster_actions.undo(first, actor="ann")
    store.cluster_actions.undo(second, actor="ann")
    store.cluster_actions.undo(first, actor="ann")
    assert {"u-aaaaaa", "u-bbbbbb"} <= {cluster.id for cluster in store.clusters.list_clusters()}
    with pytest.raises(OptionError, match="no entry"):
        store.cluster_actions.undo(999, actor="ann")


def test_automatic_joins_are_marked_and_can_be_split(place: Place) -> None:
    """A join has its reason; failures with another guard or without an anchor stay alone."""
    with Store.open(place("triage"), engine=WordEngine()) as store:
        store.incidents.add(unknown_diagnosis("a", "ValueError: shard is torn", "u-aaaaaa"))
        store.incidents.add(unknown_diagnosis("b", "ValueError: shard is torn badly", "u-bbbbbb"))
        store.incidents.add(unknown_diagnosis("c", "OSError: shard is torn badly indeed", "u-cccccc"))
        for name in ("d", "e"):
            store.incidents.add(unknown_diagnosis(name, "ValueError: shard is torn ?", "u-dddddd"))
        assert len(store.clusters.list_clusters()) == 4
        assert [key.headline for key in store.clusters.get("u-aaaaaa").keys] == [
            "ValueError: shard is torn",
            "ValueError: shard is torn badly",
        ]
        (row,) = store.connections.read("SELECT why FROM cluster_key WHERE key = '3:ValueError: shard is torn badly'")
        assert row["why"] == "joined automatically: it says more"
        _, new = store.cluster_actions.split("u-aaaaaa", ["3:ValueError: shard is torn badly"], actor="ann")
        again = store.incidents.add(unknown_diagnosis("f", "ValueError: shard is torn badly", "u-bbbbbb"))
        assert again.diagnosis.unknown[0].cluster == new


def test_used_ids_are_not_reused(store: Store) -> None:
    """Another fingerprint with the id of a cluster gets an id of its own."""
    store.incidents.add(unknown_diagnosis("a"))
    with store.connections.write() as db:
        db.execute("INSERT INTO cluster (id, state, title, created_at) VALUES ('u-123456', 'open', 't', 0)")
    stored = store.incidents.add(unknown_diagnosis("b", "KeyError: 'x'", "u-123456"))
    cluster_id = store.incidents.get(stored.id).incident.cluster
    assert cluster_id is not None
    assert cluster_id != "u-123456"
    assert stored.diagnosis.unknown[0].cluster == cluster_id


@pytest.mark.parametrize("reference", ["", "u-", "u-zz", "nobody", "%", "x' OR '1"])
def test_a_missing_cluster(store: Store, reference: str) -> None:
    """A reference to a missing cluster is an error with a hint."""
    fill(store, "u-aaaaaa", "u-bbbbbb")
    with pytest.raises(OptionError) as caught:
        store.clusters.get(reference)
    assert caught.value.hint


def test_a_cluster_has_a_name_and_a_failure_moves_elsewhere(store: Store) -> None:
    """A name without a word, and a move to the cluster where the failure is, are refused and change nothing."""
    (incident,) = fill(store, "u-aaaaaa")
    number = store.incidents.find_number(incident)
    with pytest.raises(OptionError, match="name is empty"):
        store.cluster_actions.name("u-aaaaaa", " \t ", actor="ann")
    with pytest.raises(OptionError, match="already in u-aaaaaa"):
        store.cluster_actions.assign(number, "u-aaaaaa", actor="ann")
    assert ids(store) == ["u-aaaaaa"]
