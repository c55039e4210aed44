"""A local server that answers like Slack's Web API, for what `triage` and small bots use of it, and enforces the
documented limits.

    with SlackServer() as slack:
        slack.channel("C1")
        client = WebClient(token=slack.token, base_url=f"{slack.url}/api/")
        client.chat_postMessage(channel="C1", text="hello")
        assert [message["text"] for message in slack.visible("C1")] == ["hello"]

Known methods: auth.test, chat.postMessage, chat.update, chat.postEphemeral, conversations.history,
conversations.replies, views.open, and
response URLs. `click`, `submit` and `slash` send what Slack sends when a person does that, signed with
`signing_secret`.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlencode

from triage.testing.blocks import problem
from triage.testing.local import LocalServer, Reply, Request


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """What the bot answered to Slack, and after how many seconds. Slack shows the person an error after three."""

    status: int
    body: bytes
    seconds: float


class SlackServer(LocalServer):
    """One workspace with one bot. `visible` gives what people see in a channel."""

    def __init__(self, *, per_second: float | None = None, burst: int = 1) -> None:
        super().__init__()
        self.token = "xoxb-local-token"
        self.signing_secret = "8f742231b10e8888abcd99yyyzzz85a5"
        self.bot = "B1"
        self.views: list[dict[str, Any]] = []
        self.answers: list[dict[str, Any]] = []
        """What was sent to response URLs."""
        self._per_second = per_second
        self._burst = burst
        self._posted: dict[str, list[float]] = {}
        self._channels: dict[str, list[dict[str, Any]]] = {}
        self._last = 0
        self._triggers: dict[str, float] = {}
        self._urls: dict[str, int] = {}

    def channel(self, identifier: str) -> str:
        """A channel with the bot in it."""
        self._channels.setdefault(identifier, [])
        return identifier

    def visible(self, channel: str, thread: str | None = None) -> list[dict[str, Any]]:
        """The messages of a channel, or the replies of a thread, in their order."""
        with self.lock:
            return [
                dict(m)
                for m in self._channels[channel]
                if (m.get("thread_ts") == thread if thread else "thread_ts" not in m)
            ]

    def say(self, channel: str, text: str) -> None:
        """A message of somebody else."""
        self._channels[channel].append({"type": "message", "user": "U1", "ts": self._stamp(), "text": text})

    # What Slack sends when a person does something

    def click(self, url: str, channel: str, ts: str, action: str, *, user: str = "U1") -> Acknowledged:
        """A person presses the button `action` (its action_id) of a message."""
        message = next(m for m in self._channels[channel] if m["ts"] == ts)
        buttons = [
            button
            for block in message.get("blocks", [])
            for button in block.get("elements", [])
            if button.get("action_id") == action
        ]
        assert buttons, f"the message has no button {action}"
        payload = {
            "type": "block_actions",
            "user": {"id": user, "username": user.lower()},
            "trigger_id": self._trigger(),
            "response_url": self._response_url(),
            "channel": {"id": channel},
            "message": message,
            "actions": [
                {"action_id": action, "value": buttons[0].get("value"), "type": "button", "action_ts": self._stamp()}
            ],
        }
        return self.send(url, urlencode({"payload": json.dumps(payload)}).encode())

    def submit(self, url: str, view: Mapping[str, Any], values: Mapping[str, str], *, user: str = "U1") -> Acknowledged:
        """A person fills in a modal that was opened and sends it; `values` by action_id."""
        state: dict[str, Any] = {}
        for block in view["blocks"]:
            element = block.get("element", {})
            if element.get("action_id") in values:
                state[block["block_id"]] = {
                    element["action_id"]: {"type": element["type"], "value": values[element["action_id"]]}
                }
        sent = {**view, "id": "V1", "state": {"values": state}}
        payload = {"type": "view_submission", "user": {"id": user, "username": user.lower()}, "view": sent}
        return self.send(url, urlencode({"payload": json.dumps(payload)}).encode())

    def slash(self, url: str, command: str, text: str, *, user: str = "U1", channel: str = "C1") -> Acknowledged:
        """A person writes `/command text`."""
        form = {
            "command": command,
            "text": text,
            "user_id": user,
            "user_name": user.lower(),
            "channel_id": channel,
            "trigger_id": self._trigger(),
            "response_url": self._response_url(),
        }
        return self.send(url, urlencode(form).encode())

    def send(self, url: str, body: bytes, *, headers: Mapping[str, str] = {}, at: float | None = None) -> Acknowledged:
        """Send a body to the bot as Slack does; `headers` take the place of those that are right, `at` is the time of
        the signature.
        """
        stamp = str(int(time.time() if at is None else at))
        right = {
            "Content-Type": "application/x-www-form-urlencoded",
            "X-Slack-Request-Timestamp": stamp,
            "X-Slack-Signature": self.signature(stamp, body),
        }
        sent = {name: value for name, value in {**right, **headers}.items() if value}
        began = time.monotonic()
        try:
            with urllib.request.urlopen(urllib.request.Request(url, body, sent), timeout=20) as reply:
                return Acknowledged(reply.status, reply.read(), time.monotonic() - began)
        except urllib.error.HTTPError as error:
            with error:
                return Acknowledged(error.code, error.read(), time.monotonic() - began)

    def signature(self, stamp: str, body: bytes) -> str:
        """As Slack's documents on verifying requests say."""
        return (
            "v0=" + hmac.new(self.signing_secret.encode(), f"v0:{stamp}:".encode() + body, hashlib.sha256).hexdigest()
        )

    # What the bot asks of Slack

    def name_of(self, request: Request) -> str:
        return request.path.rpartition("/")[2] if request.path.startswith("/api/") else request.path

    def limited(self, seconds: int) -> Reply:
        return Reply(429, {"ok": False, "error": "ratelimited"}, {"Retry-After": str(seconds)})

    def answer(self, request: Request) -> Reply:
        if request.path.startswith("/response/"):
            return self._answered(request)
        if not request.path.startswith("/api/"):
            return Reply(404, b"no such page\n")
        given = _arguments(request)
        if request.headers.get("authorization") != f"Bearer {self.token}":
            return _refused("invalid_auth" if request.headers.get("authorization") else "not_authed")
        known = {
            "auth.test": self._auth_test,
            "chat.postMessage": self._post,
            "chat.postEphemeral": self._post_ephemeral,
            "chat.update": self._update,
            "conversations.history": self._history,
            "conversations.replies": self._replies,
            "views.open": self._open,
        }.get(self.name_of(request))
        return known(given) if known is not None else _refused("unknown_method")

    def _auth_test(self, given: Mapping[str, Any]) -> Reply:
        return Reply(
            200, {"ok": True, "url": self.url, "team": "local", "user": "triage", "user_id": "UBOT", "bot_id": self.bot}
        )

    def _post(self, given: Mapping[str, Any]) -> Reply:
        channel = str(given.get("channel", ""))
        if channel not in self._channels:
            return _refused("channel_not_found")
        if wrong := problem(given):
            return _refused(wrong)
        if wait := self._wait(channel):
            return self.limited(wait)
        thread = given.get("thread_ts")
        if thread and not any(m["ts"] == thread for m in self._channels[channel]):
            return _refused("thread_not_found")
        message: dict[str, Any] = {
            "type": "message",
            "bot_id": self.bot,
            "ts": self._stamp(),
            "text": given.get("text", ""),
        }
        for key in ("blocks", "metadata", "thread_ts"):
            if given.get(key):
                message[key] = given[key]
        self._channels[channel].append(message)
        return Reply(200, {"ok": True, "channel": channel, "ts": message["ts"], "message": message})

    def _post_ephemeral(self, given: Mapping[str, Any]) -> Reply:
        if wrong := problem(given):
            return _refused(wrong)
        return Reply(200, {"ok": True, "message_ts": self._stamp()})

    def _update(self, given: Mapping[str, Any]) -> Reply:
        found = [m for m in self._channels.get(str(given.get("channel", "")), []) if m["ts"] == given.get("ts")]
        if not found:
            return _refused("message_not_found" if given.get("channel") in self._channels else "channel_not_found")
        if found[0].get("bot_id") != self.bot:
            return _refused("cant_update_message")
        if wrong := problem(given):
            return _refused(wrong)
        found[0].update({key: given[key] for key in ("text", "blocks", "metadata") if given.get(key)})
        found[0]["edited"] = {"user": "UBOT", "ts": self._stamp()}
        return Reply(
            200,
            {"ok": True, "channel": given["channel"], "ts": given["ts"], "text": found[0]["text"], "message": found[0]},
        )

    def _history(self, given: Mapping[str, Any]) -> Reply:
        if given.get("channel") not in self._channels:
            return _refused("channel_not_found")
        oldest = float(given.get("oldest") or 0)
        found = [
            m
            for m in reversed(self._channels[str(given["channel"])])
            if "thread_ts" not in m and float(m["ts"]) > oldest
        ]
        return _page(found, given)

    def _replies(self, given: Mapping[str, Any]) -> Reply:
        found = [
            m
            for m in self._channels.get(str(given.get("channel", "")), [])
            if given.get("ts") in (m["ts"], m.get("thread_ts"))
        ]
        return _page(found, given) if found else _refused("thread_not_found")

    def _open(self, given: Mapping[str, Any]) -> Reply:
        made = self._triggers.pop(str(given.get("trigger_id", "")), None)
        if made is None:
            return _refused("invalid_trigger_id")
        if time.time() - made > 3:
            return _refused("expired_trigger_id")
        view = given.get("view")
        if (
            not isinstance(view, dict)
            or len(view.get("title", {}).get("text", "")) > 24
            or len(view.get("private_metadata", "")) > 3000
        ):
            return _refused("invalid_arguments")
        self.views.append(view)
        return Reply(200, {"ok": True, "view": {**view, "id": "V1"}})

    def _answered(self, request: Request) -> Reply:
        """A response URL works five times in half an hour."""
        left = self._urls.get(request.path, 0)
        if not left:
            return Reply(404, b"used_url\n")
        given = request.json()
        if not isinstance(given, dict) or (wrong := problem(given)):
            return Reply(400, (wrong if isinstance(given, dict) else "invalid_payload").encode())
        self._urls[request.path] = left - 1
        self.answers.append(given)
        return Reply(200, b"ok", {"Content-Type": "text/html"})

    def _wait(self, channel: str) -> int:
        if self._per_second is None:
            return 0
        now = time.monotonic()
        recent = [at for at in self._posted.get(channel, []) if now - at < self._burst / self._per_second]
        if len(recent) >= self._burst:
            return max(1, round(self._burst / self._per_second - (now - recent[0])))
        self._posted[channel] = [*recent, now]
        return 0

    def _stamp(self) -> str:
        self._last = max(self._last + 1, int(time.time() * 1_000_000))
        return f"{self._last // 1_000_000}.{self._last % 1_000_000:06d}"

    def _trigger(self) -> str:
        name = f"trigger.{self._stamp()}"
        self._triggers[name] = time.time()
        return name

    def _response_url(self) -> str:
        path = f"/response/{self._stamp()}"
        self._urls[path] = 5
        return self.url + path


def _refused(error: str) -> Reply:
    """Slack answers most errors with status 200."""
    return Reply(200, {"ok": False, "error": error})


def _page(found: list[dict[str, Any]], given: Mapping[str, Any]) -> Reply:
    begin, limit = int(given.get("cursor") or 0), min(int(given.get("limit") or 100), 999)
    wanted = str(given.get("include_all_metadata", "")).lower() in ("1", "true")
    shown = [
        m if wanted else {key: value for key, value in m.items() if key != "metadata"}
        for m in found[begin : begin + limit]
    ]
    after = begin + limit if begin + limit < len(found) else 0
    return Reply(
        200,
        {
            "ok": True,
            "messages": shown,
            "has_more": bool(after),
            "response_metadata": {"next_cursor": str(after or "")},
        },
    )


def _arguments(request: Request) -> dict[str, Any]:
    """Arguments as JSON, as a form whose structured values are JSON, or in the query."""
    if request.headers.get("content-type", "").startswith("application/json"):
        given = request.json()
        return given if isinstance(given, dict) else {}
    form = {name: values[-1] for name, values in parse_qs(request.body.decode("utf-8", "replace")).items()}
    merged: dict[str, Any] = {**request.query, **form}
    for key in ("blocks", "metadata", "view"):
        if isinstance(merged.get(key), str):
            merged[key] = json.loads(merged[key])
    return merged
