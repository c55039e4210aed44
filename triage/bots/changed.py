"""Handle posts of the kind `changed`: an incident has another diagnosis now, so its messages must be updated."""

from __future__ import annotations

from triage.base.errors import OptionError
from triage.bots.announce import Topic, announce, topic_name
from triage.settings.notifications import RoutingSettings
from triage.store import Store
from triage.store.outbox import Post


class ChangedBot:
    """Turns one change into posts for each place that has a message about the incident."""

    kind = "changed"

    def __init__(self, routing: RoutingSettings) -> None:
        self._routing = routing

    def deliver(self, post: Post, store: Store, now: float) -> str:
        """Write the posts; nothing is sent here. A deleted incident changes nothing."""
        try:
            diagnosis = store.incidents.get(post.subject).diagnosis
        except OptionError:
            return "forgotten"
        request_updates(store, post.subject, now=now)
        return " ".join(announce(store, Topic(topic_name(diagnosis), post.subject, diagnosis), self._routing, now=now))


def request_updates(store: Store, incident: str, *, now: float) -> None:
    """Request a new delivery of every message about the incident."""
    for message in store.notifications.list_for_incident(incident):
        payload = {"place": message.place, "topic": message.topic}
        store.outbox.request(message.kind, f"{message.place}:{message.topic}", payload, at=now, now=now)
