"""Checks that find what is wrong, retention that keeps what people said, and a whole store carried elsewhere."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.store.making import DAY, NOW, known, unknown
from triage.base.errors import InputError
from triage.store import Store, care, transfer


def filled(path: Path) -> Store:
    """A store with incidents, feedback, decisions and a post."""
    store = Store.open(path)
    for day in range(20):
        store.incidents.add(known(f"job {day}", at=NOW - day * DAY), now=NOW)
    for name in ("u-aaaaaa", "u-bbbbbb", "u-cccccc"):
        store.incidents.add(unknown(f"job {name}", f"ValueError: {name}", name), now=NOW)
    store.moves.merge(["u-aaaaaa", "u-bbbbbb"], actor="ann", because="one")
    store.moves.name("u-cccccc", "Torn", actor="ann")
    store.moves.reject("u-aaaaaa", "u-cccccc", actor="ann")
    store.feedback.add(known("job 19").job.id, "wrong", actor="bob", because="no")
    store.outbox.put("test", "x", "once", {})
    return store


def test_a_sound_store(tmp_path: Path) -> None:
    """Nothing to say."""
    with filled(tmp_path / "a.db") as store:
        assert care.check(store.connections) == []
        assert care.facts(store.connections)["incident"] == 23


@pytest.mark.parametrize(
    ("harm", "says"),
    [
        ("DELETE FROM page WHERE num = 3", "words are missing"),
        ("PRAGMA foreign_keys = OFF; DELETE FROM job WHERE id IN (SELECT job FROM incident LIMIT 1)", "refers to job"),
        ("DELETE FROM finding WHERE incident = 2", "no root cause"),
        ("UPDATE cluster SET redirect = 'u-aaaaaa' WHERE id = 'u-cccccc'", "merged cluster"),
        ("INSERT INTO page_fts (page_fts) VALUES ('delete-all')", "index of words"),
    ],
)
def test_harm_is_found(tmp_path: Path, harm: str, says: str) -> None:
    """Whatever a hand or a fault broke is named."""
    with filled(tmp_path / "a.db") as store:
        for statement in harm.split("; "):
            store.connections.get().execute(statement)
        assert says in "\n".join(care.check(store.connections))


def test_retention_by_age(tmp_path: Path) -> None:
    """The old ones go, what people spoke about stays, clusters keep their counts."""
    with filled(tmp_path / "a.db") as store:
        done = care.prune(store.connections, store.incidents, days=9.5, now=NOW)
        assert done.incidents == 9  # ten are older, one of them was spoken about
        assert store.incidents.get(known("job 19").job.id).incident.wrong == 1
        assert store.clusters.get("u-cccccc").incidents == 1
        assert care.check(store.connections) == []


def test_retention_by_size(tmp_path: Path) -> None:
    """The oldest go until the file fits."""
    with Store.open(tmp_path / "a.db") as store:
        for day in range(300):
            store.incidents.add(known(f"job {day}", at=NOW - day * DAY), now=NOW)
        before = store.connections.path.stat().st_size
        done = care.prune(store.connections, store.incidents, size=before // 2)
        assert store.connections.path.stat().st_size <= before // 2
        assert 50 < done.incidents < 290
        left = store.search.listed(limit=1000)
        assert min(incident.at for incident in left) > NOW - 250 * DAY
        assert care.check(store.connections) == []


def test_a_store_is_carried_elsewhere(tmp_path: Path) -> None:
    """What one store knows, another knows after the import; a second import changes nothing."""
    with filled(tmp_path / "a.db") as store, Store.open(tmp_path / "b.db") as other:
        lines = list(transfer.export(store.connections))
        assert json.loads(lines[-1]) == {"type": "end", "lost": []}
        added = transfer.load(other.connections, lines)
        assert (added["incident"], added["feedback"], added["cluster"]) == (23, 1, 3)
        assert transfer.load(other.connections, lines) == {}
        assert care.check(other.connections) == []
        assert other.search.listed(limit=100) == store.search.listed(limit=100)
        for incident in store.search.listed(limit=100):
            assert other.incidents.get(incident.id).diagnosis == store.incidents.get(incident.id).diagnosis
        assert other.clusters.listed() == store.clusters.listed()
        assert other.clusters.apart() == store.clusters.apart()
        assert other.search.text("u-bbbbbb")[0].incident == store.search.text("u-bbbbbb")[0].incident
        again = [line for line in transfer.export(other.connections) if '"type": "audit"' not in line]
        assert sorted(again) == sorted(line for line in lines if '"type": "audit"' not in line)


@pytest.mark.parametrize(
    "line",
    [
        "not json",
        "[]",
        '{"type": "incident"}',
        '{"type": "job", "id": "j-1"}',
        '{"type": "job", "id": "j-1", "name": "n", "path": "p", "versions": "{}", "name); DROP TABLE job; --": 1}',
        '{"type": "feedback", "of": "i-aa", "1=1 OR at": 1}',
        '{"type": "feedback", "of": "i-' + known("job 1").job.id[2:] + '", "1=1 OR at": 1}',
    ],
)
def test_what_is_no_export_is_refused_whole(tmp_path: Path, line: str) -> None:
    """With file and line, and nothing of it taken in; names of columns are never taken from a file."""
    with filled(tmp_path / "a.db") as store:
        before = list(transfer.export(store.connections))
        lines = ['{"type": "head", "format": "triage.store/1"}', '{"type": "setting", "key": "k", "value": "v"}', line]
        if (
            "i-aa" in line or line == '{"type": "job", "id": "j-1"}'
        ):  # no such incident, or a row that is not whole: nothing to take
            transfer.load(store.connections, lines[:1] + lines[2:])
        else:
            with pytest.raises(InputError) as caught:
                transfer.load(store.connections, lines, name="x.jsonl")
            assert (caught.value.path, caught.value.line) == ("x.jsonl", 3)
        assert list(transfer.export(store.connections)) == before
    with Store.open(tmp_path / "b.db") as store, pytest.raises(InputError, match="does not begin with a head"):
        transfer.load(store.connections, ['{"type": "setting", "key": "k", "value": "v"}'])
