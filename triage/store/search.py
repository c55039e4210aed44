"""Finding incidents again: by filters, by words, by likeness, and summed up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from triage.base.errors import OptionError
from triage.clusters.model import Near
from triage.model.store import Incident
from triage.store import pages
from triage.store.connection import Connections
from triage.store.incidents import COLUMNS, TABLES, Incidents, incident
from triage.store.sparing import Sparing

RANKED = 2000  # of more hits than this the newest are ranked
_FROM_NUM = TABLES.replace("incident i", "incident i ON i.num = {}", 1)
WEEK = 7 * 86_400
MONDAY = 4 * 86_400  # the epoch was a Thursday


@dataclass(frozen=True, slots=True)
class Filter:
    """Which incidents; what is not given does not matter. `job` is part of a name or path, `text` is searched in full
    text, times are seconds.
    """

    verdict: str | None = None
    signature: str | None = None
    cluster: str | None = None
    domain: str | None = None
    host: str | None = None
    rank: int | None = None
    since: float | None = None
    until: float | None = None
    job: str | None = None
    text: str | None = None
    wrong: bool = False


@dataclass(frozen=True, slots=True)
class Hit:
    """An incident that has the words, with the piece of text around them; words found stand between \\x02 and \\x03."""

    incident: Incident
    snippet: str


@dataclass(frozen=True, slots=True)
class Likeness:
    """An incident that is like another, why, and what people said then."""

    incident: Incident
    why: str
    said: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Count:
    """One row of a sum: how many incidents, when first and last, and on how many hosts or of how many kinds (`spread`)."""

    name: str
    count: int
    first: float
    last: float
    spread: int = 0


@dataclass(frozen=True, slots=True)
class Sums:
    """What `stats` shows. `hosts` and `devices` are those that were to blame more than once."""

    incidents: int
    verdicts: tuple[Count, ...]
    signatures: tuple[Count, ...]
    hosts: tuple[Count, ...]
    devices: tuple[Count, ...]
    weeks: tuple[Count, ...]


class Search:
    """The questions that a store answers."""

    def __init__(self, connections: Connections, incidents: Incidents) -> None:
        self._db = connections
        self._incidents = incidents
        self._sparing = Sparing(connections)

    def listed(self, wanted: Filter = Filter(), *, limit: int = 50, after: str | None = None) -> list[Incident]:
        """The incidents that the filter lets through, the latest failure first; `after` is `cursor` of the last one of
        the page before.
        """
        where, arguments = _where(wanted)
        if after is not None:
            at, num = _place(after)
            where += " AND (i.at < ? OR (i.at = ? AND i.num < ?))"
            arguments += [at, at, num]
        # In the order of time until the page is full, rather than all that fit and then sorted.
        by = "" if wanted.verdict or wanted.domain or self._few(wanted) else "INDEXED BY incident_at"
        rows = self._db.read(
            f"WITH chosen AS (SELECT i.num, i.at FROM incident i {by} WHERE {where} ORDER BY i.at DESC, i.num DESC LIMIT ?) "
            f"SELECT {COLUMNS} FROM chosen JOIN {_FROM_NUM.format('chosen.num')} ORDER BY chosen.at DESC, chosen.num DESC",
            (*arguments, limit),
        )
        return [incident(row) for row in rows]

    def _few(self, wanted: Filter) -> bool:
        """Is it about a host with so few incidents that it is faster to begin with them than with the latest?"""
        if wanted.host is None:
            return False
        row = self._db.one(
            "SELECT count(*) AS n FROM (SELECT 1 FROM host WHERE name = ? LIMIT ?)", (wanted.host, RANKED)
        )
        return row is not None and row["n"] < RANKED

    def cursor(self, last: Incident) -> str:
        """Where the next page of `list` begins."""
        return f"{last.at!r}/{self._incidents.number(last.id)}"

    def count(self, wanted: Filter = Filter()) -> int:
        """How many incidents the filter lets through."""
        return self._sparing.of(("count", wanted), lambda: self._count(wanted))

    def _count(self, wanted: Filter) -> int:
        where, arguments = _where(wanted)
        row = self._db.one(f"SELECT count(*) AS n FROM incident i WHERE {where}", arguments)
        assert row is not None
        return int(row["n"])

    def latest(self) -> tuple[float, int]:
        """When a diagnosis was last stored (0: never), and how many there are."""
        row = self._db.one("SELECT coalesce(max(seen_at), 0) AS latest, count(*) AS n FROM incident")
        assert row is not None
        return float(row["latest"]), int(row["n"])

    def facets(self, wanted: Filter = Filter(), *, limit: int = 12) -> dict[str, tuple[Count, ...]]:
        """By what the incidents that the filter lets through could be told apart further: verdict, domain, signature,
        cluster, host.
        """
        return self._sparing.of(("facets", wanted, limit), lambda: self._facets(wanted, limit))

    def _facets(self, wanted: Filter, limit: int) -> dict[str, tuple[Count, ...]]:
        where, arguments = _where(wanted)

        def counted(sql: str) -> tuple[Count, ...]:
            rows = self._db.read(f"{sql} ORDER BY count DESC, name LIMIT ?", (*arguments, limit))
            return tuple(Count(str(row["name"]), row["count"], 0.0, 0.0) for row in rows)

        def by(name: str) -> tuple[Count, ...]:
            return counted(
                f"SELECT i.{name} AS name, count(*) AS count FROM incident i WHERE {where} AND i.{name} <> '' GROUP BY 1"
            )

        clusters = (
            f"WITH keyed AS (SELECT i.key, count(*) AS n FROM incident i WHERE {where} AND i.key IS NOT NULL GROUP BY 1) "
            "SELECT k.cluster AS name, sum(n) AS count FROM keyed JOIN cluster_key k ON k.key = keyed.key GROUP BY 1"
        )
        among = "" if where == "1" else f"AND h.incident IN (SELECT i.num FROM incident i WHERE {where})"
        hosts = f"SELECT h.name, count(*) AS count FROM host h WHERE h.blamed {among} GROUP BY 1"
        found = {name: by(name) for name in ("verdict", "domain", "signature")}
        return {**found, "cluster": counted(clusters), "host": counted(hosts)}

    def text(self, words: str, *, limit: int = 20, some: bool = True) -> list[Hit]:
        """Incidents with all the words, best first (of very many the newest are ranked); where there are none, with
        `some` those with some.

        Any input is safe.
        """
        # A last word that may go on is slow to look up: it is asked for where the words as they are find too few.
        for any_word, last_is_open in ((False, False), (False, True), (True, True))[: 3 if some else 2]:
            asked = pages.question(words, any_word=any_word, last_is_open=last_is_open)
            if asked is None:
                return []
            rows = self._db.read(
                f"""
                WITH newest AS (SELECT rowid, rank FROM page_fts WHERE page_fts MATCH :asked ORDER BY rowid DESC LIMIT {RANKED}),
                best AS (SELECT rowid, rank FROM newest ORDER BY rank, rowid DESC LIMIT :limit)
                SELECT {COLUMNS}, snippet(page_fts, 2, char(2), char(3), '…', 16) AS snippet
                FROM best JOIN page_fts ON page_fts.rowid = best.rowid JOIN {_FROM_NUM.format("best.rowid")}
                WHERE page_fts MATCH :asked ORDER BY best.rank, best.rowid DESC
                """,
                {"asked": asked, "limit": limit},
            )
            if rows and (last_is_open or len(rows) == limit):
                return [Hit(incident(row), row["snippet"]) for row in rows]
        return []

    def caused(self, causes: Sequence[str], *, each: int = 3, limit: int = 20) -> list[Hit]:
        """The latest incidents of each cause (a signature or a cluster), in the order of the causes."""
        hits: list[Hit] = []
        for cause in causes:
            where = (
                "i.key IN (SELECT key FROM cluster_key WHERE cluster = ?)"
                if cause.startswith("u-")
                else "i.signature = ?"
            )
            rows = self._db.read(
                f"SELECT {COLUMNS} FROM {TABLES} WHERE {where} ORDER BY i.at DESC, i.num DESC LIMIT ?", (cause, each)
            )
            hits += [Hit(incident(row), row["title"]) for row in rows]
        return hits[:limit]

    def similar(self, wanted: str, *, limit: int = 20) -> list[Likeness]:
        """Incidents with the same signature or cluster as root cause, those with feedback and on the same host first;
        then near clusters'.
        """
        num = self._incidents.number(wanted)
        row = self._db.one(f"SELECT i.signature, k.cluster FROM {TABLES} WHERE i.num = ?", (num,))
        assert row is not None
        if row["signature"] is not None:
            return self._alike("i.signature = :value", row["signature"], num, "the same cause", limit)
        if row["cluster"] is None:
            return []
        same = "i.key IN (SELECT key FROM cluster_key WHERE cluster = :value)"
        found = self._alike(same, row["cluster"], num, "the same cluster", limit)
        for near in self._near(row["cluster"]) if len(found) < limit else ():
            words = "; ".join(
                f"only {side} {' '.join(words)}"
                for side, words in (("here", near.only_here), ("there", near.only_there))
                if words
            )
            why = f"near cluster {near.cluster}, {near.score:.2f}" + (f": {words}" if words else "")
            found += self._alike(same, near.cluster, num, why, limit)
        return found[:limit]

    def _near(self, cluster: str) -> tuple[Near, ...]:
        """Near clusters; none where what finds them is not installed."""
        try:
            return self._incidents.clusters.near(cluster)
        except OptionError:
            return ()

    def _alike(self, same: str, value: str, num: int, why: str, limit: int) -> list[Likeness]:
        near = "SELECT incident FROM host WHERE blamed AND name IN (SELECT name FROM host WHERE blamed AND incident = :num)"
        rows = self._db.read(
            f"""
            WITH alike AS (SELECT i.num, i.at FROM incident i WHERE {same} AND i.num <> :num ORDER BY i.at DESC LIMIT {RANKED}),
            best AS (
                SELECT num, at, num IN ({near}) AS same_host, num IN (SELECT incident FROM feedback) AS spoken FROM alike
                ORDER BY spoken DESC, same_host DESC, at DESC LIMIT :limit
            )
            SELECT {COLUMNS}, best.same_host FROM best JOIN {_FROM_NUM.format("best.num")} ORDER BY best.spoken DESC, best.same_host DESC, best.at DESC
            """,
            {"value": value, "num": num, "limit": limit},
        )
        return [
            Likeness(
                incident(found), why + (", on the same host" if found["same_host"] else ""), self._said(found["num"])
            )
            for found in rows
        ]

    def _said(self, num: int) -> tuple[str, ...]:
        rows = self._db.read(
            "SELECT verdict, because, actor FROM feedback WHERE incident = ? AND because <> '' ORDER BY id", (num,)
        )
        return tuple(f"{row['actor']} ({row['verdict']}): {row['because']}" for row in rows)

    def sums(self, wanted: Filter = Filter(), *, limit: int = 20) -> Sums:
        """By verdict, signature or cluster, host, device and week."""
        return self._sparing.of(("sums", wanted, limit), lambda: self._sums(wanted, limit))

    def _sums(self, wanted: Filter, limit: int) -> Sums:
        where, arguments = _where(wanted)

        def grouped(name: str, more: str = "", order: str = "count DESC, name") -> tuple[Count, ...]:
            rows = self._db.read(
                f"SELECT {name} AS name, count(*) AS count, min(i.at) AS first, max(i.at) AS last FROM incident i "
                f"WHERE {where} {more} ORDER BY {order} LIMIT ?",
                (*arguments, limit),
            )
            return tuple(Count(str(row["name"]), row["count"], row["first"], row["last"]) for row in rows)

        devices = grouped("i.device", "AND i.device IS NOT NULL GROUP BY 1 HAVING count(*) > 1")
        return Sums(
            incidents=self.count(wanted),
            verdicts=grouped("i.verdict", "GROUP BY 1"),
            signatures=self._causes(where, arguments, limit),
            hosts=self._returning(where, arguments, limit),
            devices=tuple(self._spread(item, "i.device = ?", item.name) for item in devices),
            weeks=grouped(f"CAST((i.at - {MONDAY}) / {WEEK} AS INTEGER)", "GROUP BY 1", "name DESC"),
        )

    def _causes(self, where: str, arguments: list[Any], limit: int) -> tuple[Count, ...]:
        """Signatures, and clusters by their names; summed by fingerprint first, for names are few."""
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
        sums: dict[str, Count] = {}
        for row in rows:
            name = row["signature"] or names.get(row["key"], row["key"])
            old = sums.get(name, Count(name, 0, row["first"], row["last"]))
            sums[name] = Count(name, old.count + row["count"], min(old.first, row["first"]), max(old.last, row["last"]))
        return tuple(sorted(sums.values(), key=lambda item: (-item.count, item.name))[:limit])

    def _returning(self, where: str, arguments: list[Any], limit: int) -> tuple[Count, ...]:
        """Hosts that were to blame more than once."""
        among = "" if where == "1" else f"AND h.incident IN (SELECT i.num FROM incident i WHERE {where})"
        rows = self._db.read(
            f"SELECT h.name, count(*) AS count FROM host h WHERE h.blamed {among} GROUP BY 1 HAVING count(*) > 1 ORDER BY 2 DESC, 1 LIMIT ?",
            (*arguments, limit),
        )
        of = "i.num IN (SELECT incident FROM host WHERE name = ? AND blamed)"
        return tuple(self._spread(Count(row["name"], row["count"], 0.0, 0.0), of, row["name"]) for row in rows)

    def _spread(self, item: Count, where: str, value: str) -> Count:
        """The same sum with its times and the number of its causes."""
        row = self._db.one(
            f"SELECT min(i.at) AS first, max(i.at) AS last, count(DISTINCT coalesce(i.signature, i.key)) AS spread FROM incident i WHERE {where}",
            (value,),
        )
        assert row is not None
        return Count(item.name, item.count, row["first"], row["last"], row["spread"])


def _where(wanted: Filter) -> tuple[str, list[Any]]:
    clauses: list[str] = ["1"]
    arguments: list[Any] = []

    def add(clause: str, *values: Any) -> None:
        clauses.append(clause)
        arguments.extend(values)

    for name in ("verdict", "domain"):
        if getattr(wanted, name) is not None:
            add(f"i.{name} = ?", getattr(wanted, name))
    if wanted.signature is not None:
        add("i.num IN (SELECT incident FROM finding WHERE signature = ?)", wanted.signature)
    if wanted.cluster is not None:
        add(
            "i.num IN (SELECT f.incident FROM cluster_key q JOIN finding f ON f.key = q.key WHERE q.cluster = ?)",
            wanted.cluster,
        )
    if wanted.host is not None:
        add("i.num IN (SELECT incident FROM host WHERE name = ?)", wanted.host)
    if wanted.rank is not None:
        add("i.num IN (SELECT incident FROM blamed_rank WHERE rank = ?)", wanted.rank)
    if wanted.since is not None:
        add("i.at >= ?", wanted.since)
    if wanted.until is not None:
        add("i.at < ?", wanted.until)
    if wanted.job is not None:
        jobs = "SELECT id FROM job WHERE path LIKE ? ESCAPE '!' OR name LIKE ? ESCAPE '!'"
        add(f"i.num IN (SELECT num FROM incident WHERE job IN ({jobs}))", *2 * [_inside(wanted.job)])
    if wanted.wrong:
        add("i.num IN (SELECT incident FROM feedback WHERE verdict = 'wrong')")
    if wanted.text is not None:
        asked = pages.question(wanted.text)
        add(
            "i.num IN (SELECT rowid FROM page_fts WHERE page_fts MATCH ?)" if asked else "0",
            *([asked] if asked else []),
        )
    return " AND ".join(clauses), arguments


def _inside(text: str) -> str:
    """What LIKE is asked for a text inside another."""
    for sign in "!%_":
        text = text.replace(sign, "!" + sign)
    return f"%{text}%"


def _place(cursor: str) -> tuple[float, int]:
    at, _, num = cursor.partition("/")
    try:
        return float(at), int(num)
    except ValueError:
        raise OptionError(f"{cursor!r} is no place in a list", hint="take it from the page before") from None


def week_start(name: str) -> float:
    """The time at which a week of `Sums.weeks` begins, a Monday."""
    return int(name) * WEEK + MONDAY
