"""What people press and write in Slack: a request becomes an answer at once, and work to be done after it.

`receive` is what an endpoint calls; it touches nothing but the store's list of requests, so that Slack has its answer
within milliseconds.
The work that it gives back (feedback, a mute, a modal, the answer to a command) is done by `Actions.perform`, outside
of the request.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

from triage.bots.slack.verify import genuine, sight
from triage.render.safe import safe_line
from triage.store import Store

MOST_BODY = 1 << 20


@dataclass(frozen=True, slots=True)
class Press:
    """A button was pressed. `once` names this press; `trigger` lets a modal be opened for three seconds."""

    action: str
    incident: str
    channel: str
    ts: str
    user: str
    trigger: str
    answer_url: str
    once: str


@dataclass(frozen=True, slots=True)
class Explained:
    """The modal behind `Wrong` was sent."""

    incident: str
    user: str
    because: str
    signature: str
    once: str


@dataclass(frozen=True, slots=True)
class Command:
    """`/triage words`."""

    command: str
    text: str
    user: str
    answer_url: str
    once: str


Work = Press | Explained | Command


@dataclass(frozen=True, slots=True)
class Answer:
    """What Slack gets at once, and what is to be done then."""

    status: int
    body: bytes = b""
    work: Work | None = None


def receive(secret: str, headers: Mapping[str, str], body: bytes, store: Store, now: float) -> Answer:
    """401 for what is not Slack's, is stale, or was seen before; else 200. A retry of what was taken is acknowledged
    and not done again.
    """
    named = {name.lower(): value for name, value in headers.items()}
    if len(body) > MOST_BODY:
        return Answer(413, b"too long\n")
    if not genuine(secret, named, body, now) or not store.told.first_sight(sight(named), now=now):
        return Answer(401, b"not signed by Slack, too old, or seen before\n")
    work = understand(body)
    if work is None:
        return Answer(400, b"not understood\n")
    if not store.told.first_sight(work.once, now=now):
        return Answer(200)
    return Answer(200, work=work)


def understand(body: bytes) -> Work | None:
    """The press, the modal or the command in a form; None for everything else."""
    try:
        form = {
            name: values[-1]
            for name, values in parse_qs(body.decode("utf-8"), keep_blank_values=True, max_num_fields=100).items()
        }
        if "payload" in form:
            payload = json.loads(form["payload"])
            json.dumps(
                payload, ensure_ascii=False
            ).encode()  # halves of surrogate pairs, which no store can hold, are an error
            return _interaction(payload)
        if form.get("command", "").startswith("/"):
            once = f"slack:command:{form.get('trigger_id') or form.get('response_url', '')}"
            return Command(
                form["command"],
                form.get("text", ""),
                _user(form.get("user_id"), form.get("user_name")),
                form.get("response_url", ""),
                once,
            )
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError):
        return None
    return None


def _interaction(payload: Any) -> Work | None:
    user = _user(payload["user"].get("id"), payload["user"].get("username") or payload["user"].get("name"))
    if payload["type"] == "block_actions":
        action = payload["actions"][0]
        name, _, verb = str(action["action_id"]).partition(".")
        if name != "triage" or verb not in ("agree", "wrong", "mute"):
            return None
        once = f"slack:press:{payload['message']['ts']}:{action['action_id']}:{user}:{action['action_ts']}"
        channel, ts = str(payload["channel"]["id"]), str(payload["message"]["ts"])
        trigger, url = str(payload.get("trigger_id", "")), str(payload.get("response_url", ""))
        return Press(verb, str(action["value"]), channel, ts, user, trigger, url, once)
    if payload["type"] == "view_submission" and payload["view"].get("callback_id") == "triage.wrong":
        known = json.loads(payload["view"]["private_metadata"])
        values = payload["view"]["state"]["values"]
        because = str(values["because"]["because"].get("value") or "")[:2000]
        signature = str((values.get("signature", {}).get("signature") or {}).get("value") or "").strip()[:200]
        return Explained(str(known["incident"]), user, because, signature, f"slack:wrong:{known['once']}")
    return None


def _user(identifier: object, name: object) -> str:
    """Who it was, in the words of the store: `anna (slack U12)`."""
    shown, number = safe_line(str(name or ""))[:60], safe_line(str(identifier or ""))[:30]
    return f"{shown} (slack {number})" if shown else f"slack {number or 'somebody'}"
