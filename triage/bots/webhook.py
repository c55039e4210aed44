"""Signed JSON to any address: headers `X-Triage-Timestamp`, `X-Triage-Signature` (sha256=HMAC of `TIMESTAMP.BODY`) and
`X-Triage-Delivery`.

A delivery that is tried again keeps its name, so that the receiver takes it once.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import time

from triage.bots import pace
from triage.bots.http import call
from triage.bots.interface import Undelivered
from triage.bots.subject import known, link, read
from triage.model.diagnosis import Diagnosis
from triage.render.json import document
from triage.settings.webhook import Webhook
from triage.store import Store
from triage.store.outbox import Post
from triage.store.told import Part

SCHEMA = "triage.webhook/1"


class WebhookBot:
    """Posts to the targets of the settings."""

    kind = "webhook"

    def __init__(self, settings: Webhook, public_url: str = "") -> None:
        self._settings = settings
        self._public_url = public_url

    def deliver(self, post: Post, store: Store, now: float) -> str:
        """The diagnosis as it is now; nothing when the receiver has just this already."""
        name = str(post.payload.get("place", ""))
        target = self._settings.targets.get(name)
        if target is None:
            raise Undelivered(
                f"there is no target {name!r}",
                hint=f"write [webhook.targets.{name}] into the settings, then `triage outbox retry {post.id}`",
            )
        message = known(post, store)
        paced = pace.of(post, message) if pace.is_pace(message) else None
        part = store.told.part(message.id, "body")
        if paced is not None and not paced.episode.wrong and not part.tried:
            return "over"  # before anybody was told
        told = {
            "incident": message.incident,
            "link": link(self._public_url, message.incident),
            "topic": message.topic,
            "repeats": [
                {"topic": item.topic, "job": item.job, "hosts": list(item.hosts)}
                for item in store.told.repeats(message.id)
            ],
        }
        more = {"pace": json.loads(paced.report())} if paced is not None else {}
        body = payload(read(post, message, store).diagnosis if paced is None else None, **told, **more)
        digest = hashlib.sha256(body).hexdigest()
        if part.ref is not None and part.digest == digest:
            return part.ref
        delivery = hashlib.sha256(f"{message.topic}\0{message.at}\0{digest}".encode()).hexdigest()[:32]
        send(target.url, target.secret.get_secret_value(), body, delivery, timeout=self._settings.timeout)
        store.told.keep(message.id, "body", Part(True, delivery, digest))
        return delivery


def payload(diagnosis: Diagnosis | None, **more: object) -> bytes:
    """The body: what it is about, and the whole report of schema triage.diagnosis/1; none where it is about the pace of
    a job.
    """
    return json.dumps(
        {"schema": SCHEMA, **more, "diagnosis": document(diagnosis) if diagnosis else None}, sort_keys=False
    ).encode()


def signature(secret: str, stamp: str, body: bytes) -> str:
    """`sha256=` and the HMAC of stamp, a point and the body."""
    return "sha256=" + hmac.new(secret.encode(), f"{stamp}.".encode() + body, hashlib.sha256).hexdigest()


def send(url: str, secret: str, body: bytes, delivery: str, *, timeout: float = 10.0) -> None:
    """Post it. Raises Later or Undelivered unless the answer is 2xx."""
    stamp = str(int(time.time()))
    headers = {
        "Content-Type": "application/json",
        "X-Triage-Timestamp": stamp,
        "X-Triage-Signature": signature(secret, stamp, body),
        "X-Triage-Delivery": delivery,
    }
    answer = call("POST", url, headers=headers, body=body, timeout=timeout)
    if not 200 <= answer.status < 300:
        raise Undelivered(f"the receiver answered {answer.status}", hint="look at its log; then `triage outbox retry`")
