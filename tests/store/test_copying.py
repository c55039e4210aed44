"""triage.store.copying and `triage db copy`: whole stores from one kind of database to another."""

from __future__ import annotations

import itertools
import time
from pathlib import Path

import pytest

from tests.store.conftest import Place
from tests.store.factories import NOW, dump_tables, known_diagnosis, unknown_diagnosis
from triage.base.errors import OptionError, StoreError
from triage.cli import main
from triage.store import Store, cause_tables, copying, facet_tables, maintenance
from triage.store.cause_work import WorkChange


def fill(place: str) -> str:
    """Write something into every table that the store's own methods fill; return the secret of a token."""
    with Store.open(place) as store:
        stored = store.incidents.add(known_diagnosis("a"), now=NOW)
        for name in ("u-aaaaaa", "u-bbbbbb", "u-cccccc"):
            store.incidents.add(unknown_diagnosis(name, f"ValueError: shard {name} was bad", name), now=NOW)
        # the one that stays has a greater id than the merged one, which refers to it
        store.connections.execute("UPDATE cluster SET created_at = created_at - 5 WHERE id = 'u-bbbbbb'")
        merged, _ = store.cluster_actions.merge(["u-aaaaaa", "u-bbbbbb"], actor="ann")
        store.cluster_actions.reject("u-bbbbbb", "u-cccccc", actor="ann")
        named = store.cluster_actions.name("u-cccccc", "Torn", actor="ann")
        store.cluster_actions.undo(named, actor="ann")
        store.cause_work.change(["u-cccccc"], WorkChange(status="acknowledged", assignee="ann"), actor="ann")
        store.cause_work.comment("u-cccccc", "the disk was full", actor="ann")
        store.feedback.add(stored.id, "wrong", actor="bob", because="été")
        store.incidents.add(known_diagnosis("a", "host.sigkill"), now=NOW + 1)
        store.outbox.put("slack", "x", "once", {"a": 1})
        store.tasks.add("ingest", {"name": "job"}, actor="ann")
        secret, _ = store.tokens.create("ci", ["read"], actor="ann")
        store.service_data.save_upload("d" * 64, 12)
        store.service_data.get_secret("cookies")
        with store.connections.write() as db:
            store.service_data.save_origin(db, stored.id, "ann", {"files": []}, NOW)
            store.service_data.save_document(db, stored.id, "matrix", {"rows": [1, 2]})
        note = store.notifications.save(
            "slack", "#c", "t", cause="c", job="a", hosts=["n"], incident=stored.id, report=None, now=NOW
        )
        store.notifications.add_repeat(note.id, "t2", job="b", hosts=["n"], now=NOW)
        store.notifications.mute("slack", "#c", "c", NOW + 5, "ann")
        store.notifications.claim_request("k", now=NOW)
        assert merged
    return secret


def test_a_copy_is_the_original(place: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every table has the same rows, the search finds the same, a token still works, and new rows get new numbers."""
    there, here = place("there"), str(tmp_path / "here.db")
    secret = fill(there)
    assert main(["db", "copy", there, here if "://" in there else f"sqlite:{here}"]) == 0
    assert "copied and compared: 4 incidents, 3 clusters, 1 token, 1 task" in capsys.readouterr().out
    assert main(["db", "copy", f"sqlite:{here}", place("again")]) == 0
    with Store.open(there) as one, Store.open(here) as other, Store.open(place("again")) as third:
        assert dump_tables(one) == dump_tables(other) == dump_tables(third)
        for copied in (other, third):
            assert maintenance.check_store(copied.connections) == []
            assert copied.search.search_text("shard bad") == one.search.search_text("shard bad")
            assert copied.tokens.verify(secret) is not None
            assert copied.incidents.add(known_diagnosis("new")).is_new
            assert copied.clusters.find_id("u-aaaaaa") == "u-bbbbbb"
            assert copied.audit.write_entry(time.time(), "ann", "look", "x", {}) > 1


def test_a_target_with_data_is_refused(place: Place, tmp_path: Path) -> None:
    """Nothing is copied into a store that has incidents; one with only its secret is empty."""
    source = str(tmp_path / "source.db")
    fill(source)
    with Store.open(source) as original, Store.open(place("a")) as full, Store.open(place("b")) as empty:
        full.incidents.add(known_diagnosis("mine"))
        with pytest.raises(OptionError, match="is not empty: the table job has rows"):
            copying.copy_store(original.connections, full.connections)
        assert full.search.count_incidents() == 1
        empty.service_data.get_secret("cookies")
        assert copying.copy_store(original.connections, empty.connections).rows["incident"] == 4
        assert empty.service_data.get_secret("cookies") == original.service_data.get_secret("cookies")


def test_a_copy_that_differs_is_not_stored(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a table differs at the end, the target stays empty."""
    source = str(tmp_path / "source.db")
    fill(source)
    numbers = itertools.count()
    monkeypatch.setattr(copying, "_comparable", lambda _: next(numbers))
    with Store.open(source) as original, Store.open(place("a")) as target:
        with pytest.raises(StoreError, match="the copy of the table setting differs"):
            copying.copy_store(original.connections, target.connections)
        assert target.search.count_incidents() == 0


def test_texts_that_postgres_cannot_store(place: Place, tmp_path: Path) -> None:
    """A NUL in a text of a file becomes U+FFFD in PostgreSQL, and the copy counts as equal."""
    with Store.open(tmp_path / "source.db") as original, Store.open(place("a")) as target:
        original.connections.execute("INSERT INTO setting VALUES ('k', ?)", ("a\0b",))
        copying.copy_store(original.connections, target.connections)
        assert target.connections.read("SELECT value FROM setting WHERE key = 'k'")[0][0] in ("a\0b", "a\ufffdb")


def test_all_tables_are_copied(place: Place) -> None:
    """A new table must be added to the list of those that are copied."""
    with Store.open(place("a")) as store:
        schema = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema()"
        if store.connections.dialect.name == "sqlite":
            schema = "SELECT name FROM sqlite_schema WHERE type = 'table'"
        tables = {row[0] for row in store.connections.read(schema)}
    others = {
        "generation",
        "schema_version",
        *cause_tables.SUMS.names,
        *facet_tables.SUMS.names,
    }  # the target computes the sums itself
    assert {name for name in tables if not name.startswith(("page_fts", "sqlite_"))} - others == set(copying.TABLES)
