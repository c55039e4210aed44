"""triage.store.maintenance and transfer: checks, retention, export and import."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.store.conftest import Place
from tests.store.factories import DAY, NOW, known_diagnosis, separated_pairs, unknown_diagnosis, with_job_id
from triage.base.errors import InputError
from triage.store import Store, maintenance, transfer


def filled(path: str) -> Store:
    """Return a store with incidents, feedback, decisions and a post."""
    store = Store.open(path)
    for day in range(20):
        store.incidents.add(known_diagnosis(f"job {day}", at=NOW - day * DAY), now=NOW)
    for name in ("u-aaaaaa", "u-bbbbbb", "u-cccccc"):
        store.incidents.add(unknown_diagnosis(f"job {name}", f"ValueError: {name}", name), now=NOW)
    store.cluster_actions.merge(["u-aaaaaa", "u-bbbbbb"], actor="ann", because="one")
    store.cluster_actions.name("u-cccccc", "Torn", actor="ann")
    store.cluster_actions.reject("u-aaaaaa", "u-cccccc", actor="ann")
    store.feedback.add(known_diagnosis("job 19").job.id, "wrong", actor="bob", because="no")
    store.outbox.put("test", "x", "once", {})
    return store


def test_a_sound_store(place: Place) -> None:
    """A sound store has no problems."""
    with filled(place("a")) as store:
        assert maintenance.check_store(store.connections) == []
        assert maintenance.summarize(store.connections)["incident"] == 23


@pytest.mark.sqlite_only
@pytest.mark.parametrize(
    ("harm", "says"),
    [
        ("DELETE FROM page WHERE num = 3", "not in the full-text index"),
        (
            "PRAGMA foreign_keys = OFF; DELETE FROM job WHERE id IN (SELECT job FROM incident LIMIT 1)",
            "refers to a missing row of job",
        ),
        ("DELETE FROM finding WHERE incident = 2", "no root cause"),
        ("UPDATE cluster SET redirect = 'u-aaaaaa' WHERE id = 'u-cccccc'", "merged cluster"),
        ("INSERT INTO page_fts (page_fts) VALUES ('delete-all')", "full-text index is wrong"),
    ],
)
def test_damage_is_found(place: Place, harm: str, says: str) -> None:
    """Each kind of damage is named."""
    with filled(place("a")) as store:
        for statement in harm.split("; "):
            store.connections.get().execute(statement)
        assert says in "\n".join(maintenance.check_store(store.connections))


@pytest.mark.sqlite_only
def test_pages_of_a_sound_and_of_a_damaged_store(place: Place) -> None:
    """A sound store has no problem; of a damaged one both checks say so, and neither raises."""
    path = place("a")
    with filled(path) as store:
        assert maintenance.check_pages(store.connections, 60) == []
        maintenance.vacuum(store.connections)
        page = store.connections.read("SELECT rootpage FROM sqlite_schema WHERE name = 'report'")[0]["rootpage"]
    with Path(path).open("r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(bytes(4096))
    with Store.open(path) as store:
        assert maintenance.check_pages(store.connections, 60)
        assert "damaged" in "\n".join(maintenance.check_store(store.connections))


@pytest.mark.sqlite_only
def test_the_check_of_pages_is_stopped(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A check that takes longer than it may says that it does not know."""
    monkeypatch.setattr(maintenance, "PROGRESS_STEPS", 1)
    with filled(place("a")) as store:
        assert maintenance.check_pages(store.connections, -1) is None
        assert maintenance.check_pages(store.connections, 60) == []


def test_retention_by_age(place: Place) -> None:
    """Old incidents are deleted, those with feedback stay, and clusters keep their counts."""
    with filled(place("a")) as store:
        done = maintenance.prune(store.connections, store.incidents, days=9.5, now=NOW)
        assert done.incidents == 9  # ten are older, one of them was spoken about
        assert store.incidents.get(known_diagnosis("job 19").job.id).incident.wrong == 1
        assert store.clusters.get("u-cccccc").incidents == 1
        assert maintenance.check_store(store.connections) == []


@pytest.mark.sqlite_only
def test_retention_by_size(place: Place) -> None:
    """The oldest incidents are deleted until the file is small enough."""
    with Store.open(place("a")) as store:
        for day in range(300):
            store.incidents.add(known_diagnosis(f"job {day}", at=NOW - day * DAY), now=NOW)
        before = store.connections.path.stat().st_size
        done = maintenance.prune(store.connections, store.incidents, size=before // 2)
        assert store.connections.path.stat().st_size <= before // 2
        assert 50 < done.incidents < 290
        left = store.search.list_incidents(limit=1000)
        assert min(incident.at for incident in left) > NOW - 250 * DAY
        assert maintenance.check_store(store.connections) == []


def test_export_and_import(place: Place) -> None:
    """The import restores what was exported; a second import changes nothing."""
    with filled(place("a")) as store, Store.open(place("b")) as other:
        lines = list(transfer.export_lines(store.connections))
        assert json.loads(lines[-1]) == {"type": "end", "lost": []}
        added = transfer.import_lines(other.connections, lines)
        assert (added["incident"], added["feedback"], added["cluster"]) == (23, 1, 3)
        assert transfer.import_lines(other.connections, lines) == {}
        assert maintenance.check_store(other.connections) == []
        assert other.search.list_incidents(limit=100) == store.search.list_incidents(limit=100)
        for incident in store.search.list_incidents(limit=100):
            assert other.incidents.get(incident.id).diagnosis == store.incidents.get(incident.id).diagnosis
        assert other.clusters.list_clusters() == store.clusters.list_clusters()
        assert separated_pairs(other) == separated_pairs(store)
        assert other.search.search_text("u-bbbbbb")[0].incident == store.search.search_text("u-bbbbbb")[0].incident
        again = [line for line in transfer.export_lines(other.connections) if '"type": "audit"' not in line]
        assert sorted(again) == sorted(line for line in lines if '"type": "audit"' not in line)


def test_a_merged_cluster_may_stand_before_the_one_that_stays(place: Place) -> None:
    """The order of an export is that of the rows; a cluster without the one that it was merged into is refused."""
    with filled(place("a")) as store, Store.open(place("b")) as other:
        lines = list(transfer.export_lines(store.connections))
        clusters = [line for line in lines if '"type": "cluster"' in line]
        rest = [line for line in lines if line not in clusters]
        merged = next(line for line in clusters if '"redirect": "u-aaaaaa"' in line)
        without_target = [rest[0], merged]
        with pytest.raises(InputError, match="points to one that the export lacks"):
            transfer.import_lines(other.connections, without_target)
        clusters.sort(key=lambda line: line != merged)
        transfer.import_lines(other.connections, [*rest[:2], *clusters, *rest[2:]])
        assert other.clusters.find_id("u-bbbbbb") == "u-aaaaaa"


def test_empty_lines_of_an_export_are_passed_over(place: Place) -> None:
    """An editor may add empty lines to an export."""
    with filled(place("a")) as store, Store.open(place("b")) as other:
        lines = ["", *transfer.export_lines(store.connections), " \n"]
        with pytest.raises(InputError, match="not an export"):
            transfer.import_lines(other.connections, ["{}", *lines])
        assert transfer.import_lines(other.connections, [*lines[1:], *lines[:1]])["incident"] == 23


@pytest.mark.sqlite_only
def test_retention_by_size_keeps_what_has_feedback(place: Place) -> None:
    """Where only incidents with feedback are left, the file stays larger than asked."""
    with filled(place("a")) as store:
        done = maintenance.prune(store.connections, store.incidents, size=1)
        assert [incident.wrong for incident in store.search.list_incidents()] == [1]
        assert done.incidents == 22


def test_a_check_of_a_store_that_may_not_be_written(place: Place) -> None:
    """A store that is open for reading is checked too."""
    with filled(place("a")) as store:
        store.connections.execute("DELETE FROM page WHERE num = 3")
    with Store.open(place("a"), read_only=True) as store:
        assert "not in the full-text index" in "\n".join(maintenance.check_store(store.connections))


def test_an_imported_incident_does_not_give_way_to_another_of_its_id(place: Place) -> None:
    """Two jobs whose ids begin alike are two incidents after an import too, and each keeps its own feedback."""
    jobs = [f"j-{'a' * 12}{letter * 52}" for letter in "bc"]
    diagnoses = [with_job_id(known_diagnosis(job), job) for job in jobs]
    with Store.open(place("a")) as store, Store.open(place("b")) as other:
        there, here = store.incidents.add(diagnoses[0]), other.incidents.add(diagnoses[1])
        assert there.id == here.id
        store.feedback.add(there.id, "agree", actor="somebody", because="of the first")
        lines = list(transfer.export_lines(store.connections))
        assert transfer.import_lines(other.connections, lines)["incident"] == 1
        assert transfer.import_lines(other.connections, lines) == {}
        assert other.incidents.get(here.id).feedback == ()
        assert [one.because for one in other.incidents.get(jobs[0]).feedback] == ["of the first"]


@pytest.mark.parametrize(
    "line",
    [
        "not json",
        "[]",
        '{"type": "incident"}',
        '{"type": "job", "id": "j-1"}',
        '{"type": "job", "id": "j-1", "name": "n", "path": "p", "versions": "{}", "name); DROP TABLE job; --": 1}',
        '{"type": "feedback", "of": "i-aa", "1=1 OR at": 1}',
        '{"type": "feedback", "of": "i-' + known_diagnosis("job 1").job.id[2:] + '", "1=1 OR at": 1}',
    ],
)
def test_other_files_are_not_imported(place: Place, line: str) -> None:
    """The error has file and line, nothing is imported, and column names never come from a file."""
    with filled(place("a")) as store:
        before = list(transfer.export_lines(store.connections))
        lines = ['{"type": "head", "format": "triage.store/1"}', '{"type": "setting", "key": "k", "value": "v"}', line]
        if "i-aa" in line:  # no such incident: nothing to take
            transfer.import_lines(store.connections, lines[:1] + lines[2:])
        else:
            with pytest.raises(InputError) as caught:
                transfer.import_lines(store.connections, lines, name="x.jsonl")
            assert (caught.value.path, caught.value.line) == ("x.jsonl", 3)
        assert list(transfer.export_lines(store.connections)) == before
    with Store.open(place("b")) as store, pytest.raises(InputError, match="is not a head"):
        transfer.import_lines(store.connections, ['{"type": "setting", "key": "k", "value": "v"}'])
