"""Parse requests of buttons, forms and commands in Slack into an immediate response and an action.

An endpoint calls `handle_request`, which only reads and writes the store's list of requests, so that Slack has its
response within milliseconds. `Actions.perform` performs the action afterwards.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

from triage.bots.slack.verify import is_genuine, request_id
from triage.render.sanitize import sanitize_line
from triage.store import Store

MAX_BODY = 1 << 20


@dataclass(frozen=True, slots=True)
class Press:
    """A button was pressed. `once` identifies the press; `trigger` can open a form for three seconds."""

    action: str
    incident: str
    channel: str
    ts: str
    user: str
    trigger: str
    answer_url: str
    once: str


@dataclass(frozen=True, slots=True)
class WrongExplanation:
    """The form behind `Wrong` was sent."""

    incident: str
    user: str
    because: str
    signature: str
    once: str


@dataclass(frozen=True, slots=True)
class Command:
    """A slash command, like `/triage search TEXT`."""

    command: str
    text: str
    user: str
    answer_url: str
    once: str


SlackAction = Press | WrongExplanation | Command


@dataclass(frozen=True, slots=True)
class SlackReply:
    """The immediate response to Slack, and the action to perform after it."""

    status: int
    body: bytes = b""
    action: SlackAction | None = None


def handle_request(secret: str, headers: Mapping[str, str], body: bytes, store: Store, now: float) -> SlackReply:
    """Return 401 for an unsigned, old or replayed request, else 200. A retry is acknowledged without an action."""
    lower = {name.lower(): value for name, value in headers.items()}
    if len(body) > MAX_BODY:
        return SlackReply(413, b"the request is too long\n")
    if not is_genuine(secret, lower, body, now) or not store.notifications.claim_request(request_id(lower), now=now):
        return SlackReply(401, b"not signed by Slack, too old, or a replay\n")
    action = parse_action(body)
    if action is None:
        return SlackReply(400, b"unknown request\n")
    if not store.notifications.claim_request(action.once, now=now):
        return SlackReply(200)
    return SlackReply(200, action=action)


def parse_action(body: bytes) -> SlackAction | None:
    """Return the press, the sent form or the command in a request; None for everything else."""
    try:
        fields = parse_qs(body.decode("utf-8"), keep_blank_values=True, max_num_fields=100)
        form = {name: values[-1] for name, values in fields.items()}
        if "payload" in form:
            payload = json.loads(form["payload"])
            json.dumps(payload, ensure_ascii=False).encode()  # half surrogate pairs, which cannot be stored, raise
            return _parse_interaction(payload)
        if form.get("command", "").startswith("/"):
            user = _format_user(form.get("user_id"), form.get("user_name"))
            url = form.get("response_url", "")
            once = f"slack:command:{form.get('trigger_id') or url}"
            return Command(form["command"], form.get("text", ""), user, url, once)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError):
        return None
    return None


def _parse_interaction(payload: Any) -> SlackAction | None:
    user = _format_user(payload["user"].get("id"), payload["user"].get("username") or payload["user"].get("name"))
    if payload["type"] == "block_actions":
        action = payload["actions"][0]
        prefix, _, verb = str(action["action_id"]).partition(".")
        if prefix != "triage" or verb not in ("agree", "wrong", "mute"):
            return None
        once = f"slack:press:{payload['message']['ts']}:{action['action_id']}:{user}:{action['action_ts']}"
        channel, ts = str(payload["channel"]["id"]), str(payload["message"]["ts"])
        trigger, url = str(payload.get("trigger_id", "")), str(payload.get("response_url", ""))
        return Press(verb, str(action["value"]), channel, ts, user, trigger, url, once)
    if payload["type"] == "view_submission" and payload["view"].get("callback_id") == "triage.wrong":
        metadata = json.loads(payload["view"]["private_metadata"])
        values = payload["view"]["state"]["values"]
        because = str(values["because"]["because"].get("value") or "")[:2000]
        signature = str((values.get("signature", {}).get("signature") or {}).get("value") or "").strip()[:200]
        return WrongExplanation(str(metadata["incident"]), user, because, signature, f"slack:wrong:{metadata['once']}")
    return None


def _format_user(identifier: object, name: object) -> str:
    """Return the user as the store names people: `anna (slack U12)`."""
    shown, number = sanitize_line(str(name or ""))[:60], sanitize_line(str(identifier or ""))[:30]
    return f"{shown} (slack {number})" if shown else f"slack {number or 'somebody'}"
