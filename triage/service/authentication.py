"""Find out who sends a request: by token, session cookie or a trusted proxy."""

from __future__ import annotations

import hashlib
import ipaddress
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Generic, TypeVar

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from triage.service.access import LOCAL, ROLES, SCOPES, Principal, highest_role, scopes_of
from triage.service.dependencies import ServiceState
from triage.service.errors import ServiceError, error_response
from triage.service.limits import TokenBuckets
from triage.service.sessions import Session
from triage.service.visibility import restrict
from triage.settings.sections import Role, VisibilitySettings, WebSettings
from triage.store.tokens import Token

CACHE_SECONDS = 2.0  # how long an answer of the store is used while the store does not change: a token can expire
CACHE_SIZE = 10_000
WRONG_TOKENS_A_MINUTE = 30
T = TypeVar("T")


class Authentication:
    """Middleware that sets scope["triage.principal"] to a Principal or None, and scope["triage.address"].

    A token in Authorization comes first, then the session cookie, then the header of a trusted proxy. On loopback
    without any way to sign in, everybody is the local administrator. Wrong tokens are refused with 401.
    """

    def __init__(self, app: ASGIApp, state: ServiceState) -> None:
        self._app = app
        self._state = state
        self._tokens: _Cache[Principal | None] = _Cache(state)
        self._sessions: _Cache[bool] = _Cache(state)
        self._wrong_tokens = TokenBuckets(WRONG_TOKENS_A_MINUTE)
        self._proxies = TrustedProxies(state.settings.web, state.settings.visibility)
        self._visibility = state.settings.visibility

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        scope["triage.address"] = address = self._proxies.client_address(scope, headers)
        user = await self._identify(scope, headers)
        if user is None and "authorization" in headers:
            await error_response(Request(scope), self._refuse_token(address))(scope, receive, send)
            return
        scope["triage.principal"] = user
        scope["triage.identify"] = partial(self._identify, scope, headers)  # for streams: they outlive a session
        await self._app(scope, receive, send)

    async def _identify(self, scope: Scope, headers: Headers) -> Principal | None:
        authorization = headers.get("authorization")
        if authorization is not None:
            return await self._from_token(authorization)
        return await self._from_session(headers) or self._proxies.principal(scope, headers) or self._local_user()

    def _refuse_token(self, address: str) -> ServiceError:
        if self._wrong_tokens.take(address):
            return ServiceError(429, "too many wrong tokens", headers={"Retry-After": "60"})
        headers = {"WWW-Authenticate": 'Bearer realm="triage", error="invalid_token"'}
        return ServiceError(401, "this token is wrong, revoked or expired", headers=headers)

    def _local_user(self) -> Principal | None:
        return None if self._state.is_sign_in_required else LOCAL

    async def _from_token(self, authorization: str) -> Principal | None:
        scheme, _, secret = authorization.partition(" ")
        if scheme.lower() != "bearer":
            return None
        key = hashlib.sha256(secret.strip().encode()).hexdigest()
        return await self._tokens.get(key, partial(self._verify_token, secret.strip()))

    def _verify_token(self, secret: str) -> Principal | None:
        token = self._state.store.tokens.verify(secret)
        return restrict(self._visibility, principal_from_token(token), is_token=True) if token is not None else None

    async def _from_session(self, headers: Headers) -> Principal | None:
        session = self._state.session_cookies.read(headers)
        if session is None or not await self._is_active(session):
            return None
        return restrict(self._visibility, session.principal, is_token=session.token is not None)

    async def _is_active(self, session: Session) -> bool:
        if session.id in self._state.ended_sessions:
            return False
        return await self._sessions.get(session.id, partial(self._is_active_in_store, session))

    def _is_active_in_store(self, session: Session) -> bool:
        """Return whether the session was not signed out and its token may still be used."""
        if self._state.store.service_data.is_session_ended(session.id):
            return False
        token = self._state.store.tokens.get(session.token) if session.token is not None else None
        return session.token is None or (token is not None and token.is_valid(time.time()))


class _Cache(Generic[T]):
    """Answers of the store, used until any process writes to it, so that a sign-out or a revocation counts at once."""

    def __init__(self, state: ServiceState) -> None:
        self._version = state.version
        self._answers: dict[str, tuple[tuple[object, ...], float, T]] = {}

    async def get(self, key: str, read: Callable[[], T]) -> T:
        """Return the answer of `read`, or the one that is known. Call from the event loop's thread."""
        version, _ = await self._version.get()
        now = time.monotonic()
        cached = self._answers.get(key)
        if cached is not None and cached[0] == version and now - cached[1] <= CACHE_SECONDS:
            return cached[2]
        answer = await run_in_threadpool(read)
        if len(self._answers) > CACHE_SIZE:
            self._answers.clear()
        self._answers[key] = version, now, answer
        return answer


class TrustedProxies:
    """The trusted reverse proxies, and what their headers mean."""

    def __init__(self, web: WebSettings, visibility: VisibilitySettings | None = None) -> None:
        self._web, self._visibility = web, visibility or VisibilitySettings()
        self._networks = [ipaddress.ip_network(item, strict=False) for item in web.trusted_proxies]

    def is_trusted(self, address: str) -> bool:
        """Return whether the address is one of a trusted proxy."""
        try:
            parsed = ipaddress.ip_address(address)
        except ValueError:
            return False
        return any(parsed in network for network in self._networks if network.version == parsed.version)

    def client_address(self, scope: Scope, headers: Headers) -> str:
        """Return the client's address: the last in X-Forwarded-For that is not a trusted proxy."""
        client = scope.get("client")
        address = str(client[0]) if client else "local"
        if not self._networks or not self.is_trusted(address):
            return address
        for item in reversed(headers.get("x-forwarded-for", "").split(",")):
            if item.strip() and not self.is_trusted(item.strip()):
                return item.strip()[:64]
        return address

    def principal(self, scope: Scope, headers: Headers) -> Principal | None:
        """Return the user that a trusted proxy sends; None if the header comes from elsewhere."""
        web, client = self._web, scope.get("client")
        if not web.proxy_user or client is None or not self.is_trusted(str(client[0])):
            return None
        names = headers.getlist(web.proxy_user)
        name = " ".join(names[0].split())[:80] if len(names) == 1 else ""
        if not name:
            return None
        header = headers.get(web.proxy_role, "").replace(";", ",").split(",") if web.proxy_role else []
        groups = tuple(group.strip() for group in header)
        role = role_of_groups(web, groups)
        user = Principal(name, role, scopes_of(role), "proxy", f"proxy {name}", groups)
        return restrict(self._visibility, user, is_token=False)


def role_of_groups(web: WebSettings, groups: Sequence[str]) -> Role:
    """Return the highest role of the groups in `web.groups`, else the default role."""
    roles = [web.groups[group] for group in groups if group in web.groups]
    return max(roles, key=ROLES.index) if roles else web.default_role


def principal_from_token(token: Token) -> Principal:
    """Return the principal of a token."""
    scopes = frozenset(scope for scope in SCOPES if scope in token.scopes)
    return Principal(token.name, highest_role(scopes), scopes, "token", f"token {token.id}")
