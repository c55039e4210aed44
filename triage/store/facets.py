"""Count the incidents that match a filter by verdict, domain, signature, cluster, host, and the facts of their jobs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from triage.store.interface import Connections

FACT = "fact."  # begins the names of filters and facets of facts
MOST_COUNTED = 2000
"""Hosts and facts are counted in so many matching incidents, the latest ones: each has rows of its own to be read."""
MANY = 20_000  # where more match, an index that leads to each by itself is slower than reading all in order
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

    `by_column` and `by_time` are hints for counting by columns and for finding the latest ones. `is_summed`: the tables
    of sums have the counts by column, and if all incidents match, those of hosts and facts too.
    """

    where: str
    values: Sequence[Any]
    count: int
    by_column: str
    by_time: str
    is_summed: bool = False

    @property
    def latest(self) -> int:
        """In how many of the latest incidents hosts and facts are counted; 0: in all that match."""
        return MOST_COUNTED if self.count > MOST_COUNTED and not self.has_facet_sums else 0

    @property
    def has_facet_sums(self) -> bool:
        """Whether the sums of hosts and facts are stored."""
        return self.is_summed and self.where == "TRUE"


def count_facets(db: Connections, matches: Matches, limit: int) -> dict[str, tuple[StatsRow, ...]]:
    """Return up to `limit` counts of each facet, the most frequent first."""
    counts = _count_columns(db, matches)
    columns = {name: _most_frequent(counts[name], limit) for name in (*_COLUMNS, "cluster")}
    parts = _read_sums(db, limit) if matches.has_facet_sums else _count_parts(db, matches, limit)
    return columns | parts


def _count_parts(db: Connections, matches: Matches, limit: int) -> dict[str, tuple[StatsRow, ...]]:
    """Count by host and by each fact, in the latest incidents if many match."""
    among, values = "", list(matches.values)
    if matches.latest:
        latest = (
            f"SELECT i.num FROM incident i {matches.by_time} WHERE {matches.where} ORDER BY i.at DESC, i.num DESC "
            f"LIMIT {matches.latest}"
        )
        among = f"AND h.incident {db.dialect.within_few.format(latest)}"
    elif matches.where != "TRUE":
        among = f"AND h.incident IN (SELECT i.num FROM incident i WHERE {matches.where})"
    hosts = db.read(
        f"SELECT h.name, count(*) AS count FROM host h WHERE h.blamed = 1 {among} GROUP BY 1 ORDER BY 2 DESC, 1 "
        "LIMIT ?",
        (*values, limit),
    )
    return {"host": _as_stats((row["name"], row["count"]) for row in hosts), **_count_facts(db, among, values)}


def _read_sums(db: Connections, limit: int) -> dict[str, tuple[StatsRow, ...]]:
    """Return the most frequent hosts and values of facts of all incidents: an index has them in this order."""
    facts = db.read(
        "WITH RECURSIVE facet (name) AS (SELECT min(name) FROM facet_sum UNION ALL SELECT (SELECT min(s.name) "
        "FROM facet_sum s WHERE s.name > facet.name) FROM facet WHERE facet.name IS NOT NULL) "
        "SELECT name FROM facet WHERE name <> 'host' LIMIT ?",
        (MOST_FACT_ROWS,),
    )
    names = ["host", *(row["name"] for row in facts)]
    most = (
        "SELECT * FROM (SELECT name, value, incidents FROM facet_sum WHERE name = ? ORDER BY incidents DESC, value "
        "LIMIT ?) AS most"
    )
    values: list[str | int] = []
    for name in names:
        values += [name, limit if name == "host" else MOST_FACT_VALUES]
    counts: dict[str, Counter[str]] = {name: Counter() for name in names}
    for row in db.read(" UNION ALL ".join([most] * len(names)), values):
        counts[row["name"]][row["value"]] = int(row["incidents"])
    result = {"host": _most_frequent(counts.pop("host"), limit)}
    left = MOST_FACT_ROWS
    for name in sorted(counts):
        result[name] = _most_frequent(counts[name], left)
        left -= len(result[name])
    return {name: rows for name, rows in result.items() if rows or name == "host"}


def _as_stats(counts: Iterable[tuple[str, int]]) -> tuple[StatsRow, ...]:
    return tuple(StatsRow(name, count, 0.0, 0.0) for name, count in counts)


def _count_columns(db: Connections, matches: Matches) -> Mapping[str, Counter[str]]:
    """Count by each column: by the stored sums, or in one pass over the incidents that match."""
    columns = "i.verdict, i.domain, i.signature, i.key"
    counted = f"count(*) AS count FROM incident i {matches.by_column} WHERE {matches.where} GROUP BY {columns}"
    if matches.is_summed:
        counted = f"i.incidents AS count FROM incident_sum i WHERE {matches.where}"
    rows = db.read(f"SELECT {columns}, {counted}", matches.values)
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
    return _as_stats(ordered[:limit])


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
