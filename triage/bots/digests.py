"""The summary of a day, for routes that ask for one: written into the outbox once a day, by whichever worker comes
first.
"""

from __future__ import annotations

import json
import time

from triage.bots.routing import Facts, digest_of, place, wants
from triage.bots.slack.words import DIGEST
from triage.model.store import Incident
from triage.settings.routing import Route, Routing
from triage.store import Store
from triage.store.search import Filter

MOST = 5000


def due(store: Store, routing: Routing, now: float | None = None) -> int:
    """Write the digests that are due and not written yet; how many. A day without failures has none."""
    moment = time.time() if now is None else now
    return sum(
        _written(store, route, moment) for route in routing.routes if route.digest and place(route)[0] == "slack"
    )


def incidents(store: Store, report: str) -> list[Incident]:
    """The incidents that the `report` of a digest names, as they are now."""
    told = json.loads(report)
    route = Route(**told["route"])
    found = store.search.listed(Filter(since=told["since"], until=told["until"]), limit=MOST)
    return [item for item in found if item.verdict != "clean" and wants(route, Facts.told(item))]


def _written(store: Store, route: Route, now: float) -> bool:
    told = digest_of(route, now)
    if told is None:
        return False
    day, since, until = told
    kind, where = place(route)
    topic = f"{DIGEST}/{day}/{route.digest}"
    if store.told.message(kind, where, topic) is not None:
        return False
    report = json.dumps({"day": day, "since": since, "until": until, "route": route.model_dump(mode="json")})
    if not incidents(store, report):
        return False
    with store.connections.write():
        store.told.write(kind, where, topic, cause=DIGEST, job="", hosts=(), incident=None, report=report, now=now)
        return store.outbox.put(kind, f"{where}:{topic}", f"{where}:{topic}", {"place": where, "topic": topic}, now=now)
