"""The one shape of an error: {"error": {"status", "code", "message", "hint", "fields"}}; a page for a browser that asks
for pages.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from triage.base.errors import NotFoundError, OptionError, StoreError, TriageError

CODES: Mapping[int, tuple[str, str]] = {
    400: ("bad-request", "look at docs/api.md for what may be sent"),
    401: ("not-signed-in", "send a token as `Authorization: Bearer trg_…`, or sign in at /sign-in"),
    403: ("not-allowed", "ask an administrator for a role that may do this"),
    404: ("not-found", "look at the address again; /api/v1/openapi.json lists those of the API"),
    405: ("wrong-method", "the header Allow lists the methods"),
    406: ("wrong-accept", "ask for application/json"),
    409: ("conflict", "read the present state and try again"),
    411: ("no-length", "send Content-Length or a chunked body"),
    413: ("too-large", "send less; GET /api/v1/limits says how much"),
    415: ("wrong-type", "look at docs/api.md for the content type"),
    416: ("wrong-offset", "ask with HEAD how far the upload is"),
    421: ("wrong-host", "call it by a name that is set in web.hosts or web.public_url"),
    422: ("invalid", "mend the fields that are named"),
    429: ("too-many", "wait as long as Retry-After says"),
    431: ("headers-too-large", "send smaller headers"),
    500: ("bug", "this is a bug in triage; its log has the request's id"),
    503: ("not-now", "try again in a moment"),
    507: ("no-room", "make room on the server's disk"),
}


class ServiceError(TriageError):
    """An answer other than the one asked for, with its HTTP status."""

    def __init__(
        self, status: int, message: str, *, hint: str = "", code: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        known = CODES.get(status, ("error", ""))
        super().__init__(message, hint=hint or known[1])
        self.status = status
        self.code = code or known[0]
        self.headers = dict(headers or {})


def body(status: int, code: str, message: str, hint: str, fields: Sequence[Mapping[str, Any]] = ()) -> bytes:
    """The error as JSON."""
    said = {"status": status, "code": code, "message": message, "hint": hint, "fields": [dict(item) for item in fields]}
    return json.dumps({"error": said}, ensure_ascii=False).encode("utf-8", "replace")


def answer(
    request: Request,
    status: int,
    message: str,
    *,
    hint: str = "",
    code: str = "",
    headers: Mapping[str, str] | None = None,
    fields: Sequence[Mapping[str, Any]] = (),
) -> Response:
    """The response for an error."""
    known = CODES.get(status, ("error", ""))
    code, hint = code or known[0], hint or known[1]
    page = request.app.state.service.error_page
    if page is not None and wants_page(request):
        response: Response = page(request, status, code, message, hint)
        response.headers.update(dict(headers or {}))
    else:
        said = b"" if request.method == "HEAD" else body(status, code, message, hint, fields)
        response = Response(said, status_code=status, headers=dict(headers or {}), media_type="application/json")
    response.headers["Cache-Control"] = "no-store"
    return response


def wants_page(request: Request) -> bool:
    """Is it a browser that looks at pages, and not a program?"""
    path = request.url.path
    if path.startswith("/api/") or path.endswith(".json") or path == "/metrics":
        return False
    return "text/html" in request.headers.get("accept", "")


def status_of(error: TriageError) -> int:
    """The HTTP status that an error of the tree has."""
    if isinstance(error, ServiceError):
        return error.status
    if isinstance(error, NotFoundError):
        return 404
    if isinstance(error, StoreError):
        return 503
    return 400 if isinstance(error, OptionError) else 422


def install(app: FastAPI) -> None:
    """Every exception that leaves an endpoint ends in the one shape."""

    async def ours(request: Request, error: Exception) -> Response:
        assert isinstance(error, TriageError)
        code = error.code if isinstance(error, ServiceError) else ""
        headers = error.headers if isinstance(error, ServiceError) else None
        return answer(request, status_of(error), error.message, hint=error.hint, code=code, headers=headers)

    async def http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        known = CODES.get(error.status_code, ("error", ""))
        return answer(request, error.status_code, str(error.detail or known[0]), headers=error.headers)

    async def invalid(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        fields = [
            {"where": ".".join(map(str, item["loc"])), "message": str(item["msg"])} for item in error.errors()[:20]
        ]
        said = "; ".join(f"{item['where']}: {item['message']}" for item in fields[:3])
        return answer(request, 422, f"this request cannot be used: {said}", fields=fields)

    app.add_exception_handler(TriageError, ours)
    app.add_exception_handler(HTTPException, http)
    app.add_exception_handler(RequestValidationError, invalid)
