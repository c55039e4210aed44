"""The pages: rendered on the server, working without JavaScript."""

from __future__ import annotations

from collections.abc import Callable

from fastapi import APIRouter, Request, Response

from triage.service.pages import (
    causes,
    clusters,
    comparison,
    hosts,
    incident,
    incidents,
    rendering,
    sign_in,
    signatures,
    status,
    upload,
    views,
)

# `causes` comes first, because it answers `/`.
ROUTERS: tuple[APIRouter, ...] = (
    causes.router,
    incidents.router,
    incident.router,
    comparison.router,
    clusters.router,
    hosts.router,
    upload.router,
    signatures.router,
    status.router,
    views.router,
    sign_in.router,
)
# (request, status, code, message, hint) -> the page for an error.
ERROR_PAGE: Callable[[Request, int, str, str, str], Response] = rendering.error_page
