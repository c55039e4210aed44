"""A view of the store for a reader who may see a part of the incidents: each table of a query is replaced by its part.

A query is not changed. It gets a WITH clause in front, in which the names of its tables mean what the reader may see.
So a query that is written later is restricted too. `PARTS` has each table of the store; tests compare them. Sums are
computed from the visible incidents. What people wrote about a cause is left out while it has hidden incidents.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from functools import lru_cache
from types import MappingProxyType

from triage.base.errors import StoreError
from triage.base.lazy_re import lazy_re
from triage.store.interface import Connections, Dialect, Row, Transaction, Values
from triage.store.location import StoreLocation

Fact = tuple[str, str]
"""The name and the value of a fact of a job."""

_OF_INCIDENT = "SELECT * FROM {base}{table} WHERE incident IN (SELECT num FROM visible)"
_OF_NUMBER = "SELECT * FROM {base}{table} WHERE num IN (SELECT num FROM visible)"
_NOTHING = "SELECT * FROM {base}{table} WHERE FALSE"
_OWN = "SELECT * FROM {base}{table} WHERE owner = (SELECT name FROM reader)"
_NOT_VISIBLE = "NOT EXISTS (SELECT 1 FROM visible v WHERE v.num = {number})"
# PostgreSQL does not join a query with an offset to others: for each row it looks until the first match.
_FIRST = "LIMIT 1 OFFSET 0"
_HIDDEN_OF_KEY = (
    f"SELECT 1 FROM {{base}}finding f WHERE f.key = k.key AND {_NOT_VISIBLE.format(number='f.incident')} {_FIRST}"
)
_VISIBLE_OF_KEY = f"SELECT 1 FROM {{base}}finding f JOIN visible v ON v.num = f.incident WHERE f.key = k.key {_FIRST}"
# Each takes the id of a cluster.
_HIDDEN_OF_CLUSTER, _VISIBLE_OF_CLUSTER = (
    f"SELECT 1 FROM {{{{base}}}}cluster_key k WHERE k.cluster = {{cluster}} "
    f"AND EXISTS ({of_key.replace('{base}', '{{base}}')}) {_FIRST}"
    for of_key in (_HIDDEN_OF_KEY, _VISIBLE_OF_KEY)
)
_HIDDEN_OF_ID = _HIDDEN_OF_CLUSTER.format(cluster="c.id")
_SHARED_CAUSE = (
    f"(EXISTS ({_HIDDEN_OF_CLUSTER.format(cluster='w.cause')}) "
    "OR EXISTS (SELECT 1 FROM {base}incident i WHERE i.signature = w.cause "
    f"AND {_NOT_VISIBLE.format(number='i.num')} {_FIRST}) "
    "OR w.cause IN (SELECT id FROM {base}cluster WHERE redirect IS NOT NULL))"
)
_CAUSE = "coalesce(i.signature, i.key)"
_UNKNOWN = "an unknown failure"
_PARTS_OF_INCIDENTS = (
    *("attempt", "finding", "blamed_rank", "host", "fact", "warning", "redacted", "history", "feedback"),
    *("origin", "document"),
)
_OF_THE_SERVICE = (
    *("outbox", "token", "upload", "secret"),
    *("told", "told_part", "told_again", "mute", "request_seen"),
)
_HEADLINE = (
    f"CASE WHEN EXISTS ({_HIDDEN_OF_KEY}) THEN coalesce((SELECT max(i.title) FROM incident i WHERE i.key = k.key), "
    f"'{_UNKNOWN}') ELSE k.headline END AS headline"
)
# The latest visible incident of each key by the index, then the latest of these.
_LATEST_TITLE = (
    "SELECT i.title FROM (SELECT (SELECT i.num FROM {base}incident i WHERE i.key = k.key AND EXISTS "
    f"(SELECT 1 FROM visible v WHERE v.num = i.num {_FIRST}) ORDER BY i.at DESC, i.num DESC LIMIT 1) AS num "
    "FROM {base}cluster_key k WHERE k.cluster = c.id) latest JOIN {base}incident i ON i.num = latest.num "
    "ORDER BY i.at DESC, i.num DESC LIMIT 1"
)
_CLUSTER = (
    f"SELECT c.id, c.state, coalesce(({_LATEST_TITLE}), (SELECT min(k.headline) FROM cluster_key k "
    f"WHERE k.cluster = c.id), '{_UNKNOWN}') AS title, "
    f"CASE WHEN EXISTS ({_HIDDEN_OF_ID}) THEN NULL ELSE c.name END AS name, "
    f"CASE WHEN EXISTS ({_HIDDEN_OF_ID}) THEN '' ELSE c.note END AS note, c.signature, c.redirect{{created_at}} "
    f"FROM {{base}}cluster c WHERE EXISTS ({_VISIBLE_OF_CLUSTER.format(cluster='c.id')}) "
    f"OR EXISTS ({_VISIBLE_OF_CLUSTER.format(cluster='c.redirect')})"
)
# In an order in which each part uses only those before it. `{whole}` and `{day}` are days.
PARTS: Mapping[str, str] = MappingProxyType(
    {
        "incident": _OF_NUMBER,
        **dict.fromkeys(("report", "page"), _OF_NUMBER),
        **dict.fromkeys(
            [
                "attempt",
                "finding",
                "blamed_rank",
                "host",
                "fact",
                "warning",
                "redacted",
                "history",
                "feedback",
                "origin",
                "document",
            ],
            _OF_INCIDENT,
        ),
        "job": "SELECT * FROM {base}job WHERE id IN (SELECT job FROM incident)",
        "exemplar": "SELECT * FROM {base}exemplar WHERE incident IN (SELECT id FROM incident)",
        "cluster_key": (
            f"SELECT k.key, k.version, k.cluster, k.guard, {_HEADLINE}, k.anchored, '' AS why, "
            "'[]' AS trail, m.created_at, m.jobs, m.ranks, m.first_seen, m.last_seen, CAST(NULL AS TEXT) AS last_path "
            "FROM {base}cluster_key k JOIN (SELECT f.key, min(i.stored_at) AS created_at, "
            "count(DISTINCT i.job) AS jobs, max((SELECT count(*) FROM blamed_rank b WHERE b.incident = i.num)) AS "
            "ranks, min(i.at) AS first_seen, max(i.at) AS last_seen FROM finding f JOIN incident i "
            "ON i.num = f.incident WHERE f.key IS NOT NULL GROUP BY f.key) m ON m.key = k.key"
        ),
        "cluster": _CLUSTER.replace(
            "{created_at}",
            ", coalesce((SELECT min(k.created_at) FROM cluster_key k WHERE k.cluster = c.id), 0) AS created_at",
        ),
        "counter": (
            "SELECT f.key, {whole} AS day, count(DISTINCT f.incident) AS incidents FROM finding f JOIN incident i "
            "ON i.num = f.incident WHERE f.key IS NOT NULL GROUP BY f.key, 2"
        ),
        "apart": (
            "SELECT one, other, '' AS why, at FROM {base}apart WHERE one IN (SELECT key FROM cluster_key) "
            "AND other IN (SELECT key FROM cluster_key)"
        ),
        "cause_sum": (
            f"SELECT {_CAUSE} AS cause, count(DISTINCT i.num) AS incidents, min(i.at) AS first_at, max(i.at) AS "
            "last_at, min(i.stored_at) AS first_stored, max(i.stored_at) AS last_stored, max(i.title) AS title, "
            "max(i.severity) AS severity, max(i.domain) AS domain, count(DISTINCT j.name) AS jobs, "
            "count(DISTINCT h.name) AS hosts FROM incident i JOIN job j ON j.id = i.job LEFT JOIN host h "
            f"ON h.incident = i.num AND h.blamed = 1 WHERE {_CAUSE} IS NOT NULL GROUP BY {_CAUSE}"
        ),
        "cause_day": (
            f"SELECT {_CAUSE} AS cause, {{day}} AS day, count(*) AS incidents FROM incident i WHERE {_CAUSE} "
            f"IS NOT NULL GROUP BY {_CAUSE}, 2"
        ),
        "cause_part": (
            f"SELECT {_CAUSE} AS cause, 'host' AS kind, h.name, count(*) AS incidents FROM incident i JOIN host h "
            f"ON h.incident = i.num AND h.blamed = 1 WHERE {_CAUSE} IS NOT NULL GROUP BY {_CAUSE}, h.name UNION ALL "
            f"SELECT {_CAUSE}, 'job', j.name, count(*) FROM incident i JOIN job j ON j.id = i.job WHERE {_CAUSE} "
            f"IS NOT NULL GROUP BY {_CAUSE}, j.name"
        ),
        "incident_sum": (
            "SELECT i.verdict, i.domain, i.signature, i.key, count(*) AS incidents FROM incident i "
            "GROUP BY i.verdict, i.domain, i.signature, i.key"
        ),
        "facet_sum": (
            "SELECT 'host' AS name, h.name AS value, count(*) AS incidents FROM host h WHERE h.blamed = 1 GROUP BY "
            "h.name UNION ALL SELECT 'fact.' || f.name, f.value, count(*) FROM fact f GROUP BY f.name, f.value"
        ),
        "cause_work": f"SELECT w.* FROM {{base}}cause_work w WHERE NOT {_SHARED_CAUSE}",
        "cause_comment": (
            f"SELECT w.* FROM {{base}}cause_comment w WHERE w.actor = (SELECT name FROM reader) OR NOT {_SHARED_CAUSE}"
        ),
        "audit": (
            "SELECT a.* FROM {base}audit a WHERE a.subject IN (SELECT id FROM incident) OR (a.action = 'work' "
            "AND a.subject IN (SELECT cause FROM cause_work))"
        ),
        "task": "SELECT * FROM {base}task WHERE actor = (SELECT name FROM reader)",
        "saved_view": _OWN,
        "subscription": _OWN,
        "visit": "SELECT * FROM {base}visit WHERE person = (SELECT name FROM reader)",
        **dict.fromkeys(
            ["outbox", "token", "upload", "secret", "told", "told_part", "told_again", "mute", "request_seen"], _NOTHING
        ),
    }
)
# The same parts without the columns that are computed from all incidents of a key.
_SHORT_PARTS: Mapping[str, str] = MappingProxyType(
    {
        "cluster_key": (
            f"SELECT k.key, k.version, k.cluster, k.guard, {_HEADLINE}, k.anchored, '' AS why, '[]' AS trail, "
            f"CAST(NULL AS TEXT) AS last_path FROM {{base}}cluster_key k WHERE EXISTS ({_VISIBLE_OF_KEY})"
        ),
        "cluster": _CLUSTER.replace("{created_at}", ""),
    }
)
_COMPUTED = lazy_re(r"\b(?:created_at|jobs|first_seen|last_seen)\b|(?<!\bi\.)\branks\b|\*(?!\))")
UNRESTRICTED = ("setting", "generation", "schema_version")
"""Tables without anything of an incident."""


class VisibleConnections:
    """The connections of a store for a reader who sees incidents whose job has one of some facts.

    All reads outside of a write transaction are restricted. Writing is not: what a person changes must first be read
    here, and who sees a part of the incidents has no role that changes what others see.
    """

    def __init__(self, connections: Connections, facts: Sequence[Fact], reader: str) -> None:
        self._inner = connections
        self._values = (*(text for fact in facts for text in fact), reader)
        dialect = connections.dialect
        self.dialect: Dialect = dataclasses.replace(
            dialect, by_time="", by_scan="", among="AND {} IN (SELECT num FROM visible)"
        )
        row = connections.read_one(f"SELECT {dialect.schema} AS name")
        assert row is not None
        self._base = '"{}".'.format(str(row["name"]).replace('"', '""'))
        self._count = len(facts)
        self.bad_value_errors = connections.bad_value_errors
        self.damage_errors = connections.damage_errors

    @property
    def writable(self) -> bool:
        """Whether the store can be written."""
        return self._inner.writable

    @property
    def location(self) -> StoreLocation:
        """The file or the database; as text without a password."""
        return self._inner.location

    def read(self, sql: str, values: Values = ()) -> list[Row]:
        """Return all rows of a query that the reader may see."""
        if not needed_parts(sql):
            return self._inner.read(sql, values)
        if isinstance(values, Mapping):
            named = {f"visible_{number}": value for number, value in enumerate(self._values)}
            return self._inner.read(self._restrict(sql, is_named=True), {**values, **named})
        return self._inner.read(self._restrict(sql, is_named=False), (*self._values, *values))

    def read_one(self, sql: str, values: Values = ()) -> Row | None:
        """Return the first row of a query that the reader may see, or None."""
        rows = self.read(sql, values)
        return rows[0] if rows else None

    def _restrict(self, sql: str, *, is_named: bool) -> str:
        return restrict(sql, self._base, self._inner.dialect.whole, self._count, is_named)

    def write(self, *, serial: bool = True) -> AbstractContextManager[Transaction]:
        """Open a write transaction, in which everything can be read."""
        return self._inner.write(serial=serial)

    def execute(self, sql: str, values: Values = (), *, serial: bool = True) -> int:
        """Execute one statement in a write transaction; return the number of rows that it changed."""
        return self._inner.execute(sql, values, serial=serial)

    def snapshot(self) -> AbstractContextManager[Transaction]:
        """Refuse with StoreError: a copy has the whole store."""
        raise StoreError("a part of the store cannot be copied", hint="copy it as somebody who sees all incidents")

    def data_version(self) -> tuple[object, ...]:
        """Return what changes with every commit of another connection than this thread's."""
        return self._inner.data_version()

    def schema_version(self) -> int:
        """Return how many steps of the migration were applied."""
        return self._inner.schema_version()

    def size_bytes(self) -> int:
        """Return the bytes that the whole store takes."""
        return self._inner.size_bytes()

    def spent_seconds(self) -> float:
        """Return the processor time of this thread and the time that it has waited for a server."""
        return self._inner.spent_seconds()

    def wait_for_change(self, table: str, seconds: float) -> None:
        """Return when `table` may have new work, at the latest after so many seconds."""
        self._inner.wait_for_change(table, seconds)

    def before_copy(self, db: Transaction) -> bool:
        """Prepare an empty store for the rows of another one."""
        return self._inner.before_copy(db)

    def after_copy(self, db: Transaction, *, is_bulk: bool) -> None:
        """Make new rows follow the numbers of copied ones."""
        self._inner.after_copy(db, is_bulk=is_bulk)

    def translate_errors(self) -> AbstractContextManager[None]:
        """Raise errors of the database as StoreError, with what to do."""
        return self._inner.translate_errors()

    def close(self) -> None:
        """Do nothing: the connections belong to the whole store."""


@lru_cache(maxsize=2000)
def restrict(sql: str, base: str, whole: str, facts: int, is_named: bool) -> str:
    """Return a query with a WITH clause that hides what the reader may not see.

    `base` stands before the names of the real tables, `whole` is that of the dialect. The values of the clause come
    before all others, or have the names `visible_N`: the facts, then the name of the reader.
    """
    marks = iter([f":visible_{number}" if is_named else "?" for number in range(2 * facts + 1)])
    pairs = ", ".join(f"({next(marks)}, {next(marks)})" for _ in range(facts))
    condition = f"(name, value) IN (VALUES {pairs})" if facts else "FALSE"
    parts = [
        f"visible (num) AS NOT MATERIALIZED (SELECT incident FROM {base}fact WHERE {condition})",
        f"reader (name) AS (SELECT CAST({next(marks)} AS TEXT))",
    ]
    needed = needed_parts(sql)
    parts_of_tables = PARTS if _COMPUTED.search(sql) else {**PARTS, **_SHORT_PARTS}
    for table, text in parts_of_tables.items():
        if table in needed:
            day = whole.format("i.at / 86400")
            body = text.format(base=base, table=table, whole=whole.format("i.stored_at / 86400"), day=day)
            parts.append(f"{table} AS NOT MATERIALIZED ({body})")
    query = sql.lstrip()
    follows_with = query[:5].upper() == "WITH "
    return f"WITH {', '.join(parts)}{', ' if follows_with else ' '}{query[5:] if follows_with else query}"


@lru_cache(maxsize=2000)
def needed_parts(sql: str) -> frozenset[str]:
    """Return the tables that a query names, and those that their parts are made of."""
    needed: set[str] = set()
    waiting = [sql]
    while waiting:
        names = set(re.findall(r"(?<![{}.:\w])[a-z_]+", waiting.pop())) & PARTS.keys()
        waiting += [PARTS[name] for name in sorted(names - needed)]
        needed |= names
    return frozenset(needed)
