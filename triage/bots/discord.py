"""Post to a channel of Discord as a bot, so that one message is visible whatever fails.

A webhook of Discord takes no key and lists no messages, so a request without an answer cannot be repeated safely. A bot
can look: each message has a mark in its footer, by which a repeated delivery finds it. For the first minutes, in which
a list may not have it yet, Discord itself makes no second message with the same `nonce`
(https://discord.com/developers/docs/resources/message#create-message).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

from triage.base.lazy_re import lazy_re
from triage.bots.apprise_client import ChannelMessage, neutralize
from triage.bots.http import send_request
from triage.bots.interface import RetryLater, Undelivered, Unsure

SCHEME = "discordbot://"
API = "https://discord.com/api/v10"
MAX_TITLE, MAX_TEXT = 256, 4096
MARK = 25  # the longest nonce
_ADDRESS = lazy_re(r"discordbot://([A-Za-z0-9._-]+)@(\d{1,20})")
_EPOCH = 1_420_070_400.0  # seconds; ids count milliseconds from here, above 22 other bits
_SKEW = 3600.0  # seconds by which Discord's clock may be behind
_PAGE, _MAX_PAGES = 100, 50
_RED = 0xCF222E


def post_once(url: str, message: ChannelMessage, *, since: float, may_exist: bool, timeout: float) -> str:
    """Post the message unless the channel has it; return its id.

    `may_exist`: an earlier try may have posted it, at the earliest at `since`. Raises RetryLater or Undelivered; no
    error contains the address.
    """
    address = _ADDRESS.fullmatch(url)
    if address is None:
        raise Undelivered(
            "the address of the channel is not read", hint="write discordbot://BOT_TOKEN@CHANNEL_ID in the settings"
        )
    token, channel = address.groups()
    client = _Client(token, channel, timeout)
    mark = hashlib.sha256(f"{message.key}\0{message.title}".encode()).hexdigest()[:MARK]
    return (client.find(mark, since) if may_exist else None) or client.post(message, mark)


class _Client:
    """One channel, as one bot sees it."""

    def __init__(self, token: str, channel: str, timeout: float) -> None:
        self._token, self._channel, self._timeout = token, channel, timeout

    def find(self, mark: str, since: float) -> str | None:
        """Return the id of the message with the mark."""
        for message in self._list_messages(since):
            if any((embed.get("footer") or {}).get("text") == mark for embed in message.get("embeds") or ()):
                return str(message["id"])
        return None

    def _list_messages(self, since: float) -> Iterator[dict[str, Any]]:
        after = int(max(since - _SKEW - _EPOCH, 0.0) * 1000) << 22
        for _ in range(_MAX_PAGES):
            page = self._request("GET", f"?limit={_PAGE}&after={after}")
            yield from page
            if len(page) < _PAGE:
                return
            after = max(int(message["id"]) for message in page)

    def post(self, message: ChannelMessage, mark: str) -> str:
        """Post the message; return its id, or that of the one with the same mark in the last minutes."""
        embed = {
            "title": neutralize(message.title)[:MAX_TITLE],
            "description": neutralize(message.body)[:MAX_TEXT],
            "color": _RED,
            "footer": {"text": mark},
        }
        content = {"embeds": [embed], "nonce": mark, "enforce_nonce": True, "allowed_mentions": {"parse": []}}
        return str(self._request("POST", "", json.dumps(content).encode())["id"])

    def _request(self, method: str, query: str, body: bytes | None = None) -> Any:
        headers = {"Authorization": f"Bot {self._token}", "Content-Type": "application/json"}
        url = f"{API}/channels/{self._channel}/messages{query}"
        try:
            response = send_request(method, url, headers=headers, body=body, timeout=self._timeout)
            if response.status == 200:
                return response.json()
        except RetryLater as error:
            raise Unsure(error.message, wait=error.wait) from None
        raise Undelivered(
            f"Discord answered {response.status}",
            hint="check token and channel, and that the bot may view the channel, read its history, send messages and "
            "embed links there; then run `triage outbox retry`",
        )
