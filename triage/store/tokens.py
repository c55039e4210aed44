"""Tokens that open the service: shown once, kept as a hash, with a prefix and a checksum by which leaks are found.

A token is `trg_`, 40 letters and digits, and 6 that are their CRC-32 (as GitHub's are), so that a scanner knows a real
one without asking.
Their entropy is 238 bits: one SHA-256 is enough to keep them by.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import string
import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from triage.base.errors import NotFoundError, OptionError
from triage.base.lazy_re import lazy_re
from triage.store import audit
from triage.store.connection import Connections

PREFIX = "trg_"
ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase
BODY, CHECK = 40, 6
SHOWN = 12  # characters by which a person knows a token again
FORM = lazy_re(rf"{PREFIX}[0-9A-Za-z]{{{BODY + CHECK}}}")
USED_EVERY = 60.0
SCOPES = ("read", "ingest", "curate", "admin")


@dataclass(frozen=True, slots=True)
class Token:
    """What is kept of a token. Times are seconds; `prefix` are its first characters."""

    id: int
    name: str
    prefix: str
    scopes: tuple[str, ...]
    created_at: float
    expires_at: float | None = None
    used_at: float | None = None
    revoked_at: float | None = None

    def alive(self, now: float) -> bool:
        """May it still be used?"""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


def checksum(body: str) -> str:
    """The last six characters."""
    number, digits = zlib.crc32(body.encode("ascii")), ""
    for _ in range(CHECK):
        number, rest = divmod(number, len(ALPHABET))
        digits = ALPHABET[rest] + digits
    return digits


def wellformed(secret: str) -> bool:
    """Could it be a token at all? A typing error or a made-up one is told without asking the store."""
    return FORM.fullmatch(secret) is not None and checksum(secret[len(PREFIX) : -CHECK]) == secret[-CHECK:]


class Tokens:
    """The tokens of a store."""

    def __init__(self, connections: Connections) -> None:
        self._db = connections

    def create(
        self, name: str, scopes: Sequence[str], *, actor: str, expires_at: float | None = None, now: float | None = None
    ) -> tuple[str, Token]:
        """(the token, what is kept of it). Raises OptionError for a name that is taken and for scopes that are none."""
        name, when = " ".join(name.split())[:80], time.time() if now is None else now
        if not name:
            raise OptionError("a token needs a name", hint="say who or what will use it")
        if not scopes or set(scopes) - set(SCOPES):
            raise OptionError(
                f"{', '.join(scopes) or 'nothing'} is no list of scopes", hint="some of " + ", ".join(SCOPES)
            )
        body = "".join(secrets.choice(ALPHABET) for _ in range(BODY))
        secret = PREFIX + body + checksum(body)
        kept = json.dumps([scope for scope in SCOPES if scope in scopes])
        with self._db.write() as db:
            if db.execute("SELECT 1 FROM token WHERE name = ? AND revoked_at IS NULL", (name,)).fetchone():
                raise OptionError(f"there is a token called {name!r}", hint="revoke it first, or choose another name")
            done = db.execute(
                "INSERT INTO token (name, prefix, hash, scopes, created_at, expires_at) VALUES (?, ?, ?, ?, ?, ?)",
                (name, secret[:SHOWN], _hash(secret), kept, when, expires_at),
            )
            audit.note(db, when, actor, "token create", name, {"scopes": json.loads(kept), "expires_at": expires_at})
        assert done.lastrowid is not None
        return secret, self._get(done.lastrowid)

    def check(self, secret: str, *, now: float | None = None) -> Token | None:
        """The token, if it may be used; its last use is remembered to the minute."""
        if not wellformed(secret):
            return None
        when = time.time() if now is None else now
        row = self._db.one("SELECT * FROM token WHERE hash = ?", (_hash(secret),))
        token = _token(row) if row is not None else None
        if token is None or not token.alive(when):
            return None
        if self._db.writable and (token.used_at is None or when - token.used_at > USED_EVERY):
            with self._db.write() as db:
                db.execute("UPDATE token SET used_at = ? WHERE id = ?", (when, token.id))
        return token

    def get(self, number: int) -> Token | None:
        """By its number: a session asks whether the token it was made with may still be used."""
        row = self._db.one("SELECT * FROM token WHERE id = ?", (number,))
        return _token(row) if row is not None else None

    def revoke(self, wanted: str, *, actor: str, now: float | None = None) -> Token:
        """Switch one off by its name, its number or its first characters. Raises NotFoundError."""
        when = time.time() if now is None else now
        with self._db.write() as db:
            rows = db.execute(
                "SELECT * FROM token WHERE revoked_at IS NULL AND (name = ? OR CAST(id AS TEXT) = ? OR prefix = ?)",
                (wanted, wanted, wanted[:SHOWN]),
            ).fetchall()
            if len(rows) != 1:
                said = "several tokens are" if rows else "there is no token"
                raise NotFoundError(
                    f"{said} called {wanted!r}", hint="`triage token list` shows them with their numbers"
                )
            db.execute("UPDATE token SET revoked_at = ? WHERE id = ?", (when, rows[0]["id"]))
            audit.note(db, when, actor, "token revoke", rows[0]["name"], {})
        return self._get(rows[0]["id"])

    def listed(self, *, revoked: bool = False) -> list[Token]:
        """In the order in which they were made."""
        rows = self._db.read(f"SELECT * FROM token {'' if revoked else 'WHERE revoked_at IS NULL'} ORDER BY id")
        return [_token(row) for row in rows]

    def any_alive(self, *, now: float | None = None) -> bool:
        """Can anybody come in by a token?"""
        when = time.time() if now is None else now
        return any(token.alive(when) for token in self.listed())

    def _get(self, number: int) -> Token:
        found = self.get(number)
        assert found is not None
        return found


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _token(row: Any) -> Token:
    values = {name: row[name] for name in Token.__dataclass_fields__ if name != "scopes"}
    return Token(**values, scopes=tuple(json.loads(row["scopes"])))
