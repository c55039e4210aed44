"""Whether the store can be written, is read-only or is damaged: one answer for all processes, in shared memory.

On a store that is read-only or damaged, `triage serve` shows what there is and refuses every change.
"""

from __future__ import annotations

import mmap
from collections.abc import Mapping
from typing import Literal, get_args

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from triage.base.errors import StoreError
from triage.service.csrf import SAFE_METHODS
from triage.service.errors import ServiceError, error_response
from triage.service.log import write_event
from triage.store import Store, maintenance
from triage.store.location import StoreLocation

Condition = Literal["writable", "read-only", "damaged"]
CONDITIONS: tuple[Condition, ...] = get_args(Condition)
NOTICES: Mapping[Condition, str] = {
    "writable": "",
    "read-only": "The store is read-only: nothing can be uploaded or changed.",
    "damaged": "The store is damaged: nothing can be uploaded or changed, and what you see may be incomplete. "
    "An operator must run `triage db check` on the server.",
}
HINTS: Mapping[Condition, str] = {
    "writable": "",
    "read-only": "ask the operator to make the store writable and to start the service again; reading works",
    "damaged": "ask the operator to run `triage db check` and `triage db export --salvage`; reading may work",
}
# Nobody needs the store to be written for these.
ALLOWED_PATHS = frozenset({"/auth/token", "/auth/sign-out", "/theme"})


class StoreCondition:
    """The condition, made before the processes are forked; each of them may change it."""

    def __init__(self, condition: Condition = "writable") -> None:
        self._memory = mmap.mmap(-1, 1)
        self.set(condition)

    def get(self) -> Condition:
        """Return the current condition."""
        return CONDITIONS[self._memory[0]]

    def set(self, condition: Condition) -> None:
        """Tell all processes a new condition."""
        self._memory[0] = CONDITIONS.index(condition)


class WriteGuard:
    """Middleware that refuses changes (503) while the store cannot be written."""

    def __init__(self, app: ASGIApp, condition: StoreCondition) -> None:
        self._app = app
        self._condition = condition

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        condition = self._condition.get()
        is_change = scope["type"] == "http" and scope["method"] not in SAFE_METHODS
        if condition == "writable" or not is_change or scope["path"] in ALLOWED_PATHS:
            await self._app(scope, receive, send)
            return
        code = "store-read-only" if condition == "read-only" else "store-damaged"
        message = f"the store is {condition}: nothing can be changed"
        error = ServiceError(503, message, code=code, hint=HINTS[condition], headers={"Connection": "close"})
        await error_response(Request(scope), error)(scope, receive, send)


class StoreErrors:
    """Middleware that answers 503 when the store fails before an endpoint has the request: its server is away.

    Whoever asks may not be signed in, so that only the log has the reason.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._app(scope, receive, send)
        except StoreError as error:
            write_event("store failed", error=str(error), hint=error.hint)
            hint = "try again in a moment; the log of the service says why"
            failed = ServiceError(503, "the store cannot be used now", code="store-failed", hint=hint)
            await error_response(Request(scope), failed)(scope, receive, send)


def check_condition(location: StoreLocation, condition: StoreCondition, seconds: float) -> None:
    """Check the pages of the store for at most so many seconds; log the result and set the condition."""
    try:
        with Store.open(location, read_only=True) as store:
            problems = maintenance.check_pages(store.connections, seconds)
    except StoreError as error:
        write_event("store not checked", error=str(error), hint=error.hint)
        return
    if problems is None:
        write_event("store checked in part", seconds=seconds, hint="`triage db check` checks all of it")
    elif not problems:
        write_event("store checked", result="sound")
    else:
        condition.set("damaged")
        hint = "stop the service, save what can be read with `triage db export --salvage -o saved.jsonl`, move the "
        hint += "file away, and run `triage db import saved.jsonl`"
        write_event("store damaged", store=str(location), problems=problems[:5], hint=hint)
