"""Ids and decisions are stable when new classes of failures arrive and everything is ingested again."""

from __future__ import annotations

import random

from tests.clusters.corpus import Failure, failures
from tests.store.conftest import Place
from tests.store.factories import NOW, make_job
from triage.model.diagnosis import Diagnosis, Finding, Stats
from triage.store import Store, maintenance, transfer


def add(store: Store, some: list[Failure], name: str) -> dict[str, str]:
    """Store the failures as separate jobs; return the cluster of each text."""
    clusters = {}
    with store.connections.write():
        for number, failure in enumerate(some):
            fact = failure.fact()
            root = Finding(None, fact.text[:60], "unknown", "cause", "fatal", 0.8, cluster="u-0", evidence=(fact,))
            diagnosis = Diagnosis(
                "0.1.0", "c", make_job(f"{name} {number}"), "unknown", root, (), (root,), stats=Stats(1, 1)
            )
            stored = store.incidents.add(diagnosis, now=NOW + number)
            clusters[failure.text] = stored.diagnosis.unknown[0].cluster or ""
    return clusters


def test_ids_and_decisions_are_stable(place: Place) -> None:
    """New classes and a second ingest of everything move no fingerprint after decisions of people."""
    some = [failure for failure in failures(5, variants=3) if failure.group != "pairs"]
    labels = sorted({failure.label for failure in some})
    early = set(random.Random(4).sample(labels, len(labels) * 6 // 10))
    before = [failure for failure in some if failure.label in early]
    with Store.open(place("a")) as store:
        add(store, before, "early")
        listed = store.clusters.list_clusters(limit=1000)
        many = [cluster for cluster in listed if len(cluster.keys) > 1 and cluster.keys[0].anchored]
        lone = [cluster for cluster in listed if len(cluster.keys) == 1 and cluster.keys[0].anchored]
        store.cluster_actions.merge([lone[0].id, lone[1].id], actor="ann")
        store.cluster_actions.split(many[0].id, [many[0].keys[-1].key], actor="ann")
        store.cluster_actions.name(lone[2].id, "A named one", actor="ann")
        store.cluster_actions.reject(lone[3].id, lone[4].id, actor="ann")
        decided = {key: cluster for key, cluster in clusters_by_key(store).items() if ":" not in key}
        names = {cluster.id: cluster.name for cluster in store.clusters.list_clusters(limit=1000)}
        add(store, [failure for failure in some if failure.label not in early], "late")
        add(store, before, "again")
        after = clusters_by_key(store)
        assert {key: after[key] for key in decided} == decided
        assert {
            cluster.id: cluster.name for cluster in store.clusters.list_clusters(limit=1000)
        }.items() >= names.items()
        lines = list(transfer.export_lines(store.connections))
    with Store.open(place("b")) as other:
        transfer.import_lines(other.connections, lines)
        assert clusters_by_key(other) == after
        add(other, before, "third")
        assert {key: clusters_by_key(other)[key] for key in decided} == decided
        assert maintenance.check_store(other.connections) == []


def clusters_by_key(store: Store) -> dict[str, str]:
    """Return the cluster of every fingerprint."""
    return {row["key"]: row["cluster"] for row in store.connections.read("SELECT key, cluster FROM cluster_key")}
