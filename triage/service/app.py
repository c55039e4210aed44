"""The application: middleware, routes and state."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from fastapi import FastAPI
from starlette.middleware import Middleware
from starlette.middleware.sessions import SessionMiddleware
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

import triage
from triage.service import access, api, hooks, pages
from triage.service.api import openapi, operation
from triage.service.authentication import Authentication
from triage.service.csrf import AllowedHosts, CsrfProtection
from triage.service.dependencies import ServiceState
from triage.service.errors import install_handlers
from triage.service.limits import RequestLimits
from triage.service.log import RequestLog, ResponseCounts
from triage.service.response_cache import ResponseCache
from triage.service.store_condition import StoreCondition, StoreErrors, WriteGuard
from triage.service.work.job_files import make_upload_directories, upload_directory
from triage.settings import Settings
from triage.store import Store

STATIC = Path(__file__).parent / "static"
CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; manifest-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)
SECURITY_HEADERS: tuple[tuple[bytes, bytes], ...] = (
    (b"content-security-policy", CONTENT_POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
    (b"x-frame-options", b"DENY"),
    (b"cache-control", b"no-store"),
)
HSTS = (b"strict-transport-security", b"max-age=31536000")


class SecurityHeaders:
    """Middleware that adds security headers to every response, unless the response sets them itself."""

    def __init__(self, app: ASGIApp, https: bool = False) -> None:
        self._app = app
        self._headers = (*SECURITY_HEADERS, *((HSTS,) if https else ()))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                present = {name.lower() for name, _ in message["headers"]}
                missing = [(name, value) for name, value in self._headers if name not in present]
                message["headers"] = [*message["headers"], *missing]
            await send(message)

        await self._app(scope, receive, send_with_headers)


def create_app(
    settings: Settings,
    store: Store | None = None,
    response_counts: ResponseCounts | None = None,
    condition: StoreCondition | None = None,
) -> FastAPI:
    """Return the application. Without an open store it opens the one of the settings, and closes it at the end."""
    read_only = condition is not None and condition.get() != "writable"
    open_store = store or Store.open(settings.store.path, read_only=read_only)
    try:
        access.check_settings(settings, open_store)
    except BaseException:
        if store is None:
            open_store.close()
        raise
    condition = condition or StoreCondition("writable" if open_store.connections.writable else "read-only")
    counts = response_counts or ResponseCounts()
    state = ServiceState(settings, open_store, counts, condition, error_page=pages.ERROR_PAGE)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        _prepare_routes(app)
        yield
        if store is None:
            open_store.close()

    app = FastAPI(
        title="triage",
        version=triage.__version__,
        summary="Finds the rank and the line where a multi-rank training job began to fail.",
        docs_url=None,
        redoc_url=None,
        openapi_url=f"{openapi.PREFIX}/openapi.json",
        lifespan=lifespan,
        middleware=_middleware(state),
    )
    app.state.service = state
    if condition.get() == "writable":
        make_upload_directories(upload_directory(settings))
    install_handlers(app)
    for router in api.ROUTERS:
        app.include_router(router, prefix=openapi.PREFIX, responses=openapi.ERRORS)
    for router in (*pages.ROUTERS, hooks.router, operation.conventional_router):
        app.include_router(router, include_in_schema=False)
    app.openapi = partial(openapi.get_document, app)  # type: ignore[method-assign]
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    return app


def _prepare_routes(app: FastAPI) -> None:
    """Let FastAPI build the models of all routes: half a second that the first readers of a node would wait for."""
    scope = {"type": "http", "method": "GET", "path": "/no-such-page", "root_path": "", "headers": []}
    for route in app.routes:
        route.matches(dict(scope))


def _middleware(state: ServiceState) -> list[Middleware]:
    """Return the middleware; the first gets a request first."""
    web = state.settings.web
    https = web.public_url.startswith("https://")
    middleware = [
        Middleware(SecurityHeaders, https=https),
        Middleware(RequestLog, counts=state.response_counts, log_requests=web.log_requests),
        Middleware(StoreErrors),
        Middleware(AllowedHosts, web=web),
        Middleware(Authentication, state=state),
        Middleware(RequestLimits, web=web),
        Middleware(CsrfProtection, own_origins=frozenset({web.public_url.rstrip("/")} - {""})),
        Middleware(WriteGuard, condition=state.condition),
        Middleware(ResponseCache, state=state),
    ]
    if web.oidc_issuer:  # Authlib keeps its state between the two requests of a sign-in in this short-lived cookie
        secret = web.secret.get_secret_value() or state.store.service_data.get_secret("oidc").hex()
        sign_in = partial(SessionMiddleware, session_cookie="triage_sign_in", max_age=600, same_site="lax")
        middleware.append(Middleware(sign_in, secret_key=secret, https_only=https))
    return middleware
