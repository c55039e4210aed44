"""Facts of jobs in the store: filters, counts, exports, and jobs stored by an older version."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path

import pytest

from tests.store.conftest import Place
from tests.store.factories import NOW, known_diagnosis
from triage.model import Diagnosis
from triage.store import Store, transfer
from triage.store.search import FACT, Filter, StatsRow


def with_facts(name: str, **facts: str) -> Diagnosis:
    """Return a known failure of a job with facts."""
    diagnosis = known_diagnosis(name)
    job = dataclasses.replace(
        diagnosis.job, versions={"torch": "2.5.1"}, facts={key: (value,) for key, value in facts.items()}
    )
    return dataclasses.replace(diagnosis, job=job)


def test_incidents_are_filtered_and_counted_by_facts(store: Store) -> None:
    """All given facts must hold; each value has its count, among the incidents that match the other filters."""
    for number, team in enumerate(("vision", "vision", "llm")):
        store.incidents.add(with_facts(f"job-{number}", team=team, user=f"u{number}"), now=NOW)
    store.incidents.add(known_diagnosis("without"), now=NOW)
    assert store.search.count_incidents(Filter(facts=(("team", "vision"),))) == 2
    assert len(store.search.list_incidents(Filter(facts=(("team", "vision"), ("user", "u1"))))) == 1
    assert store.search.count_incidents(Filter(facts=(("team", "vision"), ("user", "u2")))) == 0
    assert store.search.count_incidents(Filter(facts=(("torch", "2.5.1"),))) == 3
    facets = store.search.count_facets()
    assert facets[FACT + "team"] == (StatsRow("vision", 2, 0.0, 0.0), StatsRow("llm", 1, 0.0, 0.0))
    narrowed = store.search.count_facets(Filter(facts=(("user", "u2"),)))
    assert narrowed[FACT + "team"] == (StatsRow("llm", 1, 0.0, 0.0),)


def test_a_new_ingest_replaces_the_facts(store: Store) -> None:
    """The same files with another label change the facts of their incident, and it stays one."""
    store.incidents.add(with_facts("job", team="vision"), now=NOW)
    assert not store.incidents.add(with_facts("job", team="llm"), now=NOW + 1).is_new
    (incident,) = store.search.list_incidents(Filter(facts=(("team", "llm"),)))
    assert store.search.facts_of([incident.id]) == {incident.id: {"team": ("llm",), "torch": ("2.5.1",)}}
    assert store.search.count_incidents(Filter(facts=(("team", "vision"),))) == 0


def test_an_export_has_the_facts(store: Store, place: Place) -> None:
    """An import has the facts; an export of a version without facts is imported too."""
    store.incidents.add(with_facts("job", team="vision"), now=NOW)
    lines = list(transfer.export_lines(store.connections))
    with Store.open(place("new")) as new, Store.open(place("old")) as old:
        transfer.import_lines(new.connections, lines)
        assert new.search.count_incidents(Filter(facts=(("team", "vision"),))) == 1
        items = [json.loads(line) for line in lines]
        for item in items:
            item.pop("fact", None)
        transfer.import_lines(old.connections, [json.dumps(item) for item in items])
        assert old.search.count_incidents() == 1


@pytest.mark.sqlite_only
def test_stored_jobs_get_their_versions_as_facts(tmp_path: Path) -> None:
    """A migrated store has the versions of its jobs as facts."""
    shutil.copy(Path(__file__).parent / "old" / "v8.db", tmp_path / "triage.db")
    with Store.open(tmp_path / "triage.db") as store:
        versions = store.connections.read("SELECT count(*) AS n FROM job, json_each(job.versions)")[0]["n"]
        assert store.connections.read("SELECT count(*) AS n FROM fact")[0]["n"] == versions
