"""Signing in and out: by a token in a form, or by OpenID Connect. The page with the form is one of the pages
(/sign-in).
"""

from __future__ import annotations

import time
from typing import Annotated, Any

from fastapi import APIRouter, Form, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse, Response

from triage.service import log
from triage.service.deps import TheService, service
from triage.service.failure import ServiceError
from triage.service.identify import cookie, principal_of, role_by_groups
from triage.service.limits import Buckets
from triage.settings.web import Web

router = APIRouter(prefix="/auth", tags=["sign-in"])
TRIES_A_MINUTE = 20
_tries = Buckets(TRIES_A_MINUTE)


def inside(target: str) -> str:
    """An address of ours to go on to; never another site's."""
    bad = not target.startswith("/") or target.startswith(("//", "/\\")) or any(ord(sign) < 33 for sign in target)
    return "/" if bad or len(target) > 2000 else target


@router.post("/token", status_code=303)
def by_token(
    request: Request,
    state: TheService,
    token: Annotated[str, Form(max_length=200)],
    next: Annotated[str, Form(max_length=2000)] = "/",  # noqa: A002
) -> Response:
    """Open a session with a token; it ends with the token."""
    if _tries.take(str(request.scope.get("triage.address"))):
        raise ServiceError(429, "too many tries", headers={"Retry-After": "60"})
    found = state.store.tokens.check(token.strip())
    if found is None:
        log.say("sign-in refused", address=request.scope.get("triage.address"))
        raise ServiceError(
            401, "this token is wrong, revoked or too old", hint="ask for a new one: `triage token create`"
        )
    who = principal_of(found)
    response = RedirectResponse(inside(next), 303)
    state.sessions.open(response, who.name, scopes=found.scopes, token=found.id)
    log.say("signed in", name=who.name, by="token", role=who.role)
    return response


@router.post("/sign-out", status_code=303)
def sign_out(request: Request, state: TheService) -> Response:
    """End the session, also for who has a copy of its cookie."""
    session = state.sessions.read(cookie(request.headers, state.sessions.cookie) or "")
    if session is not None:
        state.store.beside.end_session(session.id, time.time() + state.sessions.seconds)
        log.say("signed out", name=session.principal.name)
    response = RedirectResponse("/", 303)
    state.sessions.close(response)
    return response


def client(web: Web) -> Any:
    """Authlib's client of the issuer; what it needs to know of it, it asks once."""
    import ssl

    from authlib.integrations.starlette_client import OAuth

    trusted = ssl.create_default_context()  # the system's certificates, read once
    oauth = OAuth()
    oauth.register(
        "issuer",
        client_id=web.oidc_client_id,
        client_secret=web.oidc_client_secret.get_secret_value(),
        server_metadata_url=web.oidc_issuer.rstrip("/") + "/.well-known/openid-configuration",
        client_kwargs={"scope": web.oidc_scopes, "code_challenge_method": "S256", "timeout": 10, "verify": trusted},
    )
    return oauth.issuer


def issuer(request: Request) -> Any:
    """The client of this application, made at its first use. Raises ServiceError when none is set up."""
    state = service(request)
    if not state.settings.web.oidc_issuer:
        raise ServiceError(404, "sign-in by OpenID Connect is not set up")
    if state.oidc is None:
        state.oidc = client(state.settings.web)
    return state.oidc


async def _is_who_it_should_be(request: Request) -> None:
    """Raises ValueError when the issuer's own document names another one."""
    said = str((await issuer(request).load_server_metadata()).get("issuer"))
    if said.rstrip("/") != service(request).settings.web.oidc_issuer.rstrip("/"):
        raise ValueError(f"its document says that it is {said}")


@router.get("/oidc")
async def to_issuer(request: Request, next: Annotated[str, Query(max_length=2000)] = "/") -> Response:  # noqa: A002
    """Go to the issuer; it sends the browser back to /auth/oidc/callback."""
    issuer(request)  # refuses where there is none
    request.session["next"] = inside(next)
    back = service(request).settings.web.public_url.rstrip("/") + "/auth/oidc/callback"
    try:
        await _is_who_it_should_be(request)
        answer: Response = await issuer(request).authorize_redirect(request, back)
    except ServiceError:
        raise
    except Exception as error:
        log.say("sign-in failed", by="oidc", error=f"{type(error).__name__}: {error}")
        raise ServiceError(503, "the issuer cannot be asked", hint="try again; the server's log says more") from None
    return answer


@router.get("/oidc/callback")
async def from_issuer(request: Request) -> Response:
    """Back from the issuer: its answer is checked (state, nonce, PKCE, signature) and a session is opened."""
    from authlib.integrations.base_client import OAuthError

    state = service(request)
    issuer(request)
    try:
        found = await issuer(request).authorize_access_token(request)
        claims: dict[str, Any] = dict(found.get("userinfo") or {})
    except OAuthError as error:
        log.say("sign-in refused", by="oidc", error=f"{error.error}: {error.description}")
        raise ServiceError(401, "the issuer's answer cannot be used", hint="sign in again") from None
    except ServiceError:
        raise
    except Exception as error:
        log.say("sign-in failed", by="oidc", error=f"{type(error).__name__}: {error}")
        raise ServiceError(
            401, "the issuer's answer cannot be used", hint="sign in again; the server's log says more"
        ) from None
    mail = claims.get("email") if claims.get("email_verified", True) else None
    name = str(mail or claims.get("preferred_username") or claims.get("sub") or "")
    if not name:
        raise ServiceError(401, "the issuer does not say who it is", hint="ask for the scope email or profile")
    groups = claims.get(state.settings.web.oidc_groups_claim) or []
    role = role_by_groups(
        state.settings.web, [str(item) for item in groups] if isinstance(groups, list) else [str(groups)]
    )
    response = RedirectResponse(inside(str(request.session.pop("next", "/"))), 303)
    request.session.clear()
    await run_in_threadpool(state.sessions.open, response, name, role=role)
    log.say("signed in", name=name, by="oidc", role=role)
    return response


ROUTERS = (router,)
