"""Every request gets a number, a line in the log and a place in the counts; a bug ends as an answer in the one shape,
its trace in the log.
"""

from __future__ import annotations

import secrets
import time
import traceback

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from triage.service import failure, log
from triage.service.counters import Counters

QUIET = frozenset(
    {"/api/v1/health", "/api/v1/ready", "/api/v1/metrics"}
)  # asked for all the time: only what goes wrong is logged


class Watch:
    """Sees every request first, and its answer last."""

    def __init__(self, app: ASGIApp, counters: Counters, logged: bool = True) -> None:
        self._app = app
        self._counters = counters
        self._logged = logged

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        identifier = secrets.token_hex(8)
        status, began = 0, time.perf_counter()

        async def sent(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], (b"x-request-id", identifier.encode())]
            await send(message)

        try:
            await self._app(scope, receive, sent)
        except Exception as error:
            trace = "".join(traceback.format_exception(error))[-8000:]
            log.say("bug", request=identifier, error=f"{type(error).__name__}: {error}"[:500], trace=trace)
            if status:
                raise  # half an answer is out: the connection is cut
            hint = f"this is a bug in triage; its log has the request {identifier}"
            await failure.answer(Request(scope), 500, "something went wrong that should not", hint=hint)(
                scope, receive, sent
            )
        finally:
            seconds = time.perf_counter() - began
            self._counters.count(status, seconds)
            if self._logged and (scope["path"] not in QUIET or status >= 400):
                _say(scope, identifier, status, seconds)


def _say(scope: Scope, identifier: str, status: int, seconds: float) -> None:
    who = scope.get("triage.principal")
    log.say(
        "request",
        request=identifier,
        method=scope["method"],
        path=scope["path"][:500],
        status=status,
        ms=round(seconds * 1000, 1),
        address=scope.get("triage.address"),
        who=who.name if who is not None else None,
    )
