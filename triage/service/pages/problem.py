"""The page that a browser gets for an error; who is not signed in is led to the door and back."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote

from fastapi import Request
from starlette.responses import RedirectResponse, Response

from triage.service.pages.show import page


@dataclass(frozen=True, slots=True)
class Problem:
    """What went wrong, and what to do."""

    status: int
    code: str
    message: str
    hint: str


def error_page(request: Request, status: int, code: str, message: str, hint: str) -> Response:
    """HTML in the look of all pages."""
    if status == 401 and request.method in ("GET", "HEAD") and request.url.path != "/sign-in":
        back = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        return RedirectResponse(f"/sign-in?next={quote(back, safe='')}", 303)
    return page(request, "problem.html", Problem(status, code, message, hint), status=status)
