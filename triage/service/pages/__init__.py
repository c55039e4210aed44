"""The pages: server-rendered, working without JavaScript."""

from __future__ import annotations

from collections.abc import Callable

from fastapi import APIRouter, Request
from starlette.responses import Response

from triage.service.pages import (
    audit,
    inbox,
    incident,
    incidents,
    problem,
    search,
    sign_in,
    signatures,
    stats,
    status,
    theme,
    upload,
)

# Incidents first, for they answer `/`.
ROUTERS: tuple[APIRouter, ...] = (
    incidents.router,
    incident.router,
    inbox.router,
    search.router,
    upload.router,
    signatures.router,
    stats.router,
    audit.router,
    status.router,
    sign_in.router,
    theme.router,
)
# (request, status, code, message, hint) -> the page that a browser shows for an error; None: JSON for everybody.
ERROR_PAGE: Callable[[Request, int, str, str, str], Response] | None = problem.error_page
