"""List what ended jobs: signatures and clusters of unknown failures, with the sums of their incidents.

The sums are those of `cause_tables`, so a list takes as long with a million incidents as with a thousand.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from triage.base.errors import NotFoundError
from triage.model.store import Cause
from triage.store.cause_details import add_details, count_since
from triage.store.cause_work import CauseWork, Work
from triage.store.clusters import Clusters
from triage.store.interface import Connections, Row
from triage.store.stats_cache import StatsCache

DAY = 86_400
WEEK_DAYS = 7
BATCH = 500  # fingerprints in one query
Members = dict[str, tuple[str, str]]
"""(cluster, its name or title) by fingerprint."""
STATUSES = {"waiting": ("open", "acknowledged", "regressed")}  # names of several statuses
Order = Literal["week", "last", "count", "first"]
_ORDERS: dict[Order, Callable[[Cause], tuple[Any, ...]]] = {
    "week": lambda cause: (-cause.recent, -cause.last_at, cause.id),
    "last": lambda cause: (-cause.last_at, cause.id),
    "count": lambda cause: (-cause.incidents, cause.id),
    "first": lambda cause: (-cause.first_at, cause.id),
}


@dataclass(frozen=True, slots=True)
class CauseFilter:
    """A filter for causes; None matches all.

    `text` is in the id or the title; `host` has failed of the cause. `status` may be `waiting`: open, acknowledged or
    regressed. `new_since`: its first incident was stored at this time or later.
    """

    kind: Literal["signature", "cluster"] | None = None
    domain: str | None = None
    host: str | None = None
    text: str | None = None
    status: str | None = None
    assignee: str | None = None
    new_since: float | None = None


@dataclass(frozen=True, slots=True)
class CausePage:
    """Some of the causes that match a filter, and how many match it in all.

    `late_since`: failures stored since this time may be missing in the sums; None: the sums are current.
    """

    causes: tuple[Cause, ...]
    total: int
    late_since: float | None = None


class Causes:
    """The causes of a store."""

    def __init__(self, connections: Connections, clusters: Clusters, work: CauseWork, cache: StatsCache) -> None:
        self._db = connections
        self._cache = cache
        self._clusters = clusters
        self._work = work

    def list_causes(
        self,
        filter_: CauseFilter = CauseFilter(),
        *,
        order: Order = "week",
        limit: int = 50,
        offset: int = 0,
        now: float | None = None,
    ) -> CausePage:
        """Return the causes that match the filter: by default those with the most failures of this week first."""
        when = time.time() if now is None else now
        today = int(when // DAY)
        sums, members = self._read_sums(today)
        causes = self._with_work(sums, members, when)
        causes = [cause for cause in causes if self._matches(cause, filter_)]
        if filter_.host is not None:
            with_host = {members.get(root, (root,))[0] for root in self._roots_on_host(filter_.host)}
            causes = [cause for cause in causes if cause.id in with_host]
        page = sorted(causes, key=_ORDERS[order])[offset : offset + limit]
        return CausePage(self._add_details(page, members, today), len(causes), self.late_since(now=when))

    def late_since(self, *, now: float | None = None) -> float | None:
        """Return since when stored failures may be missing in the sums; None if the sums are current."""
        today = int((time.time() if now is None else now) // DAY)
        return self._cache.late_since(_sums_key(today)) if self._db.dialect.among else None

    def get(self, reference: str, *, now: float | None = None) -> Cause:
        """Return a cause by its signature, or by a cluster's id or name. Raises NotFoundError."""
        identifier = self.find_id(reference)
        when = time.time() if now is None else now
        today = int(when // DAY)
        sums, members = self._read_sums(today, identifier)
        causes = [cause for cause in sums if cause.id == identifier]
        if not causes:
            raise NotFoundError(
                f"no incident has the cause {reference}", hint="`triage causes` and /causes list the causes"
            )
        return self._add_details(self._with_work(causes, members, when), members, today)[0]

    def find_id(self, reference: str) -> str:
        """Return the id of a cause: the signature, or the cluster that an id, its first digits or a name means now."""
        if "." in reference:
            known = self._db.read_one(
                "SELECT 1 FROM incident i WHERE coalesce(i.signature, i.key) = ? LIMIT 1", (reference,)
            )
            if known is not None:
                return reference
        try:
            return self._clusters.find_id(reference)
        except NotFoundError:
            hint = "the first page and `triage causes` list the causes"
            raise NotFoundError(f"the store has no cause {reference}", hint=hint) from None

    def _read_sums(self, today: int, identifier: str | None = None) -> tuple[list[Cause], Members]:
        """Return all causes, or at least the one with an id, without hosts and days, and the members of clusters.

        A reader of a part has no stored sums: all causes are summed at once, and kept for the next page.
        """
        if self._db.dialect.among:
            return self._cache.get(_sums_key(today), lambda: self._compute_sums(today))
        if identifier is None:
            members = self._read_members()
            return self._sum_causes(self._read_rows(today), members), members
        members = {root: row for root, row in self._read_members().items() if row[0] == identifier}
        return self._sum_causes(self._read_rows(today, list(members) or [identifier]), members), members

    def _compute_sums(self, today: int) -> tuple[list[Cause], Members]:
        rows = self._read_rows(today)
        members: Members = {}
        for begin in range(0, len(rows), BATCH):
            members |= self._read_members([row["cause"] for row in rows[begin : begin + BATCH]])
        return self._sum_causes(rows, members), members

    def _add_details(self, causes: Sequence[Cause], members: Members, today: int) -> tuple[Cause, ...]:
        def make() -> tuple[Cause, ...]:
            return add_details(self._db, causes, _roots_of(causes, members), today)

        return self._cache.get(("causes", tuple(causes), today), make) if self._db.dialect.among else make()

    def _read_members(self, keys: Sequence[str] | None = None) -> Members:
        """Return the clusters of all fingerprints, or of some."""
        where, values = ("TRUE", ()) if keys is None else (f"k.key IN ({_marks(keys)})", tuple(keys))
        rows = self._db.read(
            "SELECT k.key, k.cluster, coalesce(c.name, c.title) AS title FROM cluster_key k JOIN cluster c "
            f"ON c.id = k.cluster WHERE {where}",
            values,
        )
        return {row["key"]: (row["cluster"], row["title"]) for row in rows}

    def _read_rows(self, today: int, roots: Sequence[str] | None = None) -> list[Row]:
        """Return the sums of all signatures and fingerprints, or of some."""
        where, values = ("TRUE", ()) if roots is None else (f"s.cause IN ({_marks(roots)})", tuple(roots))
        return self._db.read(
            "SELECT s.*, coalesce(d.recent, 0) AS recent FROM cause_sum s LEFT JOIN (SELECT cause, sum(incidents) AS "
            f"recent FROM cause_day WHERE day > ? GROUP BY cause) d ON d.cause = s.cause WHERE {where}",
            (today - WEEK_DAYS, *values),
        )

    @staticmethod
    def _sum_causes(rows: Iterable[Row], members: Members) -> list[Cause]:
        """Return the causes of rows: those of the fingerprints of one cluster become one."""
        causes: dict[str, Cause] = {}
        for row in rows:
            cause = _cause_of(row, members.get(row["cause"]))
            causes[cause.id] = _add(causes[cause.id], cause) if cause.id in causes else cause
        return list(causes.values())

    def _with_work(self, causes: Sequence[Cause], members: Members, now: float) -> list[Cause]:
        """Return causes with what people do about them."""
        work = self._work.read_all()
        fixes: dict[str, float] = {}
        for cause in causes:
            fixed_at = work[cause.id].fixed_at if cause.id in work else None
            # The last failure of sums that are kept for a reader of a part may be missing.
            if fixed_at is not None and (cause.last_at > fixed_at or self._db.dialect.among):
                fixes[cause.id] = fixed_at
        since = count_since(self._db, fixes, _roots_of(causes, members)) if fixes else {}
        return [
            _apply_work(cause, work[cause.id], since.get(cause.id, 0), now) if cause.id in work else cause
            for cause in causes
        ]

    @staticmethod
    def _matches(cause: Cause, filter_: CauseFilter) -> bool:
        text = (filter_.text or "").casefold()
        return (
            filter_.kind in (None, cause.kind)
            and filter_.domain in (None, cause.domain)
            and (filter_.status is None or cause.status in STATUSES.get(filter_.status, (filter_.status,)))
            and filter_.assignee in (None, cause.assignee)
            and (filter_.new_since is None or cause.first_stored >= filter_.new_since)
            and all(part in f"{cause.id} {cause.title}".casefold() for part in text.split())
        )

    def _roots_on_host(self, host: str) -> list[str]:
        rows = self._db.read("SELECT cause FROM cause_part WHERE kind = 'host' AND name = ?", (host,))
        return [row["cause"] for row in rows]


def _sums_key(today: int) -> tuple[str, int]:
    return "sums of causes", today


def _marks(values: Sequence[str]) -> str:
    return ", ".join("?" * len(values))


def _roots_of(causes: Iterable[Cause], members: Members) -> dict[str, list[str]]:
    """Return the signature, or all fingerprints of the cluster, of each cause."""
    roots: dict[str, list[str]] = {cause.id: [] for cause in causes}
    for key, (cluster, _) in members.items():
        if cluster in roots:
            roots[cluster].append(key)
    return {cause: own or [cause] for cause, own in roots.items()}


def _apply_work(cause: Cause, work: Work, since_fix: int, now: float) -> Cause:
    status = "regressed" if since_fix else work.status
    return dataclasses.replace(
        cause,
        status="open" if status == "ignored" and not work.is_ignored(now) else status,
        assignee=work.assignee,
        ticket=work.ticket,
        fixed_in=work.fixed_in,
        fixed_at=work.fixed_at,
        since_fix=since_fix,
        ignored_until=work.ignored_until if work.is_ignored(now) else None,
    )


def _cause_of(row: Row, cluster: tuple[str, str] | None) -> Cause:
    """Return the cause of a row of `cause_sum`; `cluster` is that of a fingerprint and its title."""
    identifier, title = cluster or (row["cause"], row["title"])
    return Cause(
        id=identifier,
        kind="signature" if cluster is None else "cluster",
        title=title,
        recent=int(row["recent"]),
        host_count=row["hosts"],
        **{
            name: row[name]
            for name in (
                *("incidents", "first_at", "last_at", "first_stored", "last_stored", "domain", "severity", "jobs"),
            )
        },
    )


def _add(one: Cause, other: Cause) -> Cause:
    """Return the sums of two fingerprints of a cluster."""
    return dataclasses.replace(
        one,
        incidents=one.incidents + other.incidents,
        recent=one.recent + other.recent,
        first_at=min(one.first_at, other.first_at),
        last_at=max(one.last_at, other.last_at),
        first_stored=min(one.first_stored, other.first_stored),
        last_stored=max(one.last_stored, other.last_stored),
    )
