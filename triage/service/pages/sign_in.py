"""Sign in with a token or OpenID Connect, sign out, and choose the theme."""

from __future__ import annotations

import ssl
import time
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Form, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse, Response

from triage.service.authentication import principal_from_token, role_of_groups
from triage.service.dependencies import SettingsDep, StateDep, get_state, get_user
from triage.service.errors import ServiceError
from triage.service.limits import TokenBuckets
from triage.service.log import write_event
from triage.service.pages.rendering import local_path, render_page
from triage.settings.sections import WebSettings

router = APIRouter()
ATTEMPTS_A_MINUTE = 20
YEAR = 365 * 86_400
NextForm = Annotated[str, Form(max_length=2000)]
NextQuery = Annotated[str, Query(max_length=2000)]
_attempts = TokenBuckets(ATTEMPTS_A_MINUTE)


@dataclass(frozen=True, slots=True)
class SignIn:
    """The page with the forms. `next` is the page to go to afterwards; `issuer` is empty without OpenID Connect."""

    next: str
    issuer: str


@router.get("/sign-in")
def sign_in(request: Request, settings: SettingsDep, next: NextQuery = "/") -> Response:  # noqa: A002
    """Show the forms to sign in; go on if somebody is signed in already."""
    if get_user(request) is not None:
        return RedirectResponse(local_path(next), 303)
    return render_page(request, "sign_in.html", SignIn(local_path(next), settings.web.oidc_issuer))


@router.post("/auth/token", status_code=303)
def by_token(
    request: Request,
    state: StateDep,
    token: Annotated[str, Form(max_length=200)],
    next: NextForm = "/",  # noqa: A002
) -> Response:
    """Open a session with a token; it ends with the token."""
    address = request.scope.get("triage.address")
    if _attempts.take(str(address)):
        raise ServiceError(429, "too many attempts to sign in", headers={"Retry-After": "60"})
    valid_token = state.store.tokens.verify(token.strip())
    if valid_token is None:
        write_event("sign-in refused", address=address)
        hint = "ask an administrator for a new one (`triage token create`)"
        raise ServiceError(401, "this token is wrong, revoked or expired", hint=hint)
    user = principal_from_token(valid_token)
    response = RedirectResponse(local_path(next), 303)
    state.session_cookies.open(response, user.name, scopes=valid_token.scopes, token=valid_token.id)
    write_event("signed in", name=user.name, by="token", role=user.role)
    return response


@router.post("/auth/sign-out", status_code=303)
def sign_out(request: Request, state: StateDep) -> Response:
    """End the session, and make copies of its cookie useless."""
    session = state.session_cookies.read(request.headers)
    if session is not None:
        if state.condition.get() == "writable":
            state.store.service_data.end_session(session.id, time.time() + state.session_cookies.max_age)
        else:
            state.ended_sessions.add(session.id)
        write_event("signed out", name=session.principal.name)
    response = RedirectResponse("/", 303)
    state.session_cookies.close(response)
    return response


@router.get("/auth/oidc")
async def to_issuer(request: Request, next: NextQuery = "/") -> Response:  # noqa: A002
    """Go to the OpenID Connect issuer, which sends the browser back to /auth/oidc/callback."""
    client = _oidc_client(request)
    request.session["next"] = local_path(next)
    web = get_state(request).settings.web
    try:
        await _check_issuer(client, web)
        redirect: Response = await client.authorize_redirect(
            request, web.public_url.rstrip("/") + "/auth/oidc/callback"
        )
    except Exception as error:
        write_event("sign-in failed", by="oidc", error=f"{type(error).__name__}: {error}")
        raise ServiceError(
            503, "cannot reach the OpenID Connect issuer", hint="try again; the server's log has the reason"
        ) from None
    return redirect


@router.get("/auth/oidc/callback")
async def from_issuer(request: Request) -> Response:
    """Open a session from the issuer's answer; Authlib checks its state, nonce, PKCE and signature."""
    state = get_state(request)
    claims = await _read_claims(request)
    mail = claims.get("email") if claims.get("email_verified", True) else None
    name = str(mail or claims.get("preferred_username") or claims.get("sub") or "")
    if not name:
        hint = "request the scope email or profile in web.oidc_scopes"
        raise ServiceError(401, "the OpenID Connect issuer does not name the user", hint=hint)
    claim = claims.get(state.settings.web.oidc_groups_claim) or []
    groups = tuple(str(item) for item in (claim if isinstance(claim, list) else [claim]))
    role = role_of_groups(state.settings.web, groups)
    with_rules = tuple(group for group in groups if group in state.settings.visibility.groups)
    response = RedirectResponse(local_path(str(request.session.pop("next", "/"))), 303)
    request.session.clear()
    await run_in_threadpool(state.session_cookies.open, response, name, role=role, groups=with_rules)
    write_event("signed in", name=name, by="oidc", role=role)
    return response


async def _read_claims(request: Request) -> dict[str, Any]:
    """Return the claims of the user. Raises ServiceError for an invalid answer."""
    from authlib.integrations.base_client import OAuthError

    client = _oidc_client(request)
    try:
        answer = await client.authorize_access_token(request)
        return dict(answer.get("userinfo") or {})
    except OAuthError as error:
        write_event("sign-in refused", by="oidc", error=f"{error.error}: {error.description}")
        hint = "sign in again"
    except Exception as error:
        write_event("sign-in failed", by="oidc", error=f"{type(error).__name__}: {error}")
        hint = "sign in again; the server's log has the reason"
    raise ServiceError(401, "the answer of the OpenID Connect issuer is invalid", hint=hint)


def _oidc_client(request: Request) -> Any:
    """Return Authlib's client, made on first use. Raises ServiceError without an issuer."""
    from authlib.integrations.starlette_client import OAuth

    state = get_state(request)
    web = state.settings.web
    if not web.oidc_issuer:
        raise ServiceError(404, "sign-in with OpenID Connect is not set up")
    if state.oidc_client is None:
        oauth = OAuth()
        oauth.register(
            "issuer",
            client_id=web.oidc_client_id,
            client_secret=web.oidc_client_secret.get_secret_value(),
            server_metadata_url=web.oidc_issuer.rstrip("/") + "/.well-known/openid-configuration",
            client_kwargs={
                "scope": web.oidc_scopes,
                "code_challenge_method": "S256",
                "timeout": 10,
                "verify": ssl.create_default_context(),  # the system's certificates, read once
            },
        )
        state.oidc_client = oauth.issuer
    return state.oidc_client


async def _check_issuer(client: Any, web: WebSettings) -> None:
    """Raise ValueError if the issuer's own document has another name."""
    name = str((await client.load_server_metadata()).get("issuer"))
    if name.rstrip("/") != web.oidc_issuer.rstrip("/"):
        raise ValueError(f"the issuer's document names {name}")


@router.post("/theme")
def theme(
    request: Request, choice: Annotated[Literal["light", "dark", "system"], Form()], back: Annotated[str, Form()] = "/"
) -> Response:
    """Save the theme in a cookie and go back."""
    response = RedirectResponse(local_path(back), 303)
    if choice == "system":
        response.delete_cookie("theme", samesite="lax")
    else:
        is_https = request.url.scheme == "https"
        response.set_cookie("theme", choice, max_age=YEAR, samesite="lax", httponly=True, secure=is_https)
    return response
