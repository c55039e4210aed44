"""Slack's Web API through slack-sdk, with its errors in the words of this tree.

Which of the SDK's retry handlers are right depends on the call. Reading, and editing a message to what it shall say,
may be repeated: all
three. Posting may not: after a broken connection or a 5xx nobody knows whether the message is there, so the outbox
tries again and looks
first. A 429 is not waited for but put off, so that one channel does not hold up the others.
"""

from __future__ import annotations

import http.client
import re
from collections.abc import Iterator
from typing import Any, Literal

from triage.base.errors import OptionError
from triage.bots.interface import Later, Undelivered
from triage.settings.slack import Slack

PASSING = {
    "ratelimited",
    "rate_limited",
    "fatal_error",
    "internal_error",
    "service_unavailable",
    "request_timeout",
    "team_added_to_org",
}
HINTS = {
    "channel_not_found": "use the id of a channel (C…) into which the bot was invited",
    "not_in_channel": "invite the bot: /invite in that channel",
    "is_archived": "the channel is archived; name another in the route",
    "invalid_auth": "the token is wrong; set TRIAGE_SLACK_TOKEN",
    "not_authed": "set TRIAGE_SLACK_TOKEN",
    "token_revoked": "install the app again and set its new token",
    "account_inactive": "the bot was removed; install it again",
    "missing_scope": "the app needs the scopes that docs/slack.md lists; install it again",
}
PAGES = 20


class Client:
    """The few calls that triage makes. Each raises Undelivered or Later."""

    def __init__(self, settings: Slack) -> None:
        try:
            from slack_sdk import WebClient
            from slack_sdk.http_retry.builtin_handlers import (
                ConnectionErrorRetryHandler,
                RateLimitErrorRetryHandler,
                ServerErrorRetryHandler,
            )
            from slack_sdk.http_retry.builtin_interval_calculators import FixedValueRetryIntervalCalculator
        except ModuleNotFoundError as error:
            raise OptionError(f"this needs the package {error.name}", hint="pip install 'triage-kb[slack]'") from None

        def client(*handlers: Any) -> Any:
            token = settings.token.get_secret_value()
            base = settings.api_url.rstrip("/") + "/"
            return WebClient(
                token=token, base_url=base, timeout=max(1, round(settings.timeout)), retry_handlers=list(handlers)
            )

        soon = FixedValueRetryIntervalCalculator(fixed_internal=0.2)  # the long pauses are the outbox's
        again = [ConnectionErrorRetryHandler(1, soon), ServerErrorRetryHandler(1, soon)]
        self._posting = client()
        self._editing = client(*again)
        self._reading = client(*again, RateLimitErrorRetryHandler(1))

    def post(
        self, channel: str, text: str, blocks: list[Any], metadata: dict[str, Any], thread: str | None = None
    ) -> str:
        """A new message, or a reply in a thread; its `ts`."""
        more = {"thread_ts": thread} if thread else {}
        still = {"unfurl_links": False, "unfurl_media": False, "link_names": False, "parse": "none"}
        answer = self._call(
            "posting", "chat_postMessage", channel=channel, text=text, blocks=blocks, metadata=metadata, **still, **more
        )
        return str(answer["ts"])

    def edit(self, channel: str, ts: str, text: str, blocks: list[Any], metadata: dict[str, Any]) -> None:
        """Make a message say something else."""
        self._call(
            "editing",
            "chat_update",
            channel=channel,
            ts=ts,
            text=text,
            blocks=blocks,
            metadata=metadata,
            link_names=False,
            parse="none",
        )

    def messages(self, channel: str, oldest: float, thread: str | None = None) -> Iterator[dict[str, Any]]:
        """The messages of a channel since then, the newest first, or those of a thread, with their metadata."""
        cursor = ""
        for _ in range(PAGES):
            asked: dict[str, Any] = {
                "channel": channel,
                "limit": 200,
                "include_all_metadata": True,
                "oldest": f"{oldest:.6f}",
            }
            if thread:
                asked["ts"] = thread
            if cursor:
                asked["cursor"] = cursor
            answer = self._call("reading", "conversations_replies" if thread else "conversations_history", **asked)
            yield from answer.get("messages") or []
            cursor = (answer.get("response_metadata") or {}).get("next_cursor") or ""
            if not cursor:
                return
        raise Later("the channel has too many messages to look through", wait=600)

    def open(self, trigger: str, view: dict[str, Any]) -> None:
        """Show a modal."""
        self._call("posting", "views_open", trigger_id=trigger, view=view)

    def _call(self, how: Literal["posting", "editing", "reading"], method: str, **arguments: Any) -> Any:
        from slack_sdk.errors import SlackApiError, SlackClientError

        try:
            return getattr(getattr(self, f"_{how}"), method)(**arguments)
        except SlackApiError as error:
            raise _told(error) from None
        except (SlackClientError, OSError, http.client.HTTPException) as error:
            raise Later(
                f"Slack did not answer: {getattr(error, 'reason', None) or error or type(error).__name__}"
            ) from None


def _told(error: Any) -> Undelivered:
    response = error.response
    said = str(response.get("error", "")) if hasattr(response, "get") else ""
    status = getattr(response, "status_code", 0)
    headers = {str(name).lower(): value for name, value in (getattr(response, "headers", None) or {}).items()}
    after = str(headers.get("retry-after", ""))
    if status == 429 or said in PASSING or status >= 500 or not re.fullmatch(r"[a-z_]{2,80}", said):
        return Later(f"Slack answered {status} {said}"[:200], wait=float(after) if after.isdecimal() else None)
    return Undelivered(
        f"Slack answered {said}",
        hint=HINTS.get(said, "docs/slack.md lists what the app needs; then `triage outbox retry`"),
    )
