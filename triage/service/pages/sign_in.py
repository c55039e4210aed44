"""The door: by a token, or by OpenID Connect where that is set up. What the forms send to is /auth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import RedirectResponse, Response

from triage.service import deps
from triage.service.deps import TheSettings
from triage.service.pages.show import page
from triage.service.pages.theme import local

router = APIRouter()


@dataclass(frozen=True, slots=True)
class Door:
    """`next` is where the reader wanted to go; `issuer` is set where OpenID Connect is."""

    next: str
    issuer: str


@router.get("/sign-in")
def sign_in(request: Request, settings: TheSettings, next: Annotated[str, Query(max_length=2000)] = "/") -> Response:  # noqa: A002
    """The forms; who is signed in already goes on."""
    if deps.principal(request) is not None:
        return RedirectResponse(local(next), 303)
    return page(request, "sign_in.html", Door(local(next), settings.web.oidc_issuer))
