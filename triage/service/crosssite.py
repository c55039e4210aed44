"""No other site may make a browser change anything here (CSRF): told by Sec-Fetch-Site, else by Origin."""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from triage.service import failure

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


def forged(method: str, headers: Headers, own: frozenset[str]) -> bool:
    """Does another site send it? `own` are the origins that are ours besides the one of Host.

    A token in Authorization without a cookie is sent by no browser on its own; nor is a request with neither header.
    """
    if method in SAFE or ("authorization" in headers and "cookie" not in headers):
        return False
    origin = headers.get("origin")
    if (site := headers.get("sec-fetch-site")) is not None:
        return site not in ("same-origin", "none") and (origin is None or origin not in own)
    if origin is None:
        return False
    return origin not in own and (origin == "null" or urlsplit(origin).netloc != headers.get("host"))


class CrossSite:
    """Refuses with 403."""

    def __init__(self, app: ASGIApp, own: frozenset[str] = frozenset()) -> None:
        self._app = app
        self._own = own

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and forged(scope["method"], Headers(scope=scope), self._own):
            said = "another site sent this request"
            hint = "open this page itself and try again; programs send a token and no cookie"
            await failure.answer(Request(scope), 403, said, code="cross-site", hint=hint)(scope, receive, send)
            return
        await self._app(scope, receive, send)
