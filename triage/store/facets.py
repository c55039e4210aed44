"""Count the incidents that match a filter by verdict, domain, signature, cluster, host, and the facts of their jobs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from triage.store.interface import Connections

FACT = "fact."  # begins the names of filters and facets of facts
MOST_COUNTED = 20_000
"""Hosts and facts are counted in so many matching incidents, the latest ones: each has rows of its own to be read."""
MOST_FACT_VALUES, MOST_FACT_ROWS = 6, 200
BATCH = 500  # fingerprints in one query
_COLUMNS = ("verdict", "domain", "signature")


@dataclass(frozen=True, slots=True)
class StatsRow:
    """One row of the statistics: number of incidents, first and last time, number of hosts or causes (`spread`)."""

    name: str
    count: int
    first: float
    last: float
    spread: int = 0


@dataclass(frozen=True, slots=True)
class Matches:
    """Incidents that match a filter: a condition on `incident i` with its values, and how many there are.

    `by_column` and `by_time` are hints for counting by columns and for finding the latest ones.
    """

    where: str
    values: Sequence[Any]
    count: int
    by_column: str
    by_time: str


def count_facets(db: Connections, matches: Matches, limit: int) -> dict[str, tuple[StatsRow, ...]]:
    """Return up to `limit` counts of each facet, the most frequent first."""
    counts = _count_columns(db, matches)
    among, values = "", list(matches.values)
    if matches.count > MOST_COUNTED:
        latest = (
            f"SELECT i.num FROM incident i {matches.by_time} WHERE {matches.where} ORDER BY i.at DESC, i.num DESC "
            f"LIMIT {MOST_COUNTED}"
        )
        among = f"AND h.incident IN ({latest})"
    elif matches.where != "TRUE":
        among = f"AND h.incident IN (SELECT i.num FROM incident i WHERE {matches.where})"
    hosts = db.read(
        f"SELECT h.name, count(*) AS count FROM host h WHERE h.blamed = 1 {among} GROUP BY 1 ORDER BY 2 DESC, 1 "
        "LIMIT ?",
        (*values, limit),
    )
    return {
        **{name: _most_frequent(counts[name], limit) for name in (*_COLUMNS, "cluster")},
        "host": tuple(StatsRow(row["name"], row["count"], 0.0, 0.0) for row in hosts),
        **_count_facts(db, among, values),
    }


def _count_columns(db: Connections, matches: Matches) -> Mapping[str, Counter[str]]:
    """Count by each column: all incidents by the index of the column, those of a filter in one pass over them."""
    columns = (*_COLUMNS, "key")
    groups = [columns] if matches.where != "TRUE" else [(name,) for name in columns]
    rows: list[Mapping[str, Any]] = []
    for group in groups:
        chosen = ", ".join(f"i.{name}" if name in group else f"NULL AS {name}" for name in columns)
        rows += db.read(
            f"SELECT {chosen}, count(*) AS count FROM incident i {matches.by_column} WHERE {matches.where} "
            f"GROUP BY {', '.join(f'i.{name}' for name in group)}",
            matches.values,
        )
    keys = sorted({row["key"] for row in rows if row["key"]})
    clusters: dict[str, str] = {}
    for begin in range(0, len(keys), BATCH):
        batch = keys[begin : begin + BATCH]
        marks = ", ".join("?" * len(batch))
        members = db.read(f"SELECT key, cluster FROM cluster_key WHERE key IN ({marks})", batch)
        clusters |= {row["key"]: row["cluster"] for row in members}
    counts: dict[str, Counter[str]] = {name: Counter() for name in (*_COLUMNS, "cluster")}
    for row in rows:
        cluster = clusters.get(row["key"] or "")
        for name, value in (*((name, row[name]) for name in _COLUMNS), ("cluster", cluster)):
            if value:
                counts[name][value] += int(row["count"])
    return counts


def _most_frequent(counts: Counter[str], limit: int) -> tuple[StatsRow, ...]:
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return tuple(StatsRow(name, count, 0.0, 0.0) for name, count in ordered[:limit])


def _count_facts(db: Connections, among: str, values: Sequence[Any]) -> dict[str, tuple[StatsRow, ...]]:
    """Count by each value of each fact; the name of a facet is FACT and that of the fact."""
    rows = db.read(
        "SELECT name, value, count FROM (SELECT h.name, h.value, count(*) AS count, row_number() OVER (PARTITION "
        f"BY h.name ORDER BY count(*) DESC, h.value) AS place FROM fact h WHERE TRUE {among} GROUP BY h.name, "
        "h.value) AS ranked WHERE place <= ? ORDER BY name, place LIMIT ?",
        (*values, MOST_FACT_VALUES, MOST_FACT_ROWS),
    )
    facets: dict[str, list[StatsRow]] = {}
    for row in rows:
        facets.setdefault(FACT + row["name"], []).append(StatsRow(row["value"], row["count"], 0.0, 0.0))
    return {name: tuple(counts) for name, counts in facets.items()}
