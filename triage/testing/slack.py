"""A local server that answers like Slack's Web API for bots and enforces the documented limits.

    with SlackServer() as slack:
        slack.add_channel("C1")
        client = WebClient(token=slack.token, base_url=f"{slack.url}/api/")
        client.chat_postMessage(channel="C1", text="hello")
        assert [message["text"] for message in slack.visible("C1")] == ["hello"]

Methods: auth.test, chat.postMessage, chat.update, chat.postEphemeral, conversations.history, conversations.replies,
views.open, and response URLs. `click`, `submit` and `slash` send what Slack sends when a person does that, signed with
`signing_secret`.

`find_problem` checks messages against the limits of Slack's Block Kit, for the block types that bots post.
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

from triage.testing.local import LocalServer, Reply, Request

MAX_BLOCKS = 50
MAX_TEXT = 40_000
MAX_ALL_TEXT = 13_000  # measured by others: slightly above it Slack answers msg_blocks_too_long
TOO_LONG = "msg_blocks_too_long"
INVALID = "invalid_blocks"


def find_problem(arguments: Mapping[str, Any]) -> str:
    """Return the error that Slack would answer to a message with these arguments, or an empty string."""
    text, blocks, metadata = arguments.get("text"), arguments.get("blocks"), arguments.get("metadata")
    if not text and not blocks:
        return "no_text"
    if isinstance(text, str) and len(text) > MAX_TEXT:
        return "msg_too_long"
    if metadata and not (
        isinstance(metadata, dict) and metadata.get("event_type") and isinstance(metadata.get("event_payload"), dict)
    ):
        return "invalid_metadata_format"
    if not blocks:
        return ""
    if not isinstance(blocks, list) or len(blocks) > MAX_BLOCKS:
        return INVALID
    block_ids = [block.get("block_id") for block in blocks if isinstance(block, dict) and block.get("block_id")]
    if len(set(block_ids)) < len(block_ids) or not all(
        isinstance(block, dict) and _is_valid_block(block) for block in blocks
    ):
        return INVALID
    return TOO_LONG if sum(map(_text_length, blocks)) > MAX_ALL_TEXT else ""


def _is_valid_block(block: Mapping[str, Any]) -> bool:
    if len(str(block.get("block_id", ""))) > 255:
        return False
    kind = block.get("type")
    if kind == "section":
        fields = block.get("fields", [])
        texts = ([block["text"]] if "text" in block else []) + fields
        return (
            bool(texts)
            and len(fields) <= 10
            and all(_is_valid_text(item, 3000 if item is block.get("text") else 2000) for item in texts)
        )
    if kind == "header":
        return _is_valid_text(block.get("text"), 150, plain=True)
    if kind == "context":
        elements = block.get("elements", [])
        return 0 < len(elements) <= 10 and all(_is_valid_text(item, 3000) for item in elements)
    if kind == "actions":
        elements = block.get("elements", [])
        return (
            0 < len(elements) <= 25
            and all(map(_is_valid_button, elements))
            and len({item["action_id"] for item in elements}) == len(elements)
        )
    if kind == "markdown":
        return 0 < len(block.get("text", "")) <= 12_000
    return kind == "divider"


def _is_valid_text(item: Any, limit: int, plain: bool = False) -> bool:
    if not isinstance(item, dict) or item.get("type") not in (("plain_text",) if plain else ("plain_text", "mrkdwn")):
        return False
    allowed = {"type", "text", "emoji" if item["type"] == "plain_text" else "verbatim"}
    return set(item) <= allowed and isinstance(item.get("text"), str) and 0 < len(item["text"]) <= limit


def _is_valid_button(item: Any) -> bool:
    return (
        isinstance(item, dict)
        and item.get("type") == "button"
        and _is_valid_text(item.get("text"), 75, plain=True)
        and 0 < len(item.get("action_id", "")) <= 255
        and len(item.get("value", "")) <= 2000
        and len(item.get("url", "")) <= 3000
        and item.get("style", "primary") in ("primary", "danger")
    )


def _text_length(item: Any) -> int:
    if isinstance(item, dict):
        return sum(
            len(value) if key == "text" and isinstance(value, str) else _text_length(value)
            for key, value in item.items()
        )
    return sum(map(_text_length, item)) if isinstance(item, list) else 0


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """The response of the bot to Slack, and its time. Slack shows the person an error after three seconds."""

    status: int
    body: bytes
    seconds: float


class SlackServer(LocalServer):
    """One workspace with one bot. `visible` returns what people see in a channel."""

    def __init__(self, *, per_second: float | None = None, burst: int = 1) -> None:
        super().__init__()
        self.token = "xoxb-local-token"
        self.signing_secret = "8f742231b10e8888abcd99yyyzzz85a5"
        self.bot = "B1"
        self.views: list[dict[str, Any]] = []
        self.answers: list[dict[str, Any]] = []  # bodies sent to response URLs
        self._per_second = per_second
        self._burst = burst
        self._posted: dict[str, list[float]] = {}
        self._channels: dict[str, list[dict[str, Any]]] = {}
        self._last = 0
        self._triggers: dict[str, float] = {}
        self._urls: dict[str, int] = {}

    def add_channel(self, identifier: str) -> str:
        """Add a channel with the bot in it."""
        self._channels.setdefault(identifier, [])
        return identifier

    def visible(self, channel: str, thread: str | None = None) -> list[dict[str, Any]]:
        """Return the messages of a channel, or the replies of a thread, in their order."""
        with self.lock:
            return [
                dict(m)
                for m in self._channels[channel]
                if (m.get("thread_ts") == thread if thread else "thread_ts" not in m)
            ]

    def post_as_user(self, channel: str, text: str) -> None:
        """Add a message of a person."""
        self._channels[channel].append({"type": "message", "user": "U1", "ts": self._new_timestamp(), "text": text})

    # Requests that Slack sends when a person does something

    def click(self, url: str, channel: str, ts: str, action: str, *, user: str = "U1") -> Acknowledgement:
        """Press the button `action` (its action_id) of a message as a person."""
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
            "trigger_id": self._new_trigger(),
            "response_url": self._new_response_url(),
            "channel": {"id": channel},
            "message": message,
            "actions": [
                {
                    "action_id": action,
                    "value": buttons[0].get("value"),
                    "type": "button",
                    "action_ts": self._new_timestamp(),
                }
            ],
        }
        return self.send(url, urlencode({"payload": json.dumps(payload)}).encode())

    def submit(
        self, url: str, view: Mapping[str, Any], values: Mapping[str, str], *, user: str = "U1"
    ) -> Acknowledgement:
        """Fill in an opened form and send it as a person; `values` by action_id."""
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

    def slash(self, url: str, command: str, text: str, *, user: str = "U1", channel: str = "C1") -> Acknowledgement:
        """Write `/command text` as a person."""
        form = {
            "command": command,
            "text": text,
            "user_id": user,
            "user_name": user.lower(),
            "channel_id": channel,
            "trigger_id": self._new_trigger(),
            "response_url": self._new_response_url(),
        }
        return self.send(url, urlencode(form).encode())

    def send(
        self, url: str, body: bytes, *, headers: Mapping[str, str] = {}, at: float | None = None
    ) -> Acknowledgement:
        """Send a body to the bot as Slack does; `headers` replace the right ones, `at` is the time of the signature."""
        timestamp = str(int(time.time() if at is None else at))
        signed = {
            "Content-Type": "application/x-www-form-urlencoded",
            "X-Slack-Request-Timestamp": timestamp,
            "X-Slack-Signature": self.signature(timestamp, body),
        }
        sent = {name: value for name, value in {**signed, **headers}.items() if value}
        began = time.monotonic()
        try:
            with urllib.request.urlopen(urllib.request.Request(url, body, sent), timeout=20) as reply:
                return Acknowledgement(reply.status, reply.read(), time.monotonic() - began)
        except urllib.error.HTTPError as error:
            with error:
                return Acknowledgement(error.code, error.read(), time.monotonic() - began)

    def signature(self, timestamp: str, body: bytes) -> str:
        """Return the signature of a request, as Slack documents it."""
        return (
            "v0="
            + hmac.new(self.signing_secret.encode(), f"v0:{timestamp}:".encode() + body, hashlib.sha256).hexdigest()
        )

    # Requests of the bot

    def request_name(self, request: Request) -> str:
        """Return the method of the Web API, or the path."""
        return request.path.rpartition("/")[2] if request.path.startswith("/api/") else request.path

    def rate_limit_reply(self, seconds: int) -> Reply:
        """Return the response of Slack to too many requests."""
        return Reply(429, {"ok": False, "error": "ratelimited"}, {"Retry-After": str(seconds)})

    def handle(self, request: Request) -> Reply:
        """Answer a request like Slack."""
        if request.path.startswith("/response/"):
            return self._handle_answer(request)
        if not request.path.startswith("/api/"):
            return Reply(404, b"no such page\n")
        arguments = _read_arguments(request)
        if request.headers.get("authorization") != f"Bearer {self.token}":
            return _refuse("invalid_auth" if request.headers.get("authorization") else "not_authed")
        method = {
            "auth.test": self._auth_test,
            "chat.postMessage": self._post,
            "chat.postEphemeral": self._post_ephemeral,
            "chat.update": self._update,
            "conversations.history": self._history,
            "conversations.replies": self._replies,
            "views.open": self._open,
        }.get(self.request_name(request))
        return method(arguments) if method is not None else _refuse("unknown_method")

    def _auth_test(self, arguments: Mapping[str, Any]) -> Reply:
        return Reply(
            200, {"ok": True, "url": self.url, "team": "local", "user": "triage", "user_id": "UBOT", "bot_id": self.bot}
        )

    def _post(self, arguments: Mapping[str, Any]) -> Reply:
        channel = str(arguments.get("channel", ""))
        if channel not in self._channels:
            return _refuse("channel_not_found")
        if error := find_problem(arguments):
            return _refuse(error)
        if wait := self._seconds_to_wait(channel):
            return self.rate_limit_reply(wait)
        thread = arguments.get("thread_ts")
        if thread and not any(m["ts"] == thread for m in self._channels[channel]):
            return _refuse("thread_not_found")
        message: dict[str, Any] = {
            "type": "message",
            "bot_id": self.bot,
            "ts": self._new_timestamp(),
            "text": arguments.get("text", ""),
        }
        for key in ("blocks", "metadata", "thread_ts"):
            if arguments.get(key):
                message[key] = arguments[key]
        self._channels[channel].append(message)
        return Reply(200, {"ok": True, "channel": channel, "ts": message["ts"], "message": message})

    def _post_ephemeral(self, arguments: Mapping[str, Any]) -> Reply:
        if error := find_problem(arguments):
            return _refuse(error)
        return Reply(200, {"ok": True, "message_ts": self._new_timestamp()})

    def _update(self, arguments: Mapping[str, Any]) -> Reply:
        message = next(
            (m for m in self._channels.get(str(arguments.get("channel", "")), []) if m["ts"] == arguments.get("ts")),
            None,
        )
        if message is None:
            return _refuse("message_not_found" if arguments.get("channel") in self._channels else "channel_not_found")
        if message.get("bot_id") != self.bot:
            return _refuse("cant_update_message")
        if error := find_problem(arguments):
            return _refuse(error)
        message.update({key: arguments[key] for key in ("text", "blocks", "metadata") if arguments.get(key)})
        message["edited"] = {"user": "UBOT", "ts": self._new_timestamp()}
        body = {"ok": True, "channel": arguments["channel"], "ts": arguments["ts"], "text": message["text"]}
        return Reply(200, {**body, "message": message})

    def _history(self, arguments: Mapping[str, Any]) -> Reply:
        if arguments.get("channel") not in self._channels:
            return _refuse("channel_not_found")
        oldest = float(arguments.get("oldest") or 0)
        messages = [
            m
            for m in reversed(self._channels[str(arguments["channel"])])
            if "thread_ts" not in m and float(m["ts"]) > oldest
        ]
        return _page(messages, arguments)

    def _replies(self, arguments: Mapping[str, Any]) -> Reply:
        messages = [
            m
            for m in self._channels.get(str(arguments.get("channel", "")), [])
            if arguments.get("ts") in (m["ts"], m.get("thread_ts"))
        ]
        return _page(messages, arguments) if messages else _refuse("thread_not_found")

    def _open(self, arguments: Mapping[str, Any]) -> Reply:
        triggered_at = self._triggers.pop(str(arguments.get("trigger_id", "")), None)
        if triggered_at is None:
            return _refuse("invalid_trigger_id")
        if time.time() - triggered_at > 3:
            return _refuse("expired_trigger_id")
        view = arguments.get("view")
        if (
            not isinstance(view, dict)
            or len(view.get("title", {}).get("text", "")) > 24
            or len(view.get("private_metadata", "")) > 3000
        ):
            return _refuse("invalid_arguments")
        self.views.append(view)
        return Reply(200, {"ok": True, "view": {**view, "id": "V1"}})

    def _handle_answer(self, request: Request) -> Reply:
        """Take an answer to a response URL; each URL works five times."""
        left = self._urls.get(request.path, 0)
        if not left:
            return Reply(404, b"used_url\n")
        answer = request.json()
        if not isinstance(answer, dict):
            return Reply(400, b"invalid_payload")
        if error := find_problem(answer):
            return Reply(400, error.encode())
        self._urls[request.path] = left - 1
        self.answers.append(answer)
        return Reply(200, b"ok", {"Content-Type": "text/html"})

    def _seconds_to_wait(self, channel: str) -> int:
        if self._per_second is None:
            return 0
        now = time.monotonic()
        recent = [at for at in self._posted.get(channel, []) if now - at < self._burst / self._per_second]
        if len(recent) >= self._burst:
            return max(1, round(self._burst / self._per_second - (now - recent[0])))
        self._posted[channel] = [*recent, now]
        return 0

    def _new_timestamp(self) -> str:
        self._last = max(self._last + 1, int(time.time() * 1_000_000))
        return f"{self._last // 1_000_000}.{self._last % 1_000_000:06d}"

    def _new_trigger(self) -> str:
        name = f"trigger.{self._new_timestamp()}"
        self._triggers[name] = time.time()
        return name

    def _new_response_url(self) -> str:
        path = f"/response/{self._new_timestamp()}"
        self._urls[path] = 5
        return self.url + path


def _refuse(error: str) -> Reply:
    """Return an error; Slack answers most errors with status 200."""
    return Reply(200, {"ok": False, "error": error})


def _page(messages: list[dict[str, Any]], arguments: Mapping[str, Any]) -> Reply:
    begin, limit = int(arguments.get("cursor") or 0), min(int(arguments.get("limit") or 100), 999)
    with_metadata = str(arguments.get("include_all_metadata", "")).lower() in ("1", "true")
    shown = [
        m if with_metadata else {key: value for key, value in m.items() if key != "metadata"}
        for m in messages[begin : begin + limit]
    ]
    after = begin + limit if begin + limit < len(messages) else 0
    return Reply(
        200,
        {
            "ok": True,
            "messages": shown,
            "has_more": bool(after),
            "response_metadata": {"next_cursor": str(after or "")},
        },
    )


def _read_arguments(request: Request) -> dict[str, Any]:
    """Return the arguments: JSON, a form whose structured values are JSON, or the query."""
    if request.headers.get("content-type", "").startswith("application/json"):
        content = request.json()
        return content if isinstance(content, dict) else {}
    form = {name: values[-1] for name, values in parse_qs(request.body.decode("utf-8", "replace")).items()}
    merged: dict[str, Any] = {**request.query, **form}
    for key in ("blocks", "metadata", "view"):
        if isinstance(merged.get(key), str):
            merged[key] = json.loads(merged[key])
    return merged
