"""Match diagnoses with routes, and compute when routes may be notified."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from zoneinfo import ZoneInfo

from triage.model import Diagnosis, Incident
from triage.settings.notifications import Route

PACE = "pace"
"""The verdict of events about the pace of a job, and the prefix of their causes."""


# What stands for the cause where the verdict has none.
_WITHOUT_ROOT = {"clean": "", "inconclusive": "inconclusive"}


@dataclass(frozen=True, slots=True)
class RoutingFacts:
    """What routes match. `cause` is a signature, a cluster, `symptoms` or `pace.silent`; empty for a clean job."""

    verdict: str
    cause: str
    domain: str
    confidence: float
    hosts: tuple[str, ...]
    job: str
    path: str
    facts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def names_cause(self) -> bool:
        """Whether the cause is a signature or a cluster, so that two failures of it are the same."""
        return self.verdict in ("known", "unknown") and self.cause != "symptoms"

    @classmethod
    def from_diagnosis(cls, diagnosis: Diagnosis) -> RoutingFacts:
        """Return the facts of a diagnosis; `hosts` are those of the root cause."""
        root, job = diagnosis.root_cause, diagnosis.job
        if root is None or diagnosis.verdict == "clean":
            cause = _WITHOUT_ROOT.get(diagnosis.verdict, "symptoms")
            return cls(diagnosis.verdict, cause, "", 0.0, (), job.name, job.path, job.all_facts())
        ranks = set(root.ranks)
        hosts = tuple(root.hosts) or tuple(host for host, members in job.hosts.items() if ranks.intersection(members))
        cause = root.signature or root.cluster or "symptoms"
        return cls(diagnosis.verdict, cause, root.domain, root.confidence, hosts, job.name, job.path, job.all_facts())

    @classmethod
    def from_incident(cls, incident: Incident, facts: Mapping[str, tuple[str, ...]]) -> RoutingFacts:
        """Return the facts of a stored incident; `facts` are those of its job."""
        cause = incident.signature or incident.cluster or "symptoms"
        cause = _WITHOUT_ROOT.get(incident.verdict, cause)
        return cls(
            incident.verdict,
            cause,
            incident.domain,
            incident.confidence,
            incident.hosts,
            incident.job_name,
            incident.path,
            facts,
        )


def matches_route(route: Route, facts: RoutingFacts) -> bool:
    """Return whether the route asks for this."""
    return (
        facts.verdict in route.verdicts
        and (not route.domains or facts.domain in route.domains)
        and (facts.verdict != "known" or facts.confidence >= route.confidence)
        and _matches_any(route.signatures, (facts.cause,))
        and _matches_any(route.hosts, facts.hosts)
        and _matches_any(route.jobs, (facts.job, facts.path))
        and all(_has_fact(facts, rule) for rule in route.facts)
    )


def _has_fact(facts: RoutingFacts, rule: str) -> bool:
    name, _, pattern = rule.partition("=")
    return _matches_any((pattern,), facts.facts.get(name, ()))


def split_target(route: Route) -> tuple[str, str]:
    """Return kind of bot and place: `slack:C1` → slack, C1."""
    kind, _, place = route.to.partition(":")
    return kind, place


def allowed_time(route: Route, now: float) -> float:
    """Return when a new message may be sent: now, or at the end of the current quiet hours."""
    if not route.quiet:
        return now
    begin, _, end = route.quiet.partition("-")
    local = datetime.fromtimestamp(now, ZoneInfo(route.zone))
    clock = local.strftime("%H:%M")
    is_quiet = begin <= clock < end if begin <= end else clock >= begin or clock < end
    if not is_quiet:
        return now
    until = _at(local, end)
    return (until if until > local else _at(local + timedelta(days=1), end)).timestamp()


def due_digest(route: Route, now: float) -> tuple[str, float, float] | None:
    """Return (day, from, until) of the latest digest, if it became due within the last day."""
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


def _matches_any(patterns: Sequence[str], names: Sequence[str]) -> bool:
    return not patterns or any(fnmatchcase(name, pattern) for pattern in patterns for name in names)
