"""Posts of the kind `changed`: the store says that an incident is held for something else now. Who was told the old
answer is told the new one.
"""

from __future__ import annotations

from triage.base.errors import OptionError
from triage.bots.announce import Topic, announce, topic
from triage.settings.routing import Routing
from triage.store import Store
from triage.store.outbox import Post


class Changed:
    """Turns one change into posts for each place that has a message about the incident."""

    kind = "changed"

    def __init__(self, routing: Routing) -> None:
        self._routing = routing

    def deliver(self, post: Post, store: Store, now: float) -> str:
        """Nothing leaves the house here. An incident that was forgotten meanwhile changes nothing."""
        try:
            found = store.incidents.get(post.subject)
        except OptionError:
            return "forgotten"
        refresh(store, post.subject, now=now)
        told = announce(store, Topic(topic(found.diagnosis), post.subject, found.diagnosis), self._routing, now=now)
        return " ".join(told)


def refresh(store: Store, incident: str, *, now: float) -> None:
    """Every message about the incident shall say what the store knows now."""
    for message in store.told.about(incident):
        payload = {"place": message.place, "topic": message.topic}
        store.outbox.request(message.kind, f"{message.place}:{message.topic}", payload, at=now, now=now)
