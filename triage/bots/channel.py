"""Deliver notifications to Teams, Discord, PagerDuty, Opsgenie, e-mail and everything else that apprise knows.

These channels cannot edit what they show. So a topic is sent once, and again only when its headline changes. A delivery
of which nobody knows whether it arrived is repeated, unless the target says `unsure = "hold"`: a message twice is
better than none. PagerDuty and Opsgenie fold the two by the key of the topic; a bot of Discord looks before it repeats.
"""

from __future__ import annotations

import hashlib

from triage.bots import apprise_client, discord, pace
from triage.bots.apprise_client import ChannelMessage
from triage.bots.interface import Held, Undelivered, Unsure
from triage.bots.subject import Subject, find_message, find_target, incident_url, read_subject
from triage.render import phrases, render
from triage.render.sanitize import clip, sanitize_line
from triage.render.watch import TITLES
from triage.settings.notifications import ChannelSettings, ChannelTarget
from triage.store import Store
from triage.store.notifications import NotificationPart
from triage.store.outbox import Post

WIDTH = 80
TITLE = 200  # characters; receivers cut at 256 (Discord) or more
PART = "message"


class ChannelBot:
    """Sends to the targets of the settings."""

    kind = "channel"

    def __init__(self, settings: ChannelSettings, public_url: str = "") -> None:
        self._settings = settings
        self._public_url = public_url

    def deliver(self, post: Post, store: Store, now: float) -> str:
        """Send the current state of the message; nothing if the channel already shows its headline."""
        target = find_target(self._settings.targets, post)
        message = find_message(post, store)
        part = store.notifications.get_part(message.id, PART)
        key = hashlib.sha256(f"{message.place}\0{message.topic}".encode()).hexdigest()[:32]
        if pace.is_pace(message):
            report = pace.read_pace(post, message)
            if not report.episode.problems and not part.tried:
                return "over"  # before anybody was notified
            content = _format_pace(report, key)
        else:
            content = _format_diagnosis(read_subject(post, message, store), self._public_url, key)
        digest = hashlib.sha256(content.title.encode()).hexdigest()[:32]
        if part.ref is not None and part.digest == digest:
            return part.ref
        is_repeat = part.tried and part.digest == digest
        store.notifications.save_part(message.id, PART, NotificationPart(True, None, digest))
        try:
            self._send(target, content, post, is_repeat)
        except Unsure:
            raise
        except Undelivered as error:  # this try did not arrive; a held one is sent as new when a person says so
            before = NotificationPart() if isinstance(error, Held) else part
            store.notifications.save_part(message.id, PART, before)
            raise
        store.notifications.save_part(message.id, PART, NotificationPart(True, key, digest))
        return key

    def _send(self, target: ChannelTarget, content: ChannelMessage, post: Post, is_repeat: bool) -> None:
        url, timeout = target.url.get_secret_value(), self._settings.timeout
        if url.startswith(discord.SCHEME):
            discord.post_once(url, content, since=post.at, may_exist=is_repeat, timeout=timeout)
        else:
            is_held = target.unsure == "hold"
            apprise_client.send(url, content, is_failure=True, timeout=timeout, is_repeat=is_repeat, hold=is_held)


def _format_diagnosis(subject: Subject, public_url: str, key: str) -> ChannelMessage:
    """Return the verdict as title, and the link and the text report below it."""
    diagnosis = subject.diagnosis
    text = render(diagnosis, "text", width=WIDTH, color=False, verbose=False)
    link = incident_url(public_url, subject.message.incident)
    title = f"{diagnosis.job.name}: {phrases.verdict_kind(diagnosis)} {phrases.headline(diagnosis)}"
    body = "\n\n".join(part for part in (link, text.strip("\n")) if part)
    return ChannelMessage(clip(sanitize_line(title), TITLE), body, key)


def _format_pace(report: pace.PaceReport, key: str) -> ChannelMessage:
    newest = report.newest
    lines = [f"{TITLES[event.kind].capitalize()}: {event.text}" for event in reversed(report.episode.events)]
    return ChannelMessage(f"{report.job}: {TITLES[newest.kind]}", "\n".join(lines), key)
