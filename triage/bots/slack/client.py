"""Call Slack's Web API through slack-sdk, and turn its errors into errors of the bots.

Reading and editing may be repeated, so they use the retry handlers of the SDK. Posting may not: after a broken
connection or a 5xx nobody knows whether the message exists, so the outbox retries and looks for it first. A 429 is put
off instead of waited for, so that one channel does not delay the others.
"""

from __future__ import annotations

import http.client
import re
from collections.abc import Iterator
from typing import Any, Literal

from triage.base.errors import OptionError
from triage.bots.interface import RetryLater, Undelivered
from triage.settings.notifications import SlackSettings

TEMPORARY_ERRORS = {
    "ratelimited",
    "rate_limited",
    "fatal_error",
    "internal_error",
    "service_unavailable",
    "request_timeout",
    "team_added_to_org",
}
HINTS = {
    "channel_not_found": "use the id (C…) of a channel that the bot was invited to",
    "not_in_channel": "invite the bot: /invite in that channel",
    "is_archived": "the channel is archived; use another one in the route",
    "invalid_auth": "the token is wrong; set TRIAGE_SLACK_TOKEN",
    "not_authed": "set TRIAGE_SLACK_TOKEN",
    "token_revoked": "install the app again and set its new token",
    "account_inactive": "the bot was removed; install it again",
    "missing_scope": "the app needs the scopes that docs/slack.md lists; install it again",
}
MAX_PAGES = 20


class Client:
    """The calls that triage makes. Each raises Undelivered or RetryLater."""

    def __init__(self, settings: SlackSettings) -> None:
        try:
            from slack_sdk import WebClient
            from slack_sdk.http_retry.builtin_handlers import (
                ConnectionErrorRetryHandler,
                RateLimitErrorRetryHandler,
                ServerErrorRetryHandler,
            )
            from slack_sdk.http_retry.builtin_interval_calculators import FixedValueRetryIntervalCalculator
        except ModuleNotFoundError as error:
            raise OptionError(
                f"the package {error.name} is not installed", hint="pip install 'triage-kb[slack]'"
            ) from None

        def client(*handlers: Any) -> Any:
            token = settings.token.get_secret_value()
            base = settings.api_url.rstrip("/") + "/"
            return WebClient(
                token=token, base_url=base, timeout=max(1, round(settings.timeout)), retry_handlers=list(handlers)
            )

        interval = FixedValueRetryIntervalCalculator(fixed_internal=0.2)  # the outbox makes the long pauses
        retries = [ConnectionErrorRetryHandler(1, interval), ServerErrorRetryHandler(1, interval)]
        self._posting = client()
        self._editing = client(*retries)
        self._reading = client(*retries, RateLimitErrorRetryHandler(1))

    def post(
        self, channel: str, text: str, blocks: list[Any], metadata: dict[str, Any], thread: str | None = None
    ) -> str:
        """Post a message, or a reply in a thread; return its `ts`."""
        in_thread = {"thread_ts": thread} if thread else {}
        plain = {"unfurl_links": False, "unfurl_media": False, "link_names": False, "parse": "none"}
        answer = self._call(
            "posting",
            "chat_postMessage",
            channel=channel,
            text=text,
            blocks=blocks,
            metadata=metadata,
            **plain,
            **in_thread,
        )
        return str(answer["ts"])

    def edit(self, channel: str, ts: str, text: str, blocks: list[Any], metadata: dict[str, Any]) -> None:
        """Replace the content of a message."""
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
        """Yield the messages of a channel or a thread since a time, the newest first, with their metadata."""
        cursor = ""
        for _ in range(MAX_PAGES):
            arguments: dict[str, Any] = {
                "channel": channel,
                "limit": 200,
                "include_all_metadata": True,
                "oldest": f"{oldest:.6f}",
            }
            if thread:
                arguments["ts"] = thread
            if cursor:
                arguments["cursor"] = cursor
            answer = self._call("reading", "conversations_replies" if thread else "conversations_history", **arguments)
            yield from answer.get("messages") or []
            cursor = (answer.get("response_metadata") or {}).get("next_cursor") or ""
            if not cursor:
                return
        raise RetryLater("the channel has too many messages to search", wait=600)

    def open(self, trigger: str, view: dict[str, Any]) -> None:
        """Open a form."""
        self._call("posting", "views_open", trigger_id=trigger, view=view)

    def _call(self, mode: Literal["posting", "editing", "reading"], method: str, **arguments: Any) -> Any:
        from slack_sdk.errors import SlackApiError, SlackClientError

        try:
            return getattr(getattr(self, f"_{mode}"), method)(**arguments)
        except SlackApiError as error:
            raise _to_delivery_error(error) from None
        except (SlackClientError, OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", None) or error or type(error).__name__
            raise RetryLater(f"Slack did not answer: {reason}") from None


def _to_delivery_error(error: Any) -> Undelivered:
    response = error.response
    code = str(response.get("error", "")) if hasattr(response, "get") else ""
    status = getattr(response, "status_code", 0)
    headers = {str(name).lower(): value for name, value in (getattr(response, "headers", None) or {}).items()}
    after = str(headers.get("retry-after", ""))
    if status == 429 or code in TEMPORARY_ERRORS or status >= 500 or not re.fullmatch(r"[a-z_]{2,80}", code):
        return RetryLater(f"Slack answered {status} {code}"[:200], wait=float(after) if after.isdecimal() else None)
    hint = HINTS.get(code, "docs/slack.md lists what the app needs; then run `triage outbox retry`")
    return Undelivered(f"Slack answered {code}", hint=hint)
