"""One message a topic, whatever breaks: each part is made once, found again when it is not known whether it was made,
and edited in place.

Before a part is posted, the store knows that it is tried; after it, its `ts`. A part that was tried and has no `ts` may
be visible: then
the channel (or the thread) is read for the metadata that every post of ours carries, and only if it is not there it is
posted again.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from triage.bots import digests, pace
from triage.bots.interface import Undelivered
from triage.bots.routing import Facts, place, wants
from triage.bots.slack import words
from triage.bots.slack.client import Client
from triage.bots.subject import Subject, known, link, read
from triage.render import slack
from triage.settings.routing import Route
from triage.settings.slack import Slack
from triage.store import Store
from triage.store.outbox import Post
from triage.store.told import Message, Part

EVENT = "triage_part"
EARLIER = 300.0  # a host's clock may be off from Slack's by so much
SECOND = 1.0  # between two posts to a channel, as Slack asks for


class SlackBot:
    """Keeps the messages of one workspace as the store says they should be."""

    kind = "slack"

    def __init__(
        self,
        settings: Slack,
        public_url: str = "",
        *,
        routes: Sequence[Route] = (),
        client: Client | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._client = client or Client(settings)
        self._public_url = public_url
        self._routes = routes
        self._clock, self._sleep = clock, sleep
        self._last: dict[str, float] = {}

    def deliver(self, post: Post, store: Store, now: float) -> str:
        """Make the message, its thread and its count say what they should; what says it already is left alone."""
        message = known(post, store)
        if message.cause == words.DIGEST:
            return f"{message.place} {self._part(store, message, 'message', None, _digest(message, store)) or 'gone'}"
        if pace.is_pace(message):
            return f"{message.place} {self._paced(store, message, pace.of(post, message))}"
        about = read(post, message, store)
        parent = self._part(store, message, "message", None, self._shown(about, store, now))
        if parent is None:
            return f"{message.place} gone"
        self._part(store, message, "thread", parent, slack.thread(about.diagnosis))
        repeats = store.told.repeats(message.id)
        if repeats:
            self._part(store, message, "again", parent, words.again(message, repeats))
        return f"{message.place} {parent}"

    def _paced(self, store: Store, message: Message, about: pace.Pace) -> str:
        if not about.episode.wrong and not store.told.is_shown(message.id):
            return "over"  # before anybody was told
        parent = self._part(
            store, message, "message", None, words.pace(about, self._team(message.place, about.facts()))
        )
        repeats = store.told.repeats(message.id)
        if parent is not None and repeats:
            self._part(store, message, "again", parent, words.again(message, repeats))
        return parent or "gone"

    def _shown(self, about: Subject, store: Store, now: float) -> slack.Message:
        incident = about.message.incident or ""
        muted = store.told.muted("slack", about.message.place, about.message.cause, now)
        notes = words.notes(about.remembered, muted)
        team = self._team(about.message.place, Facts.of(about.diagnosis))
        return slack.message(
            about.diagnosis, link=link(self._public_url, incident), incident=incident, team=team, notes=notes
        )

    def _team(self, channel: str, facts: Facts) -> str:
        """The user group of the first route to this channel that wants such a failure and names one."""
        return next(
            (
                route.team
                for route in self._routes
                if route.team and place(route) == (self.kind, channel) and wants(route, facts)
            ),
            "",
        )

    def _part(self, store: Store, message: Message, name: str, thread: str | None, made: slack.Message) -> str | None:
        """The `ts` of a part that says this now; None when a person deleted it, for then it stays deleted."""
        part = store.told.part(message.id, name)
        digest = hashlib.sha256(json.dumps(made, sort_keys=True).encode()).hexdigest()[:32]
        metadata = {"event_type": EVENT, "event_payload": {"key": key(message, name)}}
        if part.ref is None and part.tried:
            part = replace(part, ref=self._found(message, name, thread))
            if part.ref is not None:  # what it says is not known
                store.told.keep(message.id, name, replace(part, digest=None))
        if part.ref is None:
            store.told.keep(message.id, name, Part(tried=True))
            self._pace(message.place)
            ts = self._client.post(message.place, made["text"], made["blocks"], metadata, thread)
            store.told.keep(message.id, name, Part(True, ts, digest))
            return ts
        if part.digest == "gone":
            return None
        if part.digest != digest:
            try:
                self._client.edit(message.place, part.ref, made["text"], made["blocks"], metadata)
            except Undelivered as error:
                if "message_not_found" not in error.message:
                    raise
                store.told.keep(message.id, name, Part(True, part.ref, "gone"))
                return None
            store.told.keep(message.id, name, Part(True, part.ref, digest))
        return part.ref

    def _found(self, message: Message, name: str, thread: str | None) -> str | None:
        wanted = key(message, name)
        for item in self._client.messages(message.place, message.at - EARLIER, thread):
            metadata: Any = item.get("metadata") or {}
            if metadata.get("event_type") == EVENT and metadata.get("event_payload", {}).get("key") == wanted:
                return str(item["ts"])
        return None

    def _pace(self, channel: str) -> None:
        wait = self._last.get(channel, float("-inf")) + SECOND - self._clock()
        if wait > 0:
            self._sleep(wait)
        self._last[channel] = self._clock()


def _digest(message: Message, store: Store) -> slack.Message:
    report = message.report or "{}"
    return words.digest(str(json.loads(report)["day"]), digests.incidents(store, report))


def key(message: Message, name: str) -> str:
    """What tells this part from every other post in the channel."""
    return hashlib.sha256(f"{message.place}\0{message.topic}\0{name}".encode()).hexdigest()[:40]
