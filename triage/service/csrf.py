"""Protection against other sites: forged requests (CSRF) and host names that point here (DNS rebinding)."""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from triage.service.errors import ServiceError, error_response
from triage.settings.sections import WebSettings

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


def is_cross_site(method: str, headers: Headers, own_origins: frozenset[str]) -> bool:
    """Return whether another site makes a browser send this changing request.

    Sec-Fetch-Site decides, else Origin. `own_origins` are ours besides the one of the Host header. No browser sends
    a token in Authorization without a cookie on its own, nor a request with neither header.
    """
    if method in SAFE_METHODS or ("authorization" in headers and "cookie" not in headers):
        return False
    origin = headers.get("origin")
    if (site := headers.get("sec-fetch-site")) is not None:
        return site not in ("same-origin", "none") and (origin is None or origin not in own_origins)
    if origin is None:
        return False
    return origin not in own_origins and (origin == "null" or urlsplit(origin).netloc != headers.get("host"))


class CsrfProtection:
    """Middleware that refuses changing requests of other sites with 403."""

    def __init__(self, app: ASGIApp, own_origins: frozenset[str] = frozenset()) -> None:
        self._app = app
        self._own_origins = own_origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and is_cross_site(scope["method"], Headers(scope=scope), self._own_origins):
            error = ServiceError(
                403,
                "another site sent this request",
                code="cross-site",
                hint="open this page itself and try again; programs must send a token and no cookie",
            )
            await error_response(Request(scope), error)(scope, receive, send)
            return
        await self._app(scope, receive, send)


def allowed_hosts(web: WebSettings) -> frozenset[str] | None:
    """Return the host names, without ports, that requests may use; None: any."""
    if "*" in web.hosts:
        return None
    names = {urlsplit(web.public_url).hostname or "", *(host.lower() for host in web.hosts)} - {""}
    if web.host not in LOOPBACK_NAMES and not names:
        return None  # the operator opened it to a network without naming it
    return frozenset(names | LOOPBACK_NAMES | {web.host})


class AllowedHosts:
    """Middleware that refuses requests to other host names with 421."""

    def __init__(self, app: ASGIApp, web: WebSettings) -> None:
        self._app = app
        self._names = allowed_hosts(web)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and self._names is not None:
            name = urlsplit("//" + Headers(scope=scope).get("host", "")).netloc.rpartition("@")[2].lower()
            name = name[1 : name.index("]")] if name.startswith("[") and "]" in name else name.partition(":")[0]
            if name not in self._names:
                error = ServiceError(421, "this server does not have the requested host name")
                await error_response(Request(scope), error)(scope, receive, send)
                return
        await self._app(scope, receive, send)
