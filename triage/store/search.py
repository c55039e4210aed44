"""Search incidents: by filters, full text and similarity, and compute statistics."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from triage.base.errors import OptionError
from triage.clusters.model import NearestCluster
from triage.model.store import Incident
from triage.ranks.pci_addresses import format_pci_address
from triage.store import codec, facets
from triage.store.facets import FACT as FACT, StatsRow as StatsRow
from triage.store.fts_index import RANKED
from triage.store.incidents import COLUMNS, TABLES, Incidents, incident_from_row
from triage.store.interface import Connections, Dialect
from triage.store.stats_cache import StatsCache

_FROM_NUM = TABLES.replace("incident i", "incident i ON i.num = {}", 1)
WEEK = 7 * 86_400
BATCH = 500
MOST_FINGERPRINTS = 50  # of a cluster that are asked one by one
MONDAY = 4 * 86_400  # the epoch was a Thursday


@dataclass(frozen=True, slots=True)
class Filter:
    """A filter for incidents; None matches all.

    `cause` is a signature or a cluster that is the root cause, `job` is a part of a name or path, `text` is for the
    full-text search, times are seconds. `facts` are (name, value) of the job, which must all hold. `device` and
    `failed_host` are those of the root cause.
    """

    verdict: str | None = None
    signature: str | None = None
    cluster: str | None = None
    cause: str | None = None
    domain: str | None = None
    host: str | None = None
    rank: int | None = None
    since: float | None = None
    until: float | None = None
    job: str | None = None
    text: str | None = None
    wrong: bool = False
    facts: tuple[tuple[str, str], ...] = ()
    device: str | None = None
    failed_host: str | None = None


@dataclass(frozen=True, slots=True)
class SearchHit:
    """An incident with the text around the words, which are between \\x02 and \\x03."""

    incident: Incident
    snippet: str


@dataclass(frozen=True, slots=True)
class SimilarIncident:
    """An incident that is similar to another, why, and its feedback."""

    incident: Incident
    why: str
    feedback_notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class IncidentStats:
    """The statistics of `triage stats`. `hosts` and `devices` are those with more than one incident."""

    incidents: int
    verdicts: tuple[StatsRow, ...]
    signatures: tuple[StatsRow, ...]
    hosts: tuple[StatsRow, ...]
    devices: tuple[StatsRow, ...]
    weeks: tuple[StatsRow, ...]


class Search:
    """Queries for incidents."""

    def __init__(self, connections: Connections, incidents: Incidents, cache: StatsCache) -> None:
        self._db = connections
        self._incidents = incidents
        self._stats_cache = cache

    def list_incidents(
        self, filter_: Filter = Filter(), *, limit: int = 50, after: str | None = None
    ) -> list[Incident]:
        """Return the incidents that match the filter, the latest failure first.

        `after` is the cursor of the last incident of the page before.
        """
        # The index gives incidents by time until the page is full; otherwise SQLite would find all of them and sort.
        by = "" if self._has_index(filter_) or self._has_few_incidents(filter_) else self._db.dialect.by_time
        queries: list[str] = []
        values: list[Any] = []
        for root in self._list_roots(filter_):
            where, arguments = _where_clause(filter_, self._db.dialect, root)
            if after is not None:
                at, num = _parse_cursor(after)
                where += " AND (i.at < ? OR (i.at = ? AND i.num < ?))"
                arguments += [at, at, num]
            queries.append(
                f"SELECT i.num, i.at FROM incident i {by} WHERE {where} ORDER BY i.at DESC, i.num DESC LIMIT ?"
            )
            values += [*arguments, limit]
        chosen = (
            queries[0] if len(queries) == 1 else " UNION ALL ".join(f"SELECT * FROM ({one}) AS p" for one in queries)
        )
        rows = self._db.read(
            f"WITH chosen AS ({chosen}) SELECT {COLUMNS} FROM chosen JOIN {_FROM_NUM.format('chosen.num')} "
            "ORDER BY chosen.at DESC, chosen.num DESC LIMIT ?",
            (*values, limit),
        )
        return [incident_from_row(row) for row in rows]

    def _list_roots(self, filter_: Filter) -> Sequence[str | None]:
        """Return the fingerprints of the filter's cluster: the index gives the latest incidents of each, not of all.

        None is the whole filter: it has no cluster, or one of too many fingerprints, or the reader sees a part.
        """
        if filter_.cause is None or "." in filter_.cause or self._db.dialect.among:
            return (None,)
        rows = self._db.read(
            "SELECT key FROM cluster_key WHERE cluster = ? LIMIT ?", (filter_.cause, MOST_FINGERPRINTS + 1)
        )
        return [row["key"] for row in rows] if 0 < len(rows) <= MOST_FINGERPRINTS else (None,)

    @staticmethod
    def _has_index(filter_: Filter) -> bool:
        """Whether an index gives the incidents of the filter in the order of their times."""
        return bool(filter_.verdict or filter_.domain or filter_.cause)

    def _has_few_incidents(self, filter_: Filter) -> bool:
        """Whether the filter is for a host or a fact with few incidents, so that starting from these is faster."""
        chosen: list[tuple[str, tuple[str, ...]]] = [
            ("fact WHERE name = ? AND value = ?", pair) for pair in filter_.facts
        ]
        if filter_.host is not None:
            chosen.append(("host WHERE name = ?", (filter_.host,)))
        for rows, values in chosen:
            row = self._db.read_one(
                f"SELECT count(*) AS n FROM (SELECT 1 FROM {rows} LIMIT ?) AS few", (*values, RANKED)
            )
            if row is not None and row["n"] < RANKED:
                return True
        return False

    def cursor_after(self, last: Incident) -> str:
        """Return the cursor for the page after an incident."""
        return f"{last.at!r}/{self._incidents.find_number(last.id)}"

    def count_incidents(self, filter_: Filter = Filter()) -> int:
        """Return how many incidents match the filter."""
        return self._stats_cache.get(("count", filter_), lambda: self._count(filter_))

    def _count(self, filter_: Filter) -> int:
        where, arguments = _where_clause(filter_, self._db.dialect)
        counted = "count(*) AS n FROM incident i"
        if self._is_summed(filter_):
            counted = "coalesce(sum(i.incidents), 0) AS n FROM incident_sum i"
        return int(self._db.read(f"SELECT {counted} WHERE {where}", arguments)[0]["n"])

    def _is_summed(self, filter_: Filter) -> bool:
        """Whether the database keeps the counts for the filter; it does not for a reader of a part."""
        others = dataclasses.replace(filter_, verdict=None, domain=None, cause=None)
        return others == Filter() and not self._db.dialect.among

    def get_latest(self) -> tuple[float, int]:
        """Return when a diagnosis was last stored (0: never), and the number of incidents."""
        row = self._db.read("SELECT coalesce(max(seen_at), 0) AS latest FROM incident")[0]
        return float(row["latest"]), self.count_incidents()

    def count_facets(self, filter_: Filter = Filter(), *, limit: int = 12) -> dict[str, tuple[StatsRow, ...]]:
        """Count the matching incidents by verdict, domain, signature, cluster, host, and the facts of their jobs."""
        return self._stats_cache.get(("facets", filter_, limit), lambda: self._facets(filter_, limit))

    def _facets(self, filter_: Filter, limit: int) -> dict[str, tuple[StatsRow, ...]]:
        return facets.count_facets(self._db, self._matches(filter_), limit)

    def latest_counted(self, filter_: Filter) -> int:
        """Return in how many of the latest incidents `count_facets` counts hosts and facts; 0: in all that match."""
        return self._matches(filter_).latest

    def _matches(self, filter_: Filter) -> facets.Matches:
        where, arguments = _where_clause(filter_, self._db.dialect)
        count = self.count_incidents(filter_)
        by_column = self._db.dialect.by_scan if count > facets.MANY and where != "TRUE" else ""
        by_time = "" if self._has_index(filter_) else self._db.dialect.by_time
        return facets.Matches(where, arguments, count, by_column, by_time, self._is_summed(filter_))

    def facts_of(self, incidents: Sequence[str]) -> dict[str, dict[str, tuple[str, ...]]]:
        """Return the facts of the jobs of incidents, given by their ids."""
        facts: dict[str, dict[str, tuple[str, ...]]] = {}
        for begin in range(0, len(incidents), BATCH):
            batch = incidents[begin : begin + BATCH]
            rows = self._db.read(
                "SELECT i.id, f.name, f.value FROM incident i JOIN fact f ON f.incident = i.num WHERE i.id IN "
                f"({', '.join('?' * len(batch))}) ORDER BY f.name, f.value",
                batch,
            )
            for row in rows:
                own = facts.setdefault(row["id"], {})
                own[row["name"]] = (*own.get(row["name"], ()), row["value"])
        return facts

    def search_text(self, text: str, *, limit: int = 20, some: bool = True) -> list[SearchHit]:
        """Return incidents with all words, best first; else, with `some`, with some of them. Any input is safe."""
        # A prefix search for the last word is slow, so it comes only after whole words gave too few hits.
        for any_word, last_is_open in ((False, False), (False, True), (True, True))[: 3 if some else 2]:
            rows = self._db.dialect.text.find(
                self._db, COLUMNS, _FROM_NUM, text, limit, any_word=any_word, last_is_open=last_is_open
            )
            if rows is None:
                return []
            if rows and (last_is_open or len(rows) == limit):
                return [SearchHit(incident_from_row(row), row["snippet"]) for row in rows]
        return []

    def list_by_cause(self, causes: Sequence[str], *, each: int = 3, limit: int = 20) -> list[SearchHit]:
        """Return the latest incidents of each cause (a signature or a cluster), in the order of the causes."""
        hits: list[SearchHit] = []
        for cause in causes:
            where = (
                "i.key IN (SELECT key FROM cluster_key WHERE cluster = ?)"
                if cause.startswith("u-")
                else "i.signature = ?"
            )
            rows = self._db.read(
                f"SELECT {COLUMNS} FROM {TABLES} WHERE {where} ORDER BY i.at DESC, i.num DESC LIMIT ?", (cause, each)
            )
            hits += [SearchHit(incident_from_row(row), row["title"]) for row in rows]
        return hits[:limit]

    def find_similar(self, reference: str, *, limit: int = 20) -> list[SimilarIncident]:
        """Return incidents with the same root cause, then those of near clusters.

        Incidents with feedback come first, then those on the same host.
        """
        num = self._incidents.find_number(reference)
        row = self._db.read(f"SELECT i.signature, k.cluster FROM {TABLES} WHERE i.num = ?", (num,))[0]
        if row["signature"] is not None:
            return self._find_same_cause("i.signature = :value", row["signature"], num, "the same cause", limit)
        if row["cluster"] is None:
            return []
        same = "i.key IN (SELECT key FROM cluster_key WHERE cluster = :value)"
        similar = self._find_same_cause(same, row["cluster"], num, "the same cluster", limit)
        for near in self._find_near(row["cluster"]) if len(similar) < limit else ():
            differences = "; ".join(
                f"only {side} {' '.join(terms)}"
                for side, terms in (("here", near.only_here), ("there", near.only_there))
                if terms
            )
            why = f"near cluster {near.cluster}, {near.score:.2f}" + (f": {differences}" if differences else "")
            similar += self._find_same_cause(same, near.cluster, num, why, limit)
        return similar[:limit]

    def _find_near(self, cluster: str) -> tuple[NearestCluster, ...]:
        """Return near clusters; none when the package for the comparison is not installed."""
        try:
            return self._incidents.clusters.find_near(cluster)
        except OptionError:
            return ()

    def _find_same_cause(self, where: str, value: str, num: int, why: str, limit: int) -> list[SimilarIncident]:
        on_same_host = (
            "SELECT incident FROM host WHERE blamed = 1 AND name IN (SELECT name FROM host WHERE blamed = 1 "
            "AND incident = :num)"
        )
        rows = self._db.read(
            f"""
            WITH alike AS (
                SELECT i.num, i.at FROM incident i WHERE {where} AND i.num <> :num ORDER BY i.at DESC, i.num DESC
                LIMIT {RANKED}
            ), best AS (
                SELECT num, at, num IN ({on_same_host}) AS same_host,
                    num IN (SELECT incident FROM feedback) AS has_feedback
                FROM alike ORDER BY has_feedback DESC, same_host DESC, at DESC LIMIT :limit
            )
            SELECT {COLUMNS}, best.same_host, best.has_feedback FROM best JOIN {_FROM_NUM.format("best.num")}
            ORDER BY best.has_feedback DESC, best.same_host DESC, best.at DESC
            """,
            {"value": value, "num": num, "limit": limit},
        )
        notes = self._feedback_notes([row["num"] for row in rows if row["has_feedback"]])
        return [
            SimilarIncident(
                incident_from_row(row),
                why + (", on the same host" if row["same_host"] else ""),
                tuple(notes.get(row["num"], ())),
            )
            for row in rows
        ]

    def _feedback_notes(self, nums: Sequence[int]) -> dict[int, list[str]]:
        """Return who said what about each incident."""
        notes: dict[int, list[str]] = {}
        if nums:
            rows = self._db.read(
                "SELECT incident, verdict, because, actor FROM feedback WHERE incident IN "
                f"({', '.join('?' * len(nums))}) AND because <> '' ORDER BY id",
                nums,
            )
            for row in rows:
                notes.setdefault(row["incident"], []).append(f"{row['actor']} ({row['verdict']}): {row['because']}")
        return notes

    def compute_stats(self, filter_: Filter = Filter(), *, limit: int = 20) -> IncidentStats:
        """Count incidents by verdict, signature or cluster, host, device and week."""
        return self._stats_cache.get(("sums", filter_, limit), lambda: self._sums(filter_, limit))

    def _sums(self, filter_: Filter, limit: int) -> IncidentStats:
        where, arguments = _where_clause(filter_, self._db.dialect)

        def grouped(name: str, more: str = "", order: str = "count DESC, name") -> tuple[StatsRow, ...]:
            rows = self._db.read(
                f"SELECT {name} AS name, count(*) AS count, min(i.at) AS first, max(i.at) AS last FROM incident i "
                f"WHERE {where} {more} ORDER BY {order} LIMIT ?",
                (*arguments, limit),
            )
            return tuple(StatsRow(str(row["name"]), row["count"], row["first"], row["last"]) for row in rows)

        return IncidentStats(
            incidents=self.count_incidents(filter_),
            verdicts=grouped("i.verdict", "GROUP BY 1"),
            signatures=self._cause_rows(where, arguments, limit),
            hosts=self._repeated_hosts(where, arguments, limit),
            devices=self._repeated_devices(where, arguments, limit),
            weeks=grouped(self._db.dialect.whole.format(f"(i.at - {MONDAY}) / {WEEK}"), "GROUP BY 1", "name DESC"),
        )

    def _cause_rows(self, where: str, arguments: list[Any], limit: int) -> tuple[StatsRow, ...]:
        """Count by signature or cluster name. Grouping by fingerprint first is faster, since there are few names."""
        rows = self._db.read(
            "SELECT i.signature, i.key, count(*) AS count, min(i.at) AS first, max(i.at) AS last FROM incident i "
            f"WHERE {where} AND (i.signature IS NOT NULL OR i.key IS NOT NULL) GROUP BY 1, 2",
            arguments,
        )
        names: dict[str, str] = {}
        if any(row["signature"] is None for row in rows):
            known = self._db.read(
                "SELECT k.key, coalesce(c.name, c.id) AS name FROM cluster_key k JOIN cluster c ON c.id = k.cluster"
            )
            names = {row["key"]: row["name"] for row in known}
        sums: dict[str, StatsRow] = {}
        for row in rows:
            name = row["signature"] or names.get(row["key"], row["key"])
            old = sums.get(name, StatsRow(name, 0, row["first"], row["last"]))
            sums[name] = StatsRow(
                name, old.count + row["count"], min(old.first, row["first"]), max(old.last, row["last"])
            )
        return tuple(sorted(sums.values(), key=lambda item: (-item.count, item.name))[:limit])

    def _repeated_hosts(self, where: str, arguments: list[Any], limit: int) -> tuple[StatsRow, ...]:
        """Return the hosts with more than one incident."""
        among = "" if where == "TRUE" else f"AND h.incident IN (SELECT i.num FROM incident i WHERE {where})"
        rows = self._db.read(
            f"SELECT h.name, count(*) AS count FROM host h WHERE h.blamed = 1 {among} GROUP BY 1 HAVING count(*) > 1 "
            "ORDER BY 2 DESC, 1 LIMIT ?",
            (*arguments, limit),
        )
        of = "i.num IN (SELECT incident FROM host WHERE name = ? AND blamed = 1)"
        return tuple(self._with_times(StatsRow(row["name"], row["count"], 0.0, 0.0), of, row["name"]) for row in rows)

    def _repeated_devices(self, where: str, arguments: list[Any], limit: int) -> tuple[StatsRow, ...]:
        """Return the devices with more than one incident, each with its host: addresses are the same on all hosts."""
        rows = self._db.read(
            "SELECT i.hosts, i.device, count(*) AS count, min(i.at) AS first, max(i.at) AS last, "
            f"count(DISTINCT coalesce(i.signature, i.key)) AS spread FROM incident i WHERE {where} AND i.device IS NOT "
            "NULL GROUP BY i.hosts, i.device HAVING count(*) > 1 ORDER BY count DESC, i.hosts, i.device LIMIT ?",
            (*arguments, limit),
        )
        return tuple(
            StatsRow(
                " ".join((*json.loads(row["hosts"]), row["device"])),
                *(row["count"], row["first"], row["last"], row["spread"]),
            )
            for row in rows
        )

    def _with_times(self, item: StatsRow, where: str, value: str) -> StatsRow:
        """Return the row with its times and the number of its causes."""
        row = self._db.read(
            "SELECT min(i.at) AS first, max(i.at) AS last, count(DISTINCT coalesce(i.signature, i.key)) AS spread "
            f"FROM incident i WHERE {where}",
            (value,),
        )[0]
        return StatsRow(item.name, item.count, row["first"], row["last"], row["spread"])


_CONDITIONS = {
    "verdict": "i.verdict = ?",
    "domain": "i.domain = ?",
    "signature": "i.num IN (SELECT incident FROM finding WHERE signature = ?)",
    "cluster": "i.num IN (SELECT f.incident FROM cluster_key q JOIN finding f ON f.key = q.key WHERE q.cluster = ?)",
    "host": "i.num IN (SELECT incident FROM host WHERE name = ?)",
    "failed_host": "i.num IN (SELECT incident FROM host WHERE name = ? AND blamed = 1)",
    "rank": "i.num IN (SELECT incident FROM blamed_rank WHERE rank = ?)",
    "since": "i.at >= ?",
    "until": "i.at < ?",
}


def _where_clause(filter_: Filter, dialect: Dialect, root: str | None = None) -> tuple[str, list[Any]]:
    """Return the condition for a filter and its arguments; with `root` only for this fingerprint of its cluster."""
    values = {name: getattr(filter_, name) for name in _CONDITIONS}
    clauses = ["TRUE", *(_CONDITIONS[name] for name, value in values.items() if value is not None)]
    arguments: list[Any] = [value for value in values.values() if value is not None]
    if filter_.job is not None:
        like = f"{dialect.like} ? ESCAPE '!'"
        jobs = f"SELECT id FROM job WHERE path {like} OR name {like}"
        clauses.append(f"i.num IN (SELECT num FROM incident WHERE job IN ({jobs}))")
        arguments += 2 * [_like_pattern(filter_.job)]
    if filter_.cause is not None and (root is not None or "." in filter_.cause):
        clauses.append("coalesce(i.signature, i.key) = ?")
        arguments.append(root or filter_.cause)
    elif filter_.cause is not None:
        clauses.append("coalesce(i.signature, i.key) IN (SELECT key FROM cluster_key WHERE cluster = ?)")
        arguments.append(filter_.cause)
    for name, value in filter_.facts:
        clauses.append("i.num IN (SELECT incident FROM fact WHERE name = ? AND value = ?)")
        arguments += [name, value]
    if filter_.device is not None:
        clauses.append("i.device IN (?, ?)")  # stores of before have addresses as they were written
        arguments += [filter_.device, format_pci_address(filter_.device)]
    if filter_.device is not None and filter_.failed_host is not None:
        clauses.append("i.hosts = ?")  # the device is that of this host, not of another one of the cause
        arguments.append(codec.json_list([filter_.failed_host]))
    if filter_.wrong:
        clauses.append("i.num IN (SELECT incident FROM feedback WHERE verdict = 'wrong')")
    if filter_.text is not None:
        condition, queries = dialect.text.condition(filter_.text)
        clauses.append(condition)
        arguments += queries
    return " AND ".join(clauses), arguments


def _like_pattern(text: str) -> str:
    """Return the LIKE pattern for a text within another."""
    for sign in "!%_":
        text = text.replace(sign, "!" + sign)
    return f"%{text}%"


def _parse_cursor(cursor: str) -> tuple[float, int]:
    at, _, num = cursor.partition("/")
    try:
        return float(at), int(num)
    except ValueError:
        raise OptionError(f"{cursor!r} is not a cursor", hint="use the cursor that came with the page before") from None


def week_start(name: str) -> float:
    """Return the time at which a week of `IncidentStats.weeks` begins, a Monday."""
    return int(name) * WEEK + MONDAY
