"""The application: what it is made of, in order."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from fastapi import FastAPI
from starlette.middleware import Middleware
from starlette.middleware.sessions import SessionMiddleware
from starlette.staticfiles import StaticFiles

import triage
from triage.service import access, api, auth, document, failure, hooks, pages
from triage.service.api import schemas
from triage.service.counters import Counters
from triage.service.crosssite import CrossSite
from triage.service.headers import Headers
from triage.service.hosts import Hosts
from triage.service.identify import Identify
from triage.service.kept import Kept
from triage.service.limits import Limits
from triage.service.state import Service
from triage.service.watch import Watch
from triage.service.work.files import ready, uploads
from triage.settings import Settings
from triage.store import Store

STATIC = Path(__file__).parent / "static"
API = "/api/v1"


def create_app(settings: Settings, store: Store | None = None, counters: Counters | None = None) -> FastAPI:
    """The application on an open store; without one it opens that of the settings, and closes it at the end."""
    opened = store or Store.open(settings.store.path)
    access.check(settings, opened)
    service = Service(settings, opened, counters or Counters(), error_page=pages.ERROR_PAGE)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        if store is None:
            opened.close()

    https = settings.web.public_url.startswith("https://")
    app = FastAPI(
        title="triage",
        version=triage.__version__,
        summary="Finds the rank and the line where a multi-rank training job began to fail.",
        docs_url=None,
        redoc_url=None,
        openapi_url=f"{API}/openapi.json",
        lifespan=lifespan,
        # The first sees a request first.
        middleware=[
            Middleware(Headers, https=https),
            Middleware(Watch, counters=service.counters, logged=settings.web.log_requests),
            Middleware(Hosts, web=settings.web),
            Middleware(Identify, service=service),
            Middleware(Limits, web=settings.web),
            Middleware(CrossSite, own=frozenset({settings.web.public_url.rstrip("/")} - {""})),
            Middleware(Kept, service=service),
            *_oidc(settings, service),
        ],
    )
    app.state.service = service
    ready(uploads(settings))
    failure.install(app)
    for router in api.ROUTERS:
        app.include_router(router, prefix=API, responses=schemas.ERRORS)
    for router in (*auth.ROUTERS, *hooks.ROUTERS, *pages.ROUTERS):
        app.include_router(router, include_in_schema=False)
    app.openapi = partial(document.openapi, app)  # type: ignore[method-assign]
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    return app


def _oidc(settings: Settings, service: Service) -> list[Middleware]:
    """What Authlib keeps between the two halves of a sign-in: a signed cookie of some minutes, only where that way is
    set up.
    """
    if not settings.web.oidc_issuer:
        return []
    https = settings.web.public_url.startswith("https://")
    secret = settings.web.secret.get_secret_value() or service.store.beside.secret("oidc").hex()
    return [
        Middleware(
            SessionMiddleware,
            secret_key=secret,
            session_cookie="triage_sign_in",
            max_age=600,
            same_site="lax",
            https_only=https,
        )
    ]
