"""The one shape of an error: {"error": {"status", "code", "message", "hint", "fields"}}; browsers get a page."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from triage.base.errors import NotFoundError, OptionError, StoreError, TriageError

# The code and the hint of a status, unless the error brings its own.
STATUS_DEFAULTS: Mapping[int, tuple[str, str]] = {
    400: ("bad-request", "see docs/api.md for what a request may contain"),
    401: ("not-signed-in", "send a token as `Authorization: Bearer trg_…`, or sign in at /sign-in"),
    403: ("not-allowed", "ask an administrator for a role that may do this"),
    404: ("not-found", "check the address; /api/v1/openapi.json lists the API"),
    405: ("wrong-method", "the Allow header lists the methods"),
    406: ("wrong-accept", "ask for application/json"),
    409: ("conflict", "read the current state and try again"),
    411: ("no-length", "send Content-Length or a chunked body"),
    413: ("too-large", "send less; GET /api/v1/limits lists the limits"),
    415: ("wrong-type", "see docs/api.md for the content type"),
    416: ("wrong-offset", "ask with HEAD how much the server has"),
    421: ("wrong-host", "use a host name from web.hosts or web.public_url"),
    422: ("invalid", "fix the reported fields"),
    429: ("too-many", "wait as long as Retry-After says"),
    431: ("headers-too-large", "send smaller headers"),
    500: ("bug", "this is a bug in triage; its log has the request id"),
    503: ("not-now", "try again in a moment"),
    507: ("no-room", "free disk space on the server"),
}


class ServiceError(TriageError):
    """An error with its HTTP status. Code and hint default to those of the status."""

    def __init__(
        self, status: int, message: str, *, hint: str = "", code: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        default_code, default_hint = STATUS_DEFAULTS.get(status, ("error", ""))
        super().__init__(message, hint=hint or default_hint)
        self.status = status
        self.code = code or default_code
        self.headers = dict(headers or {})


def error_response(request: Request, error: ServiceError, *, fields: Sequence[Mapping[str, Any]] = ()) -> Response:
    """Return the response for an error: JSON, or a page for a browser. `fields` says what is wrong with each field."""
    error_page = request.app.state.service.error_page
    if error_page is not None and wants_page(request):
        response: Response = error_page(request, error.status, error.code, error.message, error.hint)
        response.headers.update(error.headers)
    else:
        details = {"status": error.status, "code": error.code, "message": error.message, "hint": error.hint}
        document = {"error": {**details, "fields": [dict(field) for field in fields]}}
        text = "" if request.method == "HEAD" else json.dumps(document, ensure_ascii=False)
        response = Response(text.encode("utf-8", "replace"), error.status, error.headers, media_type="application/json")
    response.headers["Cache-Control"] = "no-store"
    return response


def wants_page(request: Request) -> bool:
    """Return whether a browser asks for a page, and not a program for data."""
    path = request.url.path
    if path.startswith("/api/") or path.endswith(".json") or path == "/metrics":
        return False
    return "text/html" in request.headers.get("accept", "")


def http_status(error: TriageError) -> int:
    """Return the HTTP status of an error."""
    if isinstance(error, ServiceError):
        return error.status
    if isinstance(error, NotFoundError):
        return 404
    if isinstance(error, StoreError):
        return 503
    return 400 if isinstance(error, OptionError) else 422


def install_handlers(app: FastAPI) -> None:
    """Answer every exception of an endpoint in the one shape."""

    async def handle_triage_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, TriageError)
        if not isinstance(error, ServiceError):
            error = ServiceError(http_status(error), error.message, hint=error.hint)
        return error_response(request, error)

    async def handle_http_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        default_code, _ = STATUS_DEFAULTS.get(error.status_code, ("error", ""))
        message = str(error.detail or default_code)
        return error_response(request, ServiceError(error.status_code, message, headers=error.headers))

    async def handle_invalid_request(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        fields = [
            {"where": ".".join(map(str, item["loc"])), "message": str(item["msg"])} for item in error.errors()[:20]
        ]
        problems = "; ".join(f"{field['where']}: {field['message']}" for field in fields[:3])
        return error_response(request, ServiceError(422, f"the request is invalid: {problems}"), fields=fields)

    app.add_exception_handler(TriageError, handle_triage_error)
    app.add_exception_handler(HTTPException, handle_http_error)
    app.add_exception_handler(RequestValidationError, handle_invalid_request)
