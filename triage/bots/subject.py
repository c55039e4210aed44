"""Read the subject of a post from the store when it is sent, so that it shows the newest state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from triage.base.errors import OptionError, ReportError
from triage.bots.interface import Undelivered
from triage.model import Diagnosis, StoredIncident
from triage.render import json
from triage.store import Store
from triage.store.notifications import Notification
from triage.store.outbox import Post

Target = TypeVar("Target")


@dataclass(frozen=True, slots=True)
class Subject:
    """A message with its diagnosis, and the stored incident if there is one."""

    message: Notification
    diagnosis: Diagnosis
    incident: StoredIncident | None


def find_target(targets: Mapping[str, Target], post: Post) -> Target:
    """Return the target in the settings that the post goes to. Raises Undelivered where it is gone."""
    name = str(post.payload.get("place", ""))
    if name not in targets:
        raise Undelivered(
            f"the settings have no {post.kind} target {name!r}",
            hint=f"write [{post.kind}.targets.{name}] into the settings, then `triage outbox retry {post.id}`",
        )
    return targets[name]


def find_message(post: Post, store: Store) -> Notification:
    """Return the message that the post asks for. Raises Undelivered when it was deleted."""
    place, topic = str(post.payload.get("place", "")), str(post.payload.get("topic", ""))
    message = store.notifications.get(post.kind, place, topic)
    if message is None:
        raise Undelivered(
            "the notification is no longer in the store", hint=f"drop it with `triage outbox drop {post.id}`"
        )
    return message


def read_subject(post: Post, message: Notification, store: Store) -> Subject:
    """Return the current subject of a message. Raises Undelivered when it cannot be read."""
    try:
        if message.incident is not None:
            incident = store.incidents.get(message.incident)
            return Subject(message, incident.diagnosis, incident)
        return Subject(message, json.read(message.report or ""), None)
    except (OptionError, ReportError) as error:
        raise Undelivered(
            f"the notification cannot be read: {error}", hint=f"drop it with `triage outbox drop {post.id}`"
        ) from None


def incident_url(public_url: str, incident: str | None) -> str:
    """Return the address of an incident in the service; empty without a service."""
    return f"{public_url.rstrip('/')}/incidents/{incident}" if public_url and incident else ""
