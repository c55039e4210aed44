"""Write the daily digest into the outbox, for routes that ask for one: once a day, by whichever worker comes first."""

from __future__ import annotations

import json
import time

from triage.bots.routing import RoutingFacts, due_digest, matches_route, split_target
from triage.bots.slack.messages import DIGEST
from triage.model.store import Incident
from triage.settings.notifications import Route, RoutingSettings
from triage.store import Store
from triage.store.search import Filter

MAX_INCIDENTS = 5000


def write_due_digests(store: Store, routing: RoutingSettings, now: float | None = None) -> int:
    """Write the digests that are due and not yet written; return how many. A day without failures has none."""
    moment = time.time() if now is None else now
    routes = [route for route in routing.routes if route.digest and split_target(route)[0] == "slack"]
    return sum(_write_digest(store, route, moment) for route in routes)


def list_incidents(store: Store, report: str) -> list[Incident]:
    """Return the current incidents of a digest, from its `report`."""
    stored = json.loads(report)
    route = Route(**stored["route"])
    incidents = store.search.list_incidents(Filter(since=stored["since"], until=stored["until"]), limit=MAX_INCIDENTS)
    facts = store.search.facts_of([incident.id for incident in incidents]) if route.facts else {}
    return [
        incident
        for incident in incidents
        if incident.verdict != "clean"
        and matches_route(route, RoutingFacts.from_incident(incident, facts.get(incident.id, {})))
    ]


def _write_digest(store: Store, route: Route, now: float) -> bool:
    due = due_digest(route, now)
    if due is None:
        return False
    day, since, until = due
    kind, place = split_target(route)
    topic = f"{DIGEST}/{day}/{route.digest}"
    if store.notifications.get(kind, place, topic) is not None:
        return False
    report = json.dumps({"day": day, "since": since, "until": until, "route": route.model_dump(mode="json")})
    if not list_incidents(store, report):
        return False
    with store.connections.write():
        store.notifications.save(
            kind, place, topic, cause=DIGEST, job="", hosts=(), incident=None, report=report, now=now
        )
        return store.outbox.put(kind, f"{place}:{topic}", f"{place}:{topic}", {"place": place, "topic": topic}, now=now)
