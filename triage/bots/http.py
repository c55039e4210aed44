"""Send one HTTP request with the standard library, so that CI needs no other package.

Redirects are not followed, because the token would go with them; certificates are checked; proxies come from the
environment.
"""

from __future__ import annotations

import http.client
import json
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from email.message import Message
from typing import Any

import triage
from triage.bots.interface import RetryLater, Undelivered, Unsure

MAX_BODY = 32 << 20
RATE_LIMIT_WAIT = 60.0  # seconds; what GitHub documents for a rate limit without a time


@dataclass(frozen=True, slots=True)
class Response:
    """Status, headers in lower case, and body."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """Parse the body as JSON. Raises RetryLater for other text, because it was cut or comes from a proxy."""
        try:
            return json.loads(self.body)
        except ValueError:
            raise RetryLater("the response is not JSON") from None


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *arguments: Any) -> None:
        return None


def send_request(
    method: str, url: str, *, headers: Mapping[str, str] = {}, body: bytes | None = None, timeout: float = 10.0
) -> Response:
    """Return the response, also with status 4xx.

    Raises RetryLater for a temporary failure (no connection, 429, 5xx), Undelivered for an invalid address.
    """
    if not url.startswith(("http://", "https://")):
        raise Undelivered(f"{url!r} is not a web address", hint="start it with https://")
    try:
        all_headers = {"User-Agent": f"triage/{triage.__version__}", **headers}
        request = urllib.request.Request(url, body, all_headers, method=method)
        with urllib.request.build_opener(_NoRedirect).open(request, timeout=timeout) as reply:
            return Response(reply.status, _lower_names(reply.headers), reply.read(MAX_BODY))
    except urllib.error.HTTPError as error:
        with error:
            response = Response(error.code, _lower_names(error.headers), error.read(MAX_BODY))
    except (OSError, http.client.HTTPException) as error:
        raise Unsure(f"no response: {getattr(error, 'reason', None) or error or type(error).__name__}") from None
    except ValueError as error:
        raise Undelivered(f"{url!r} is not a web address: {error}", hint="fix it in the settings") from None
    wait = read_retry_after(response.headers)
    if response.status == 403 and _is_rate_limited(response):
        raise RetryLater("status 403, too many requests", wait=wait or RATE_LIMIT_WAIT)
    if response.status == 429 or response.status >= 500:
        raise RetryLater(f"status {response.status}", wait=wait)
    return response


def _lower_names(headers: Message) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _is_rate_limited(response: Response) -> bool:
    """GitHub answers 403 where others answer 429, and only the message tells a secondary limit."""
    headers = response.headers
    return "retry-after" in headers or headers.get("x-ratelimit-remaining") == "0" or b"rate limit" in response.body


def read_retry_after(headers: Mapping[str, str]) -> float | None:
    """Return for how many seconds the server asks to wait, at most a day. Header names are in lower case."""
    after, reset = headers.get("retry-after", ""), headers.get("x-ratelimit-reset", "")
    if after.isdecimal():
        return min(float(after), 86_400.0)
    if headers.get("x-ratelimit-remaining") == "0" and reset.isdecimal():
        return min(max(float(reset) - time.time(), 1.0), 86_400.0)
    seconds = headers.get("ratelimit-reset", "")  # of the draft of IETF, which W&B follows: not a moment
    if headers.get("ratelimit-remaining") == "0" and seconds.isdecimal():
        return min(float(seconds), 86_400.0)
    return None
