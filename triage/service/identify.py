"""Finds out who asks and puts it into the scope, before anything else looks at the request.

In this order: a token in Authorization, a session's cookie, the header of a trusted proxy, and on loopback, where
nothing to sign in with is
set up, whoever is on this machine.
"""

from __future__ import annotations

import hashlib
import ipaddress
import time
from http.cookies import CookieError, SimpleCookie

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from triage.service import failure
from triage.service.limits import Buckets
from triage.service.principal import LOCAL, Principal, Role, role_of, scopes_of
from triage.service.sessions import Session
from triage.service.state import Service
from triage.settings.web import Web
from triage.store.tokens import Token

FRESH = 2.0  # seconds for which what the store said of a token counts
WRONG_A_MINUTE = 30


class Identify:
    """Sets scope["triage.principal"] to a Principal or None, and scope["triage.address"]; refuses wrong tokens with
    401.
    """

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app = app
        self._service = service
        self._known: dict[str, tuple[float, Principal | None]] = {}
        self._alive: dict[str, tuple[float, bool]] = {}
        self._wrong = Buckets(WRONG_A_MINUTE)
        self._proxies = Proxies(service.settings.web)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        scope["triage.address"] = address = self._proxies.address(scope, headers)
        given = headers.get("authorization")
        if given is not None:
            who = await self._by_token(given)
            if who is None:
                wait = self._wrong.take(address)
                status, said = (
                    (429, "too many wrong tokens") if wait else (401, "this token is wrong, revoked or too old")
                )
                more = (
                    {"Retry-After": "60"}
                    if wait
                    else {"WWW-Authenticate": 'Bearer realm="triage", error="invalid_token"'}
                )
                await failure.answer(Request(scope), status, said, headers=more)(scope, receive, send)
                return
            scope["triage.principal"] = who
        else:
            scope["triage.principal"] = (
                await self._by_cookie(headers) or self._proxies.principal(scope, headers) or self._local()
            )
        await self._app(scope, receive, send)

    def _local(self) -> Principal | None:
        return None if self._service.sign_in else LOCAL

    async def _by_token(self, given: str) -> Principal | None:
        kind, _, secret = given.partition(" ")
        if kind.lower() != "bearer":
            return None
        key, now = hashlib.sha256(secret.strip().encode()).hexdigest(), time.monotonic()
        found = self._known.get(key)
        if found is None or now - found[0] > FRESH:
            token = await run_in_threadpool(self._service.store.tokens.check, secret.strip())
            if len(self._known) > 10_000:
                self._known.clear()
            found = self._known[key] = now, principal_of(token) if token is not None else None
        return found[1]

    async def _by_cookie(self, headers: Headers) -> Principal | None:
        value = cookie(headers, self._service.sessions.cookie)
        session = self._service.sessions.read(value) if value else None
        if session is None:
            return None
        return session.principal if await self._is_alive(session) else None

    async def _is_alive(self, session: Session) -> bool:
        now = time.monotonic()
        found = self._alive.get(session.id)
        if found is None or now - found[0] > FRESH:
            if len(self._alive) > 10_000:
                self._alive.clear()
            found = self._alive[session.id] = now, await run_in_threadpool(self._asked, session)
        return found[1]

    def _asked(self, session: Session) -> bool:
        """Has it not been ended, and may the token it was opened with still be used?"""
        if self._service.store.beside.session_ended(session.id):
            return False
        token = self._service.store.tokens.get(session.token) if session.token is not None else None
        return session.token is None or (token is not None and token.alive(time.time()))


class Proxies:
    """The reverse proxies that are trusted, and what they say."""

    def __init__(self, web: Web) -> None:
        self._web = web
        self._networks = [ipaddress.ip_network(item, strict=False) for item in web.trusted_proxies]

    def trusted(self, address: str) -> bool:
        """Is it one of them?"""
        try:
            found = ipaddress.ip_address(address)
        except ValueError:
            return False
        return any(found in network for network in self._networks if network.version == found.version)

    def address(self, scope: Scope, headers: Headers) -> str:
        """Of the client; what a trusted proxy says of it in X-Forwarded-For, the last that is no proxy itself."""
        client = scope.get("client")
        address = str(client[0]) if client else "local"
        if not self._networks or not self.trusted(address):
            return address
        for item in reversed(headers.get("x-forwarded-for", "").split(",")):
            if item.strip() and not self.trusted(item.strip()):
                return item.strip()[:64]
        return address

    def principal(self, scope: Scope, headers: Headers) -> Principal | None:
        """Who a trusted proxy says has signed in; nobody when the header comes from elsewhere."""
        web, client = self._web, scope.get("client")
        if not web.proxy_user or client is None or not self.trusted(str(client[0])):
            return None
        names = headers.getlist(web.proxy_user)
        name = " ".join(names[0].split())[:80] if len(names) == 1 else ""
        if not name:
            return None
        groups = headers.get(web.proxy_role, "").replace(";", ",").split(",") if web.proxy_role else []
        role = role_by_groups(web, [group.strip() for group in groups])
        return Principal(name, role, scopes_of(role), "proxy", f"proxy {name}")


def role_by_groups(web: Web, groups: list[str]) -> Role:
    """The highest role that one of the groups gives, else the default; a group called like a role gives it only when it
    is set so.
    """
    order: tuple[Role, ...] = ("viewer", "submitter", "curator", "admin")
    have = [web.groups[group] for group in groups if group in web.groups]
    return max(have, key=order.index) if have else web.default_role


def principal_of(token: Token) -> Principal:
    """Who a token stands for."""
    scopes = frozenset(scope for scope in ("read", "ingest", "curate", "admin") if scope in token.scopes)
    return Principal(token.name, role_of(scopes), scopes, "token", f"token {token.id}")


def cookie(headers: Headers, name: str) -> str | None:
    """A cookie of the request; None when it is not there or the header is none."""
    for line in headers.getlist("cookie"):
        try:
            found = SimpleCookie(line).get(name)
        except CookieError:
            continue
        if found is not None:
            return found.value
    return None
