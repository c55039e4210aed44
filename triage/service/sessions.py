"""Sessions of the pages, kept in signed cookies."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import Any

from itsdangerous import BadSignature, URLSafeTimedSerializer
from starlette.datastructures import Headers
from starlette.responses import Response

from triage.service.access import SCOPES, Principal, highest_role, scopes_of
from triage.settings.sections import Role

SESSION_COOKIE, SECURE_SESSION_COOKIE = "triage_session", "__Host-triage"


@dataclass(frozen=True, slots=True)
class Session:
    """A signed-in browser. `token` is the number of the token that opened the session; revoking it ends the session."""

    principal: Principal
    token: int | None
    id: str


class SessionCookies:
    """Writes and reads the cookie of a session: signed, and hidden from scripts.

    The store only remembers sessions that were signed out early.
    """

    def __init__(self, secret: bytes, hours: float, https: bool, rules: str = "") -> None:
        """`rules` is a digest of who sees what: a session ends when that changes."""
        self._rules = rules
        self._signer = URLSafeTimedSerializer(secret, salt="triage session 1")
        self._https = https
        self.max_age = int(hours * 3600)
        self.name = SECURE_SESSION_COOKIE if https else SESSION_COOKIE

    def open(
        self,
        response: Response,
        name: str,
        *,
        role: Role | None = None,
        scopes: tuple[str, ...] = (),
        token: int | None = None,
        groups: tuple[str, ...] = (),
    ) -> None:
        """Sign somebody in with this response; `groups` are those that a rule names."""
        granted = sorted(scopes_of(role) if role else set(scopes) & set(SCOPES))
        content = {"name": name[:80], "scopes": granted, "token": token, "id": secrets.token_hex(12)}
        if self._rules:
            content |= {"groups": list(groups), "rules": self._rules}
        value = self._signer.dumps(content)
        assert isinstance(value, str)
        response.set_cookie(
            self.name, value, max_age=self.max_age, path="/", secure=self._https, httponly=True, samesite="lax"
        )

    def close(self, response: Response) -> None:
        """Delete the cookie with this response."""
        response.delete_cookie(self.name, path="/", secure=self._https, httponly=True, samesite="lax")

    def read(self, headers: Headers) -> Session | None:
        """Return the session of a request; None without a cookie, or if it is expired, forged or of other rules."""
        try:
            content: Any = self._signer.loads(read_cookie(headers, self.name) or "", max_age=self.max_age)
            scopes = frozenset(scope for scope in SCOPES if scope in content["scopes"])
            name, token, session_id = str(content["name"]), content["token"], str(content["id"])
            groups, rules = tuple(map(str, content.get("groups", ()))), content.get("rules", "")
        except (BadSignature, KeyError, TypeError):
            return None
        if rules != self._rules:
            return None
        user = Principal(name, highest_role(scopes), scopes, "session", f"session {name}", groups)
        return Session(user, token, session_id)


def read_cookie(headers: Headers, name: str) -> str | None:
    """Return the value of a cookie; None if it is missing or the header is malformed."""
    for line in headers.getlist("cookie"):
        try:
            cookie = SimpleCookie(line).get(name)
        except CookieError:
            continue
        if cookie is not None:
            return cookie.value
    return None
