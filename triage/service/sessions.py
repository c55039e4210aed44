"""The session of a browser: who it is, signed, in a cookie that no script can read. The server keeps only which were
ended before their time.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any

from itsdangerous import BadSignature, URLSafeTimedSerializer
from starlette.responses import Response

from triage.service.principal import SCOPES, Principal, Role, role_of, scopes_of

PLAIN, SECURE = "triage_session", "__Host-triage"


@dataclass(frozen=True, slots=True)
class Session:
    """`token` is the number of the token it was opened with: when that is revoked, so is the session. `id` is what
    signing out ends.
    """

    principal: Principal
    token: int | None
    id: str


class Sessions:
    """Makes cookies and reads them."""

    def __init__(self, secret: bytes, hours: float, https: bool) -> None:
        self._signer = URLSafeTimedSerializer(secret, salt="triage session 1")
        self.seconds = int(hours * 3600)
        self._https = https
        self.cookie = SECURE if https else PLAIN

    def open(
        self,
        response: Response,
        name: str,
        *,
        role: Role | None = None,
        scopes: tuple[str, ...] = (),
        token: int | None = None,
    ) -> None:
        """Sign somebody in by this response."""
        held = sorted(scopes_of(role) if role else set(scopes) & set(SCOPES))
        value = self._signer.dumps({"name": name[:80], "scopes": held, "token": token, "id": secrets.token_hex(12)})
        assert isinstance(value, str)
        response.set_cookie(
            self.cookie, value, max_age=self.seconds, path="/", secure=self._https, httponly=True, samesite="lax"
        )

    def close(self, response: Response) -> None:
        """Sign out."""
        response.delete_cookie(self.cookie, path="/", secure=self._https, httponly=True, samesite="lax")

    def read(self, value: str) -> Session | None:
        """Who it is; None for a cookie that is too old or not ours."""
        try:
            found: Any = self._signer.loads(value, max_age=self.seconds)
            scopes = frozenset(scope for scope in SCOPES if scope in found["scopes"])
            name, token, identifier = str(found["name"]), found["token"], str(found["id"])
        except (BadSignature, KeyError, TypeError):
            return None
        return Session(Principal(name, role_of(scopes), scopes, "session", f"session {name}"), token, identifier)
