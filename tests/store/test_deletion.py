"""Deletion on request: no table has a text of the incident afterwards; the audit log says who, when, why and which."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.store.factories import NOW, known_diagnosis, unknown_diagnosis
from triage.base.errors import NotFoundError, OptionError
from triage.store import Store, copying, maintenance
from triage.store.deletion import delete_incident

SECRET = "zebrafish"


def search_everywhere(store: Store, text: str) -> list[str]:
    """Return the tables that have a text in any column, compressed ones decoded."""
    import zlib

    tables = []
    for table in copying.TABLES:
        for row in store.connections.read(f"SELECT * FROM {table}"):
            for value in dict(row).values():
                if isinstance(value, (bytes, memoryview)):
                    value = zlib.decompress(bytes(value)).decode("utf-8", "replace")
                if text in str(value):
                    tables.append(table)
    return sorted(set(tables))


def fill(store: Store) -> str:
    """Store an incident whose name and text are everywhere: feedback, comment, notification, outbox, task, document."""
    diagnosis = unknown_diagnosis(SECRET, f"ValueError: the {SECRET} is torn", cluster="u-aaaaaa")
    stored = store.incidents.add(diagnosis, now=NOW)
    root = stored.diagnosis.root_cause
    assert root is not None
    assert root.cluster is not None
    store.feedback.add(stored.id, "wrong", actor="anna", because=f"the {SECRET} was fed")
    store.cause_work.comment(root.cluster, f"{SECRET} again", actor="anna")
    topic = f"{stored.diagnosis.job.id}/0"
    store.notifications.save(
        "slack", "C1", topic, cause=root.cluster, job=SECRET, hosts=(), incident=stored.id, report=None, now=NOW
    )
    store.outbox.request("slack", f"C1:{topic}", {"place": "C1", "topic": topic, "of": SECRET}, at=NOW, now=NOW)
    task = store.tasks.add("ingest", {"name": SECRET, "place": {"files": []}}, actor="anna")
    claimed = store.tasks.claim("test")
    assert claimed is not None
    with store.connections.write() as db:
        assert store.tasks.end(db, claimed, "done", result={"incident": stored.id})
        store.service_data.save_document(db, stored.id, "context", {"sources": {SECRET: []}})
        store.service_data.save_origin(db, stored.id, "anna", {"files": [{"name": SECRET, "digest": "d" * 64}]}, NOW)
    assert task.id == claimed.id
    return stored.id


def test_nothing_of_a_deleted_incident_stays(store: Store) -> None:
    """Every table is searched before and after; the search, the lists and the check of the store agree."""
    identifier = fill(store)
    before = search_everywhere(store, SECRET)
    assert {"report", "page", "exemplar", "cluster", "told", "outbox", "task", "document", "audit"} <= set(before)
    deleted = delete_incident(
        store.connections, store.incidents, identifier, actor="mira", because="ticket 17", now=NOW + 1
    )
    assert (deleted.id, deleted.uploads) == (identifier, ("d" * 64,))
    assert search_everywhere(store, SECRET) == []
    assert store.search.search_text(SECRET) == []
    assert store.causes.list_causes(now=NOW).total == 0
    assert maintenance.check_store(store.connections) == []
    (entry, *_) = store.audit.list_entries(subject=identifier)
    assert (entry.action, entry.actor, entry.at, entry.details) == ("delete", "mira", NOW + 1, {"because": "ticket 17"})
    with pytest.raises(NotFoundError):
        store.incidents.get(identifier)


def test_a_file_has_no_bytes_of_a_deleted_incident(tmp_path: Path) -> None:
    """Neither the file nor its log has a sentence of the incident afterwards, also in pages that nothing uses."""
    sentence = f"the {SECRET} is torn".encode()
    path = tmp_path / "triage.db"
    with Store.open(path) as store:
        identifier = fill(store)
        store.incidents.add(unknown_diagnosis("other", "KeyError: 'weights' is gone"), now=NOW)
        assert sentence in read_files(path)
        delete_incident(store.connections, store.incidents, identifier, actor="mira", because="asked")
        assert sentence not in read_files(path)


def test_a_deletion_does_not_wait_for_a_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While somebody reads an old state its bytes stay in the log; the next emptying drops them."""
    monkeypatch.setattr(maintenance, "LOG_SECONDS", 0.05)
    path = tmp_path / "triage.db"
    with Store.open(path) as store, Store.open(path) as reader:
        identifier = fill(store)
        with reader.connections.snapshot() as db:
            assert db.execute("SELECT count(*) FROM incident").fetchone()[0] == 1
            delete_incident(store.connections, store.incidents, identifier, actor="mira", because="asked")
        assert store.search.count_incidents() == 0
        assert maintenance.empty_log(store.connections)
        assert f"the {SECRET} is torn".encode() not in read_files(path)


def read_files(path: Path) -> bytes:
    """Return the bytes of a file of SQLite and of its log."""
    return b"".join(file.read_bytes() for file in sorted(path.parent.glob(f"{path.name}*")))


def test_a_cluster_with_others_stays(store: Store) -> None:
    """A cluster that another incident is in keeps its name and the example of that one; the other upload stays."""
    first = store.incidents.add(unknown_diagnosis("a"), now=NOW)
    second = store.incidents.add(unknown_diagnosis("b"), now=NOW)
    with store.connections.write() as db:
        for stored in (first, second):
            place = {"files": [{"name": "x", "digest": "d" * 64}]}
            store.service_data.save_origin(db, stored.id, "anna", place, NOW)
    deleted = delete_incident(store.connections, store.incidents, first.id, actor="mira", because="asked")
    assert deleted.uploads == ()
    root = second.diagnosis.root_cause
    assert root is not None
    assert [incident for _, incident, _ in store.clusters.list_exemplars(str(root.cluster))] == [second.id]
    assert store.causes.get(str(root.cluster), now=NOW).incidents == 1


def test_a_merged_cluster_goes_with_the_last_incident(store: Store) -> None:
    """Clusters that were merged into a deleted one go too."""
    stored = [
        store.incidents.add(unknown_diagnosis(name, text, cluster=f"u-{name * 6}"), now=NOW)
        for name, text in (("a", f"ValueError: {SECRET}"), ("b", "KeyError: 'weights' is gone"))
    ]
    clusters = [str(item.diagnosis.root_cause.cluster) for item in stored if item.diagnosis.root_cause is not None]
    store.cluster_actions.merge(clusters, actor="anna")
    for item in stored:
        delete_incident(store.connections, store.incidents, item.id, actor="mira", because="asked")
    assert search_everywhere(store, SECRET) == []
    assert store.connections.read("SELECT id FROM cluster") == []


def test_a_deletion_needs_a_reason(store: Store) -> None:
    """Without a reason nothing is deleted."""
    identifier = store.incidents.add(known_diagnosis("a"), now=NOW).id
    with pytest.raises(OptionError, match="reason"):
        delete_incident(store.connections, store.incidents, identifier, actor="mira", because="  ")
    assert store.incidents.get(identifier).incident.id == identifier
