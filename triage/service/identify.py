"""Finds out who asks and puts it into the scope, before anything else looks at the request."""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

from triage.service.principal import LOCAL
from triage.service.state import Service


class Identify:
    """Sets scope["triage.principal"] to a Principal or None."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app = app
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope["triage.principal"] = LOCAL
        await self._app(scope, receive, send)
