"""One HTTP call, by the standard library: GitHub, GitLab and webhooks need no more, and CI installs nothing for them.

Redirects are not followed, for the token would go with them; certificates are checked; proxies are those of the
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
from typing import Any

import triage
from triage.bots.interface import Later, Undelivered

MOST = 32 << 20


@dataclass(frozen=True, slots=True)
class Answer:
    """Status, headers in lower case, and body."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """The body as JSON. Raises Later when it is none, for then it was cut or came from something in between."""
        try:
            return json.loads(self.body)
        except ValueError:
            raise Later("the answer is no JSON") from None


class _Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *arguments: Any) -> None:
        return None


def call(
    method: str, url: str, *, headers: Mapping[str, str] = {}, body: bytes | None = None, timeout: float = 10.0
) -> Answer:
    """The answer, also of status 4xx. Raises Later for what may pass (no connection, 429, 5xx), Undelivered for an
    address that is none.
    """
    if not url.startswith(("http://", "https://")):
        raise Undelivered(f"{url!r} is no web address", hint="write it with https://")
    try:
        request = urllib.request.Request(
            url, body, {"User-Agent": f"triage/{triage.__version__}", **headers}, method=method
        )
        with urllib.request.build_opener(_Stay).open(request, timeout=timeout) as reply:
            return Answer(
                reply.status, {name.lower(): value for name, value in reply.headers.items()}, reply.read(MOST)
            )
    except urllib.error.HTTPError as error:
        with error:
            named = {name.lower(): value for name, value in error.headers.items()}
            answer = Answer(error.code, named, error.read(MOST))
    except (OSError, http.client.HTTPException) as error:
        raise Later(f"no answer: {getattr(error, 'reason', None) or error or type(error).__name__}") from None
    except ValueError as error:
        raise Undelivered(f"{url!r} is no web address: {error}", hint="mend it in the settings") from None
    if answer.status == 429 or answer.status >= 500 or (answer.status == 403 and _limited(answer)):
        raise Later(f"status {answer.status}", wait=_wait(answer))
    return answer


def _limited(answer: Answer) -> bool:
    """GitHub answers 403 where others answer 429."""
    return "retry-after" in answer.headers or answer.headers.get("x-ratelimit-remaining") == "0"


def _wait(answer: Answer) -> float | None:
    after, reset = answer.headers.get("retry-after", ""), answer.headers.get("x-ratelimit-reset", "")
    if after.isdecimal():
        return min(float(after), 86_400.0)
    if answer.headers.get("x-ratelimit-remaining") == "0" and reset.isdecimal():
        return min(max(float(reset) - time.time(), 1.0), 86_400.0)
    return None
