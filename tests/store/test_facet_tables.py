"""triage.store.facet_tables: the stored counts of facets follow every write, in each kind of database."""

from __future__ import annotations

import dataclasses
from collections import Counter

import pytest

from tests.store.conftest import Place
from tests.store.factories import DAY, NOW, known_diagnosis
from tests.store.test_facets import fill
from triage.model import Diagnosis
from triage.store import Store, copying, facets, maintenance, transfer
from triage.store.search import Filter


def sums(store: Store) -> Counter[tuple[str | None, ...]]:
    """Return the counts in the tables."""
    queries = (
        "SELECT verdict, domain, signature, key, incidents FROM incident_sum",
        "SELECT name, value, incidents FROM facet_sum",
    )
    return Counter({tuple(row)[:-1]: row["incidents"] for sql in queries for row in store.connections.read(sql)})


def counted_again(store: Store) -> Counter[tuple[str | None, ...]]:
    """Return the counts as the incidents alone give them."""
    queries = (
        "SELECT verdict, domain, signature, key FROM incident",
        "SELECT 'host' AS facet, name FROM host WHERE blamed = 1",
        "SELECT 'fact.' || name AS facet, value FROM fact",
    )
    return Counter(tuple(row) for sql in queries for row in store.connections.read(sql))


def of_team(diagnosis: Diagnosis, team: str) -> Diagnosis:
    """Return the diagnosis of a job of a team."""
    return dataclasses.replace(diagnosis, job=dataclasses.replace(diagnosis.job, facts={"team": (team,)}))


def test_the_sums_follow_new_diagnoses_and_deletion(store: Store) -> None:
    """After ingests, another diagnosis of a job, and retention, the sums are those of the incidents."""
    fill(store)
    assert sums(store) == counted_again(store)
    assert sums(store)["fact.team", "team-0"] == 3
    store.incidents.add(of_team(known_diagnosis("job-0", "host.sigkill", host="node9", at=NOW), "other"), now=NOW)
    assert sums(store) == counted_again(store)
    assert (sums(store)["fact.team", "team-0"], sums(store)["host", "node9"]) == (2, 1)
    maintenance.prune(store.connections, store.incidents, days=1.5, now=NOW + DAY)
    assert sums(store) == counted_again(store)
    maintenance.prune(store.connections, store.incidents, days=-2, now=NOW + DAY)
    assert sums(store) == Counter()


def test_the_sums_follow_the_keys_of_incidents(store: Store) -> None:
    """A fingerprint that is written anew moves its incidents to another sum."""
    fill(store)
    store.connections.execute("UPDATE incident SET key = 'f-other' WHERE key IS NOT NULL")
    assert sums(store) == counted_again(store)


def test_copies_and_imports_have_the_sums(place: Place) -> None:
    """A copied store and one with imported incidents have the sums of the first."""
    with Store.open(place("one")) as one, Store.open(place("two")) as two, Store.open(place("three")) as three:
        fill(one)
        copying.copy_store(one.connections, two.connections)
        transfer.import_lines(three.connections, list(transfer.export_lines(one.connections)))
        assert sums(one) == sums(two) == sums(three) == counted_again(one)
        two.incidents.add(known_diagnosis("more", at=NOW), now=NOW)
        assert sums(two) == counted_again(two)


@pytest.mark.parametrize("most", [facets.MOST_COUNTED, 2])
def test_all_incidents_have_exact_counts(store: Store, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """Without a filter hosts and facts are counted in all incidents, as many as there are; the first names are kept."""
    fill(store)
    expected = store.search.count_facets(Filter(since=0))
    monkeypatch.setattr(facets, "MOST_COUNTED", most)
    assert store.search.count_facets() == expected
    assert store.search.latest_counted(Filter()) == 0
    first = dict.fromkeys(row.name for row in expected["host"][:2])
    assert [row.name for row in store.search.count_facets(limit=2)["host"]] == list(first)


@pytest.mark.parametrize(("most", "names"), [(8, {"fact.team", "fact.user"}), (2, {"fact.team"}), (1, {"fact.team"})])
def test_the_side_has_a_limit(store: Store, monkeypatch: pytest.MonkeyPatch, most: int, names: set[str]) -> None:
    """So many values of facts are listed at most, the facts by name; hosts are always there."""
    monkeypatch.setattr(facets, "MOST_FACT_ROWS", most)
    for number in range(4):
        diagnosis = known_diagnosis(f"job-{number}")
        facts = {"team": (f"team-{number % 2}",), "user": ("mira",)}
        store.incidents.add(
            dataclasses.replace(diagnosis, job=dataclasses.replace(diagnosis.job, facts=facts)), now=NOW
        )
    counts = store.search.count_facets()
    assert {name for name in counts if name in ("fact.team", "fact.user")} == names
    assert sum(len(rows) for name, rows in counts.items() if name.startswith("fact.")) <= most
    assert counts["host"]


@pytest.mark.parametrize(("most", "latest"), [(6, 0), (5, 5)])
def test_a_filter_that_matches_more_says_so(
    store: Store, monkeypatch: pytest.MonkeyPatch, most: int, latest: int
) -> None:
    """Where a filter matches more incidents than are counted, the list can say in how many of the latest they were."""
    monkeypatch.setattr(facets, "MOST_COUNTED", most)
    fill(store)
    assert store.search.latest_counted(Filter(signature="cuda.out-of-memory")) == latest


@pytest.mark.parametrize(
    "filter_",
    [
        Filter(),
        Filter(verdict="known"),
        Filter(domain="none"),
        Filter(cause="cuda.out-of-memory"),
        Filter(verdict="unknown", cause="cuda.out-of-memory"),
    ],
)
def test_counts_from_the_sums_are_those_of_the_list(store: Store, filter_: Filter) -> None:
    """How many incidents match is how many are listed, for the filters that the sums answer."""
    fill(store)
    assert store.search.count_incidents(filter_) == len(store.search.list_incidents(filter_))
    everything = dataclasses.replace(filter_, since=0)
    for name in ("verdict", "domain", "signature", "cluster"):
        assert store.search.count_facets(filter_)[name] == store.search.count_facets(everything)[name]


def test_a_cluster_is_counted_by_its_fingerprints(store: Store) -> None:
    """The count of a cluster that is the root cause is that of its incidents."""
    fill(store)
    cluster = store.search.list_incidents(Filter(verdict="unknown"))[0].cluster
    assert store.search.count_incidents(Filter(cause=cluster)) == 1


def test_a_reader_of_a_part_gets_the_counts_of_the_part(store: Store) -> None:
    """Whoever sees one team gets the counts of its incidents alone."""
    fill(store)
    part = store.visible_to((("team", "team-0"),), "mira")
    assert part.search.count_incidents() == 3
    assert {row.name: row.count for row in part.search.count_facets()["fact.team"]} == {"team-0": 3}
    assert {row.name: row.count for row in part.search.count_facets()["verdict"]} == {"known": 3}
