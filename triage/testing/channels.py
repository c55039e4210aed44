"""Local servers that answer like the receivers behind apprise, with their documented limits.

with ChannelServer() as receiver:
    …redirect requests for Discord, Teams, PagerDuty and Opsgenie to receiver.url…
    assert len(receiver.visible) == 1
with MailServer() as mail:
    …smtp to 127.0.0.1, mail.port…
    assert len(mail.visible) == 1
"""

from __future__ import annotations

import contextlib
import re
import socketserver
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from email import message_from_string
from types import TracebackType
from typing import Any, Self

from triage.testing.local import LocalServer, Reply, Request

_BOT = r"/api/v10/channels/\d+/messages"
_SERVICES = (
    ("discord bot", _BOT),
    ("discord", r"/api/webhooks/\d+/[\w-]+"),
    ("pagerduty", r"/v2/enqueue"),
    ("opsgenie", r"/v2/alerts"),
    ("teams", r"/workflows/[^/]+/triggers/manual/paths/invoke"),
)
MAX_CARD = 28_000  # bytes of a message to Teams
_DISCORD_EPOCH = 1_420_070_400.0  # seconds


@dataclass(frozen=True, slots=True)
class VisibleMessage:
    """What people see: the service and the content as it was sent."""

    service: str
    content: Mapping[str, Any]


class ChannelServer(LocalServer):
    """Discord and Teams show each message, PagerDuty and Opsgenie fold those with an equal key.

    A bot of Discord lists its messages, and while `keeps_nonces` a second message with a `nonce` is the first one.
    """

    def __init__(self) -> None:
        super().__init__()
        self.keeps_nonces = True
        self._messages: dict[str, VisibleMessage] = {}

    @property
    def visible(self) -> list[VisibleMessage]:
        """Return the visible messages."""
        return list(self._messages.values())

    def request_name(self, request: Request) -> str:
        """Return the service of a request."""
        return next((name for name, path in _SERVICES if re.fullmatch(path, request.path)), "")

    def handle(self, request: Request) -> Reply:
        """Answer a request like its service."""
        service, content = self.request_name(request), request.json()
        if service == "discord bot" and request.method == "GET":
            return self._list_messages(int(request.query["after"]), int(request.query["limit"]))
        if not service or not isinstance(content, dict):
            return Reply(404, {"message": "Not Found"})
        problem = _find_problem(service, content, len(request.body))
        if problem:
            return Reply(400, {"message": problem})
        if service == "discord bot":
            return self._post_as_bot(content)
        key = content.get("dedup_key") or content.get("alias") or f"message {len(self._messages)}"
        self._messages[key] = VisibleMessage(service, content)
        if service == "pagerduty":
            return Reply(202, {"status": "success", "message": "Event processed", "dedup_key": key})
        if service == "opsgenie":
            return Reply(202, {"result": "Request will be processed", "took": 0.1, "requestId": "43a29c5c"})
        return Reply(204 if service == "discord" else 202)

    def _post_as_bot(self, content: Mapping[str, Any]) -> Reply:
        nonce = content.get("nonce") if self.keeps_nonces and content.get("enforce_nonce") else None
        for name, message in self._messages.items():
            if nonce and message.content.get("nonce") == nonce:
                return Reply(200, {"id": name})
        name = str((int((time.time() - _DISCORD_EPOCH) * 1000) << 22) + len(self._messages))
        self._messages[name] = VisibleMessage("discord bot", content)
        return Reply(200, {"id": name})

    def _list_messages(self, after: int, limit: int) -> Reply:
        if not 1 <= limit <= 100:
            return Reply(400, {"message": "limit is not between 1 and 100"})
        names = sorted((name for name in self._messages if int(name) > after), key=int)[:limit]
        return Reply(200, [{"id": name, **self._messages[name].content} for name in reversed(names)])


def _find_problem(service: str, content: Mapping[str, Any], size: int) -> str:
    """Return why the service refuses the content, or nothing."""
    limits = {
        "discord": [("content", 2000)],
        "discord bot": [("content", 2000), ("nonce", 25)],
        "opsgenie": [("message", 130), ("description", 15_000), ("alias", 512)],
        "pagerduty": [("dedup_key", 255)],
    }
    for name, longest in limits.get(service, []):
        if len(str(content.get(name) or "")) > longest:
            return f"{name} has more than {longest} characters"
    if service == "pagerduty" and len(content["payload"]["summary"]) > 1024:
        return "summary has more than 1024 characters"
    if service.startswith("discord") and not (content.get("content") or content.get("embeds")):
        return "Cannot send an empty message"
    for embed in content.get("embeds") or () if service == "discord bot" else ():
        if len(embed.get("title", "")) > 256 or len(embed.get("description", "")) > 4096:
            return "an embed is too long"
    return "RequestEntityTooLarge" if service == "teams" and size > MAX_CARD else ""


class MailServer:
    """An SMTP server; `messages` holds the accepted mails. `failures` are taken one by one, at the end of a mail.

    `visible` are those that a mailbox shows where mails with the same Message-ID are one. `451` refuses a mail for now,
    `cut` closes the connection before it is accepted, `cut after` after it, without a reply.
    """

    def __init__(self) -> None:
        self.messages: list[str] = []
        self.failures: list[str] = []
        self._server: socketserver.ThreadingTCPServer | None = None

    @property
    def visible(self) -> list[str]:
        """The mails, without those whose Message-ID an earlier one has."""
        return list({message_from_string(mail)["Message-ID"]: mail for mail in reversed(self.messages)}.values())

    @property
    def port(self) -> int:
        """The port that is listened on."""
        assert self._server is not None, "the server runs only inside `with`"
        return int(self._server.server_address[1])

    def __enter__(self) -> Self:
        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), _build_handler(self))
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.shutdown()
        self._server.server_close()


def _build_handler(server: MailServer) -> type[socketserver.StreamRequestHandler]:
    class Handler(socketserver.StreamRequestHandler):
        timeout = 10

        def handle(self) -> None:
            with contextlib.suppress(OSError):
                self._respond("220 local ESMTP")
                while line := self.rfile.readline():
                    if not self._handle_command(line.decode().strip().upper()):
                        return

        def _handle_command(self, command: str) -> bool:
            """Answer one command; return whether the connection stays open."""
            if command == "QUIT":
                self._respond("221 bye")
                return False
            if command != "DATA":
                self._respond("250 ok")
                return True
            self._respond("354 go on")
            lines = list(iter(lambda: self.rfile.readline().decode(), ".\r\n"))
            failure = server.failures.pop(0) if server.failures else ""
            if failure == "cut":
                return False
            if failure == "451":
                self._respond("451 4.7.1 too many messages, try again later")
                return True
            server.messages.append("".join(lines))
            if failure == "cut after":
                return False
            self._respond("250 queued")
            return True

        def _respond(self, text: str) -> None:
            self.wfile.write(text.encode() + b"\r\n")

    return Handler
