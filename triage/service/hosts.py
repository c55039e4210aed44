"""By which names it may be called: a page of another site that makes its name point here (DNS rebinding) is refused."""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from triage.service import failure
from triage.settings.web import Web

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


def allowed(web: Web) -> frozenset[str] | None:
    """Names without ports; None: any."""
    if "*" in web.hosts:
        return None
    named = {urlsplit(web.public_url).hostname or "", *(host.lower() for host in web.hosts)} - {""}
    if web.host not in LOOPBACK and not named:
        return None  # the operator opened it to a network and gave it no name
    return frozenset(named | LOOPBACK | {web.host})


class Hosts:
    """Refuses with 421."""

    def __init__(self, app: ASGIApp, web: Web) -> None:
        self._app = app
        self._allowed = allowed(web)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and self._allowed is not None:
            name = urlsplit("//" + Headers(scope=scope).get("host", "")).netloc.rpartition("@")[2].lower()
            name = name[1 : name.index("]")] if name.startswith("[") and "]" in name else name.partition(":")[0]
            if name not in self._allowed:
                await failure.answer(Request(scope), 421, "it is not known by this name")(scope, receive, send)
                return
        await self._app(scope, receive, send)
