"""What a post is about, read from the store when it is sent, so that what arrives is the newest."""

from __future__ import annotations

from dataclasses import dataclass

from triage.base.errors import OptionError, ReportError
from triage.bots.interface import Undelivered
from triage.model.diagnosis import Diagnosis
from triage.model.store import Remembered
from triage.render import json
from triage.store import Store
from triage.store.outbox import Post
from triage.store.told import Message


@dataclass(frozen=True, slots=True)
class Subject:
    """A message with its diagnosis; `remembered` where it is that of a stored incident."""

    message: Message
    diagnosis: Diagnosis
    remembered: Remembered | None


def subject(post: Post, store: Store) -> Subject:
    """The message that the post asks for, with its diagnosis. Raises Undelivered when it is gone."""
    return read(post, known(post, store), store)


def known(post: Post, store: Store) -> Message:
    """The message that the post asks for. Raises Undelivered when it is gone."""
    message = store.told.message(post.kind, str(post.payload.get("place", "")), str(post.payload.get("topic", "")))
    if message is None:
        raise Undelivered("what was to be told is no longer in the store", hint=f"`triage outbox drop {post.id}`")
    return message


def read(post: Post, message: Message, store: Store) -> Subject:
    """What the message is about, as the store has it now. Raises Undelivered when it cannot be read."""
    try:
        if message.incident is not None:
            found = store.incidents.get(message.incident)
            return Subject(message, found.diagnosis, found)
        return Subject(message, json.read(message.report or ""), None)
    except (OptionError, ReportError) as error:
        raise Undelivered(
            f"what was to be told cannot be read: {error}", hint=f"`triage outbox drop {post.id}`"
        ) from None


def link(public_url: str, incident: str | None) -> str:
    """Where people read it, when there is a service."""
    return f"{public_url.rstrip('/')}/incidents/{incident}" if public_url and incident else ""
