"""Deliver notifications as signed JSON.

Headers: `X-Triage-Timestamp`, `X-Triage-Signature` (sha256=HMAC of `TIMESTAMP.BODY`) and `X-Triage-Delivery`. A retried
delivery keeps its name, so that the receiver can ignore duplicates.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import time

from triage.bots import pace
from triage.bots.http import send_request
from triage.bots.interface import Undelivered
from triage.bots.subject import find_message, find_target, incident_url, read_subject
from triage.model.diagnosis import Diagnosis
from triage.render.json import document
from triage.settings.notifications import WebhookSettings
from triage.store import Store
from triage.store.notifications import Notification, NotificationPart
from triage.store.outbox import Post

SCHEMA = "triage.webhook/1"


class WebhookBot:
    """Posts to the targets of the settings."""

    kind = "webhook"

    def __init__(self, settings: WebhookSettings, public_url: str = "") -> None:
        self._settings = settings
        self._public_url = public_url

    def deliver(self, post: Post, store: Store, now: float) -> str:
        """Post the current diagnosis; nothing if the receiver already has it."""
        target = find_target(self._settings.targets, post)
        message = find_message(post, store)
        part = store.notifications.get_part(message.id, "body")
        body = self._build_body(post, message, store, part)
        if body is None:
            return "over"
        digest = hashlib.sha256(body).hexdigest()
        if part.ref is not None and part.digest == digest:
            return part.ref
        delivery = hashlib.sha256(f"{message.topic}\0{message.at}\0{digest}".encode()).hexdigest()[:32]
        send(target.url, target.secret.get_secret_value(), body, delivery, timeout=self._settings.timeout)
        store.notifications.save_part(message.id, "body", NotificationPart(True, delivery, digest))
        return delivery

    def _build_body(self, post: Post, message: Notification, store: Store, part: NotificationPart) -> bytes | None:
        """Return the body; None for a pace episode that was over before anybody was notified."""
        repeats = store.notifications.list_repeats(message.id)
        fields: dict[str, object] = {
            "incident": message.incident,
            "link": incident_url(self._public_url, message.incident),
            "topic": message.topic,
            "repeats": [{"topic": item.topic, "job": item.job, "hosts": list(item.hosts)} for item in repeats],
        }
        if not pace.is_pace(message):
            return build_payload(read_subject(post, message, store).diagnosis, **fields)
        report = pace.read_pace(post, message)
        if not report.episode.problems and not part.tried:
            return None
        return build_payload(None, **fields, pace=json.loads(report.as_json()))


def build_payload(diagnosis: Diagnosis | None, **fields: object) -> bytes:
    """Return the body: the fields and the report of schema triage.diagnosis/2, or null for the pace of a job."""
    return json.dumps(
        {"schema": SCHEMA, **fields, "diagnosis": document(diagnosis) if diagnosis else None}, sort_keys=False
    ).encode()


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """Return `sha256=` and the HMAC of `TIMESTAMP.BODY`."""
    return "sha256=" + hmac.new(secret.encode(), f"{timestamp}.".encode() + body, hashlib.sha256).hexdigest()


def send(url: str, secret: str, body: bytes, delivery: str, *, timeout: float = 10.0) -> None:
    """Post the body. Raises RetryLater or Undelivered unless the status is 2xx."""
    timestamp = str(int(time.time()))
    headers = {
        "Content-Type": "application/json",
        "X-Triage-Timestamp": timestamp,
        "X-Triage-Signature": signature(secret, timestamp, body),
        "X-Triage-Delivery": delivery,
    }
    response = send_request("POST", url, headers=headers, body=body, timeout=timeout)
    if not 200 <= response.status < 300:
        raise Undelivered(
            f"the receiver answered {response.status}", hint="look at its log, then run `triage outbox retry`"
        )
