"""A diagnosis becomes posts: to whom it is news, whose message it changes, and where it only counts as one more of the
same.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from triage.bots.pace import Pace
from triage.bots.routing import Facts, place, wants, when
from triage.evidence.redact import redact_all
from triage.model.diagnosis import Diagnosis
from triage.render import json
from triage.settings.routing import Route, Routing
from triage.store import Store, Stored
from triage.store.told import Message


@dataclass(frozen=True, slots=True)
class Topic:
    """What a message is about. `name` stays the same while the diagnosis of one attempt of a job changes."""

    name: str
    incident: str | None
    diagnosis: Diagnosis


def remember(store: Store, diagnosis: Diagnosis, routing: Routing, *, now: float | None = None) -> Stored:
    """Store a diagnosis and write the posts about it, in one transaction: a process that dies leaves both or neither."""
    moment = time.time() if now is None else now
    with store.connections.write():
        stored = store.incidents.add(diagnosis, now=moment)
        announce(store, Topic(topic(stored.diagnosis), stored.id, stored.diagnosis), routing, now=moment)
    return stored


def topic(diagnosis: Diagnosis) -> str:
    """One message an attempt of a job: the job's id, and the attempt in which the root cause lies."""
    root = diagnosis.root_cause
    attempt = max((fact.origin.attempt for fact in root.evidence), default=0) if root is not None else 0
    return f"{diagnosis.job.id}/{attempt}"


def announce(store: Store, about: Topic, routing: Routing, *, now: float) -> list[str]:
    """Write the posts that the routes ask for; the places to which something goes. A topic without an incident carries
    its report itself.
    """
    report = json.render(redact_all(about.diagnosis)) if about.incident is None else None
    facts = Facts.of(about.diagnosis)
    return _announced(store, _Told(about.name, facts, facts.cause, about.incident, report), routing, now)


def announce_pace(store: Store, name: str, pace: Pace, routing: Routing, *, now: float) -> list[str]:
    """The same of an episode; `name` stays the same while it lasts."""
    return _announced(store, _Told(name, pace.facts(), pace.cause, None, pace.report()), routing, now)


@dataclass(frozen=True, slots=True)
class _Told:
    """What is to be told. `cause` is what makes it the same as something else, `report` what a message keeps that has
    no incident.
    """

    name: str
    facts: Facts
    cause: str
    incident: str | None
    report: str | None


def _announced(store: Store, about: _Told, routing: Routing, now: float) -> list[str]:
    with store.connections.write():
        return [route.to for route in routing.routes if _routed(store, about, route, routing, now)]


def _routed(store: Store, about: _Told, route: Route, routing: Routing, now: float) -> bool:
    kind, where = place(route)
    facts = about.facts
    known = _standing(store, about, kind, where)
    if known is not None:  # people have seen it: they shall see what it is now, also when that is nothing
        about = replace(about, name=known.topic)
        _write(store, about, kind, where, now)
        return _request(store, kind, where, about.name, now if store.told.is_shown(known.id) else when(route, now), now)
    counted = store.told.counted(kind, where, about.name)
    if counted is not None and counted.cause == about.cause:
        return False
    if route.only_digest or not wants(route, facts) or store.told.muted(kind, where, about.cause, now) is not None:
        return False
    for other in store.told.alike(kind, where, about.cause, now - routing.repeat_hours * 3600) if about.cause else ():
        if other.job == facts.job or set(other.hosts) & set(facts.hosts):
            store.told.again(other.id, about.name, job=facts.job, hosts=facts.hosts, now=now)
            return _request(store, kind, where, other.topic, when(route, now), now)
    _write(store, about, kind, where, now)
    return _request(store, kind, where, about.name, when(route, now), now)


def _standing(store: Store, about: _Told, kind: str, where: str) -> Message | None:
    """The message about it: of its name, or of the same attempt of the same incident, which a watch told under a name
    of its own.
    """
    known = store.told.message(kind, where, about.name)
    if known is not None or about.incident is None:
        return known
    attempt = about.name.rpartition("/")[2]
    others = (other for other in store.told.about(about.incident) if (other.kind, other.place) == (kind, where))
    return next((other for other in others if other.topic.rpartition("/")[2] == attempt), None)


def _write(store: Store, about: _Told, kind: str, where: str, now: float) -> None:
    hosts, job = about.facts.hosts, about.facts.job
    store.told.write(
        kind,
        where,
        about.name,
        cause=about.cause,
        job=job,
        hosts=hosts,
        incident=about.incident,
        report=about.report,
        now=now,
    )


def _request(store: Store, kind: str, where: str, topic: str, at: float, now: float) -> bool:
    store.outbox.request(kind, f"{where}:{topic}", {"place": where, "topic": topic}, at=at, now=now)
    return True
