"""Which route wants what, and when: pure functions of the settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from zoneinfo import ZoneInfo

from triage.model.diagnosis import Diagnosis
from triage.model.store import Incident
from triage.settings.routing import Route

PACE = "pace"
"""The verdict of news that are about the pace of a job, and what the names of its causes begin with."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What routes ask for. `cause` is a signature, a cluster, `symptoms`, or `pace.silent` and the like; empty for a
    clean job.
    """

    verdict: str
    cause: str
    domain: str
    confidence: float
    hosts: tuple[str, ...]
    job: str
    path: str

    @classmethod
    def of(cls, diagnosis: Diagnosis) -> Facts:
        """Of a diagnosis; hosts are those to blame."""
        root, job = diagnosis.root_cause, diagnosis.job
        if root is None or diagnosis.verdict == "clean":
            cause = "" if diagnosis.verdict == "clean" else "symptoms"
            return cls(diagnosis.verdict, cause, "", 0.0, (), job.name, job.path)
        ranks = set(root.ranks)
        hosts = tuple(root.hosts) or tuple(host for host, members in job.hosts.items() if ranks.intersection(members))
        cause = root.signature or root.cluster or "symptoms"
        return cls(diagnosis.verdict, cause, root.domain, root.confidence, hosts, job.name, job.path)

    @classmethod
    def told(cls, incident: Incident) -> Facts:
        """Of a line of the store."""
        cause = "" if incident.verdict == "clean" else incident.signature or incident.cluster or "symptoms"
        return cls(
            incident.verdict,
            cause,
            incident.domain,
            incident.confidence,
            incident.hosts,
            incident.job_name,
            incident.path,
        )


def wants(route: Route, facts: Facts) -> bool:
    """Does this route want it?"""
    return (
        facts.verdict in route.verdicts
        and (not route.domains or facts.domain in route.domains)
        and (facts.verdict != "known" or facts.confidence >= route.confidence)
        and _any(route.signatures, (facts.cause,))
        and _any(route.hosts, facts.hosts)
        and _any(route.jobs, (facts.job, facts.path))
    )


def place(route: Route) -> tuple[str, str]:
    """(kind of bot, place): `slack:C1` → slack, C1."""
    kind, _, where = route.to.partition(":")
    return kind, where


def when(route: Route, now: float) -> float:
    """When something new may be told: now, or the end of the quiet hours in which now lies."""
    if not route.quiet:
        return now
    begin, _, end = route.quiet.partition("-")
    local = datetime.fromtimestamp(now, ZoneInfo(route.zone))
    clock = local.strftime("%H:%M")
    inside = begin <= clock < end if begin <= end else clock >= begin or clock < end
    if not inside:
        return now
    until = _at(local, end)
    return (until if until > local else _at(local + timedelta(days=1), end)).timestamp()


def digest_of(route: Route, now: float) -> tuple[str, float, float] | None:
    """(its day, from, until) of the latest digest that is due by now, if it became due within the last day."""
    if not route.digest:
        return None
    local = datetime.fromtimestamp(now, ZoneInfo(route.zone))
    until = _at(local, route.digest)
    if until > local:
        until = _at(local - timedelta(days=1), route.digest)
    return until.date().isoformat(), _at(until - timedelta(days=1), route.digest).timestamp(), until.timestamp()


def _at(day: datetime, clock: str) -> datetime:
    hours, _, minutes = clock.partition(":")
    return day.replace(hour=int(hours), minute=int(minutes), second=0, microsecond=0)


def _any(patterns: Sequence[str], names: Sequence[str]) -> bool:
    return not patterns or any(fnmatchcase(name, pattern) for pattern in patterns for name in names)
