"""Dark or light: as the reader's system is, until they choose."""

from __future__ import annotations

from typing import Annotated, Literal
from urllib.parse import urlsplit

from fastapi import APIRouter, Form, Request
from starlette.responses import RedirectResponse, Response

router = APIRouter()
YEAR = 365 * 86_400


@router.post("/theme")
def theme(
    request: Request, choice: Annotated[Literal["light", "dark", "system"], Form()], back: Annotated[str, Form()] = "/"
) -> Response:
    """Remember it in a cookie and go back to where the reader was."""
    response = RedirectResponse(local(back), 303)
    if choice == "system":
        response.delete_cookie("theme", samesite="lax")
    else:
        response.set_cookie(
            "theme", choice, max_age=YEAR, samesite="lax", httponly=True, secure=request.url.scheme == "https"
        )
    return response


def local(address: str) -> str:
    """The address if it is a path of this site, else the first page: nobody is led away by a link of ours."""
    parts = urlsplit(address.replace("\\", "/"))
    whole = not parts.scheme and not parts.netloc and address.startswith("/") and not address.startswith("//")
    return address if whole and address.isprintable() else "/"
