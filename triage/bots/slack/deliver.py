"""Deliver one Slack message per topic: each part is posted once and then edited in place, whatever fails.

Before a part is posted, the store records the try; after it, the `ts`. A part that was tried and has no `ts` may be
visible: then the bot searches the channel or the thread for the metadata of the part, and posts it only if it is
missing.
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
from triage.bots.routing import RoutingFacts, matches_route, split_target
from triage.bots.slack import messages
from triage.bots.slack.client import Client
from triage.bots.subject import Subject, find_message, incident_url, read_subject
from triage.render import slack
from triage.settings.notifications import Route, SlackSettings
from triage.store import Store
from triage.store.notifications import Notification, NotificationPart
from triage.store.outbox import Post

EVENT = "triage_part"
CLOCK_TOLERANCE = 300.0  # seconds by which the clock of a host may differ from Slack's
POST_INTERVAL = 1.0  # seconds between two posts to a channel, the limit of Slack


class SlackBot:
    """Keeps the messages of one workspace in the state of the store."""

    kind = "slack"

    def __init__(
        self,
        settings: SlackSettings,
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
        self._posted_at: dict[str, float] = {}

    def deliver(self, post: Post, store: Store, now: float) -> str:
        """Bring the message, its thread and its count of repeats up to date; parts that are current stay untouched."""
        message = find_message(post, store)
        if message.cause == messages.DIGEST:
            parent = self._update_part(store, message, "message", None, _render_digest(message, store))
        elif pace.is_pace(message):
            parent = self._deliver_pace(store, message, pace.read_pace(post, message))
        else:
            parent = self._deliver_diagnosis(store, read_subject(post, message, store), now)
        return f"{message.place} {parent or 'gone'}"

    def _deliver_diagnosis(self, store: Store, subject: Subject, now: float) -> str | None:
        message = subject.message
        parent = self._update_part(store, message, "message", None, self._render_subject(subject, store, now))
        if parent is not None:
            self._update_part(store, message, "thread", parent, slack.thread(subject.diagnosis))
            self._update_repeats(store, message, parent)
        return parent

    def _deliver_pace(self, store: Store, message: Notification, report: pace.PaceReport) -> str | None:
        if not report.episode.problems and not store.notifications.may_be_visible(message.id):
            return "over"  # before anybody was notified
        content = messages.pace(report, self._team(message.place, report.facts()))
        parent = self._update_part(store, message, "message", None, content)
        if parent is not None:
            self._update_repeats(store, message, parent)
        return parent

    def _update_repeats(self, store: Store, message: Notification, parent: str) -> None:
        repeats = store.notifications.list_repeats(message.id)
        if repeats:
            self._update_part(store, message, "again", parent, messages.repeats(message, repeats))

    def _render_subject(self, subject: Subject, store: Store, now: float) -> slack.Message:
        message, incident = subject.message, subject.message.incident or ""
        muted = store.notifications.get_mute("slack", message.place, message.cause, now)
        return slack.message(
            subject.diagnosis,
            link=incident_url(self._public_url, incident),
            incident=incident,
            team=self._team(message.place, RoutingFacts.from_diagnosis(subject.diagnosis)),
            notes=messages.footer_notes(subject.incident, muted),
        )

    def _team(self, channel: str, facts: RoutingFacts) -> str:
        """Return the user group of the first matching route to this channel that names one."""
        for route in self._routes:
            if route.team and split_target(route) == (self.kind, channel) and matches_route(route, facts):
                return route.team
        return ""

    def _update_part(
        self, store: Store, message: Notification, name: str, thread: str | None, content: slack.Message
    ) -> str | None:
        """Post or edit a part; return its `ts`, or None if a person deleted it, because it then stays deleted."""
        part = store.notifications.get_part(message.id, name)
        digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:32]
        metadata = {"event_type": EVENT, "event_payload": {"key": part_key(message, name)}}
        if part.ref is None and part.tried:
            part = replace(part, ref=self._find_part(message, name, thread))
            if part.ref is not None:  # its content is unknown
                store.notifications.save_part(message.id, name, replace(part, digest=None))
        if part.ref is None:
            store.notifications.save_part(message.id, name, NotificationPart(tried=True))
            self._wait_for_slot(message.place)
            ts = self._client.post(message.place, content["text"], content["blocks"], metadata, thread)
            store.notifications.save_part(message.id, name, NotificationPart(True, ts, digest))
            return ts
        if part.digest == "gone":
            return None
        if part.digest != digest:
            try:
                self._client.edit(message.place, part.ref, content["text"], content["blocks"], metadata)
            except Undelivered as error:
                if "message_not_found" not in error.message:
                    raise
                store.notifications.save_part(message.id, name, NotificationPart(True, part.ref, "gone"))
                return None
            store.notifications.save_part(message.id, name, NotificationPart(True, part.ref, digest))
        return part.ref

    def _find_part(self, message: Notification, name: str, thread: str | None) -> str | None:
        key = part_key(message, name)
        for item in self._client.messages(message.place, message.at - CLOCK_TOLERANCE, thread):
            metadata: Any = item.get("metadata") or {}
            if metadata.get("event_type") == EVENT and metadata.get("event_payload", {}).get("key") == key:
                return str(item["ts"])
        return None

    def _wait_for_slot(self, channel: str) -> None:
        wait = self._posted_at.get(channel, float("-inf")) + POST_INTERVAL - self._clock()
        if wait > 0:
            self._sleep(wait)
        self._posted_at[channel] = self._clock()


def _render_digest(message: Notification, store: Store) -> slack.Message:
    report = message.report or "{}"
    return messages.digest(str(json.loads(report)["day"]), digests.list_incidents(store, report))


def part_key(message: Notification, name: str) -> str:
    """Return what identifies this part among all messages of the channel."""
    return hashlib.sha256(f"{message.place}\0{message.topic}\0{name}".encode()).hexdigest()[:40]
