"""Turn a diagnosis into notifications: new messages, edits of existing messages, and counts of repeats."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from triage.bots.pace import PaceReport
from triage.bots.routing import RoutingFacts, allowed_time, matches_route, split_target
from triage.bots.subscribed import with_subscriptions
from triage.evidence.redact import redact_all, redact_texts
from triage.model.diagnosis import Diagnosis
from triage.render import json
from triage.settings.notifications import Route, RoutingSettings
from triage.store import Store, StoreResult
from triage.store.notifications import Notification

ISSUE = "issue"
"""The kind of posts that has one message for each cause, whatever the job and the host."""


@dataclass(frozen=True, slots=True)
class Topic:
    """The subject of a message. `name` stays the same while the diagnosis of one attempt of a job changes."""

    name: str
    incident: str | None
    diagnosis: Diagnosis


@dataclass(frozen=True, slots=True)
class _Announcement:
    """What to notify of. `cause` identifies repeats; `report` is the content of a message without an incident."""

    topic: str
    facts: RoutingFacts
    cause: str
    incident: str | None
    report: str | None


def store_and_announce(
    store: Store, diagnosis: Diagnosis, routing: RoutingSettings, *, now: float | None = None
) -> StoreResult:
    """Store a diagnosis and write its notifications in one transaction."""
    moment = time.time() if now is None else now
    with store.connections.write():
        stored = store.incidents.add(diagnosis, now=moment)
        announce(store, Topic(topic_name(stored.diagnosis), stored.id, stored.diagnosis), routing, now=moment)
    return stored


def topic_name(diagnosis: Diagnosis) -> str:
    """Return the job id and the attempt of the root cause: each attempt has one message."""
    root = diagnosis.root_cause
    attempt = max((fact.origin.attempt for fact in root.evidence), default=0) if root is not None else 0
    return f"{diagnosis.job.id}/{attempt}"


def announce(store: Store, topic: Topic, routing: RoutingSettings, *, now: float) -> list[str]:
    """Write notifications for all matching routes, with the report if there is no incident; return their targets."""
    diagnosis = topic.diagnosis if topic.incident is not None else redact_all(topic.diagnosis)
    report = json.render(diagnosis) if topic.incident is None else None
    facts = RoutingFacts.from_diagnosis(diagnosis)
    announcement = _Announcement(topic.name, facts, facts.cause, topic.incident, report)
    return _announce_to_routes(store, announcement, routing, now)


def announce_pace(store: Store, topic: str, pace: PaceReport, routing: RoutingSettings, *, now: float) -> list[str]:
    """Write notifications of a pace episode for all matching routes; return their targets."""
    pace = redact_texts(pace)
    announcement = _Announcement(topic, pace.facts(), pace.cause, None, pace.as_json())
    return _announce_to_routes(store, announcement, routing, now)


def _announce_to_routes(store: Store, announcement: _Announcement, routing: RoutingSettings, now: float) -> list[str]:
    with store.connections.write():
        routes = with_subscriptions(store, routing)
        return [route.to for route in routes if _announce_to_route(store, announcement, route, routing, now)]


def _announce_to_route(
    store: Store, announcement: _Announcement, route: Route, routing: RoutingSettings, now: float
) -> bool:
    """Update, count or create the message of one route; return whether a delivery is requested."""
    kind, place = split_target(route)
    facts = announcement.facts
    message = _find_message(store, announcement, kind, place)
    if message is not None:  # a visible message shows the current state, even if nothing is left to report
        _save_message(store, replace(announcement, topic=message.topic), kind, place, now)
        at = now if store.notifications.may_be_visible(message.id) else allowed_time(route, now)
        return _request_delivery(store, kind, place, message.topic, at, now)
    repeat = store.notifications.find_by_repeat(kind, place, announcement.topic)
    if repeat is not None and repeat.cause == announcement.cause:
        return False
    if route.only_digest or not matches_route(route, facts) or _is_muted(store, announcement, kind, place, now):
        return False
    if kind == ISSUE and not facts.names_cause:
        return False
    since = 0.0 if kind == ISSUE else now - routing.repeat_hours * 3600
    same = _find_same_failure(store, announcement, kind, place, since)
    if same is not None:
        store.notifications.add_repeat(same.id, announcement.topic, job=facts.job, hosts=facts.hosts, now=now)
        return _request_delivery(store, kind, place, same.topic, allowed_time(route, now), now)
    _save_message(store, announcement, kind, place, now)
    return _request_delivery(store, kind, place, announcement.topic, allowed_time(route, now), now)


def _is_muted(store: Store, announcement: _Announcement, kind: str, place: str, now: float) -> bool:
    return store.notifications.get_mute(kind, place, announcement.cause, now) is not None


def _find_same_failure(
    store: Store, announcement: _Announcement, kind: str, place: str, since: float
) -> Notification | None:
    """Return a recent message with the same cause, of the same job or with a common host; for issues of any job."""
    if not announcement.cause:
        return None
    facts = announcement.facts
    for message in store.notifications.list_same_cause(kind, place, announcement.cause, since):
        if kind == ISSUE or message.job == facts.job or set(message.hosts) & set(facts.hosts):
            return message
    return None


def _find_message(store: Store, announcement: _Announcement, kind: str, place: str) -> Notification | None:
    """Return the message of this topic, or one about the same attempt of the incident that a watch wrote."""
    message = store.notifications.get(kind, place, announcement.topic)
    if message is not None or announcement.incident is None:
        return message
    attempt = announcement.topic.rpartition("/")[2]
    for other in store.notifications.list_for_incident(announcement.incident):
        if (other.kind, other.place) == (kind, place) and other.topic.rpartition("/")[2] == attempt:
            return other
    return None


def _save_message(store: Store, announcement: _Announcement, kind: str, place: str, now: float) -> None:
    store.notifications.save(
        kind,
        place,
        announcement.topic,
        cause=announcement.cause,
        job=announcement.facts.job,
        hosts=announcement.facts.hosts,
        incident=announcement.incident,
        report=announcement.report,
        now=now,
    )


def _request_delivery(store: Store, kind: str, place: str, topic: str, at: float, now: float) -> bool:
    store.outbox.request(kind, f"{place}:{topic}", {"place": place, "topic": topic}, at=at, now=now)
    return True
