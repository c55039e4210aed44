"""triage.store.facets: counts of what matches a filter, in small and in large stores."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from typing import Any

import pytest

from tests.store.factories import DAY, NOW, clean_diagnosis, known_diagnosis, unknown_diagnosis
from triage.store import Store, facets
from triage.store.search import Filter


def fill(store: Store) -> None:
    """Store failures of two teams on three hosts, and a healthy job."""
    for number in range(6):
        diagnosis = known_diagnosis(f"job-{number}", host=f"node{number % 3}", at=NOW - number * DAY)
        job = dataclasses.replace(diagnosis.job, facts={"team": (f"team-{number % 2}",)})
        store.incidents.add(dataclasses.replace(diagnosis, job=job), now=NOW)
    store.incidents.add(known_diagnosis("kill", "host.sigkill", host="node0", at=NOW - 9 * DAY), now=NOW)
    store.incidents.add(unknown_diagnosis("torn", at=NOW - 8 * DAY), now=NOW)
    store.incidents.add(clean_diagnosis("healthy"), now=NOW)


def counts(store: Store, name: str, filter_: Filter = Filter()) -> dict[str, int]:
    return {row.name: row.count for row in store.search.count_facets(filter_)[name]}


@pytest.mark.parametrize("most", [facets.MOST_COUNTED, 2])
def test_columns_are_counted_in_all_incidents(store: Store, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """Verdicts, domains, signatures and clusters have the counts of all matching incidents, however many match."""
    monkeypatch.setattr(facets, "MOST_COUNTED", most)
    fill(store)
    assert counts(store, "verdict") == {"known": 7, "unknown": 1, "clean": 1}
    assert counts(store, "signature") == {"cuda.out-of-memory": 6, "host.sigkill": 1}
    assert list(counts(store, "cluster").values()) == [1]
    known = Filter(verdict="known")
    assert counts(store, "verdict", known) == {"known": 7}
    assert counts(store, "signature", known) == {"cuda.out-of-memory": 6, "host.sigkill": 1}
    assert counts(store, "cluster", known) == {}
    assert counts(store, "signature", Filter(host="node0")) == {"cuda.out-of-memory": 2, "host.sigkill": 1}
    assert counts(store, "verdict", Filter(since=NOW - 2.5 * DAY))["known"] == 3


@pytest.mark.parametrize(
    ("most", "teams"), [(6, {"team-0": 3, "team-1": 3}), (5, {"team-0": 3, "team-1": 2}), (1, {"team-0": 1})]
)
def test_hosts_and_facts_are_counted_in_the_latest(
    store: Store, monkeypatch: pytest.MonkeyPatch, most: int, teams: dict[str, int]
) -> None:
    """Where more incidents match than MOST_COUNTED, hosts and facts have the counts of so many, the latest ones."""
    monkeypatch.setattr(facets, "MOST_COUNTED", most)
    fill(store)
    memory = Filter(signature="cuda.out-of-memory")
    assert counts(store, "fact.team", memory) == teams
    assert sum(counts(store, "host", memory).values()) == most


@pytest.mark.parametrize("filter_", [Filter(verdict="known"), Filter(domain="cuda")], ids=["verdict", "domain"])
def test_hosts_and_facts_of_many_incidents_are_read_from_indexes(
    store: Store, monkeypatch: pytest.MonkeyPatch, filter_: Filter
) -> None:
    """Each row of a table would be a page to read: 2,000 incidents may be anywhere in it."""
    monkeypatch.setattr(facets, "MOST_COUNTED", 2)
    fill(store)
    statements: list[tuple[str, Sequence[Any]]] = []
    read = type(store.connections).read

    def remember(self: Any, sql: str, values: Sequence[Any] = ()) -> Any:
        statements.append((sql, values))
        return read(self, sql, values)

    with monkeypatch.context() as patch:
        patch.setattr(type(store.connections), "read", remember)
        store.search.count_facets(filter_)
    counting = [(sql, values) for sql, values in statements if "LIMIT 2)" in sql]
    assert len(counting) == 2
    for sql, values in counting:
        plan = explain(store, sql, values)
        reads = [line for line in plan if re.search(r"\b(?:Scan|SCAN|SEARCH) .*\b[hi]\b", line)]
        assert len(reads) == 2
        assert all("Index Only Scan" in line or "COVERING INDEX" in line for line in reads), plan


def explain(store: Store, sql: str, values: Sequence[Any]) -> list[str]:
    """Return the lines of a plan. PostgreSQL takes other ways than an index alone only where there is no such index."""
    with store.connections.write() as db:
        if store.connections.dialect.name == "sqlite":
            return [row["detail"] for row in db.execute(f"EXPLAIN QUERY PLAN {sql}", values)]
        for way in ("seqscan", "bitmapscan"):
            db.execute(f"SET LOCAL enable_{way} = off")
        return [row[0] for row in db.execute(f"EXPLAIN {sql}", values)]
