"""Tokens for the service: shown once, stored as a hash, with a prefix and a checksum that leak scanners recognize.

A token is `trg_`, 40 letters and digits, and 6 that are their CRC-32 (as in GitHub's tokens), so that a scanner
recognizes a real one offline. The entropy is 238 bits, so one SHA-256 is enough for the hash.
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
from triage.store.interface import Connections

PREFIX = "trg_"
ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase
BODY, CHECK = 40, 6
PREFIX_LENGTH = 12  # stored characters, by which a person recognizes a token
PATTERN = lazy_re(rf"{PREFIX}[0-9A-Za-z]{{{BODY + CHECK}}}")
USED_EVERY = 60.0
SCOPES = ("read", "ingest", "curate", "admin")


@dataclass(frozen=True, slots=True)
class Token:
    """A stored token. Times are seconds; `prefix` are its first characters."""

    id: int
    name: str
    prefix: str
    scopes: tuple[str, ...]
    created_at: float
    expires_at: float | None = None
    used_at: float | None = None
    revoked_at: float | None = None

    def is_valid(self, now: float) -> bool:
        """Whether it may be used."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


def checksum(body: str) -> str:
    """Return the checksum, the last six characters of a token."""
    number, digits = zlib.crc32(body.encode("ascii")), ""
    for _ in range(CHECK):
        number, rest = divmod(number, len(ALPHABET))
        digits = ALPHABET[rest] + digits
    return digits


def is_well_formed(secret: str) -> bool:
    """Whether the form and the checksum are right, without a look into the store."""
    return PATTERN.fullmatch(secret) is not None and checksum(secret[len(PREFIX) : -CHECK]) == secret[-CHECK:]


class Tokens:
    """The tokens of a store."""

    def __init__(self, connections: Connections) -> None:
        self._db = connections

    def create(
        self, name: str, scopes: Sequence[str], *, actor: str, expires_at: float | None = None, now: float | None = None
    ) -> tuple[str, Token]:
        """Create a token; return (secret, stored token). Raises OptionError for a used name or unknown scopes."""
        name, when = " ".join(name.split())[:80], time.time() if now is None else now
        if not name:
            raise OptionError("a token needs a name", hint="name the person or program that will use it")
        if not scopes or set(scopes) - set(SCOPES):
            raise OptionError(f"unknown scopes: {', '.join(scopes) or 'none'}", hint="use some of " + ", ".join(SCOPES))
        body = "".join(secrets.choice(ALPHABET) for _ in range(BODY))
        secret = PREFIX + body + checksum(body)
        scopes_json = json.dumps([scope for scope in SCOPES if scope in scopes])
        with self._db.write() as db:
            if db.execute("SELECT 1 FROM token WHERE name = ? AND revoked_at IS NULL", (name,)).fetchone():
                raise OptionError(f"there is a token called {name!r}", hint="revoke it first, or choose another name")
            (number,) = db.execute(
                "INSERT INTO token (name, prefix, hash, scopes, created_at, expires_at) VALUES (?, ?, ?, ?, ?, ?) "
                "RETURNING id",
                (name, secret[:PREFIX_LENGTH], _hash(secret), scopes_json, when, expires_at),
            ).fetchone()
            audit.write_entry(
                db, when, actor, "token create", name, {"scopes": json.loads(scopes_json), "expires_at": expires_at}
            )
        return secret, self._get(number)

    def verify(self, secret: str, *, now: float | None = None) -> Token | None:
        """Return the token of a secret if it may be used; its last use is stored to the minute."""
        if not is_well_formed(secret):
            return None
        when = time.time() if now is None else now
        row = self._db.read_one("SELECT * FROM token WHERE hash = ?", (_hash(secret),))
        token = _token(row) if row is not None else None
        if token is None or not token.is_valid(when):
            return None
        if self._db.writable and (token.used_at is None or when - token.used_at > USED_EVERY):
            self._db.execute("UPDATE token SET used_at = ? WHERE id = ?", (when, token.id), serial=False)
        return token

    def get(self, number: int) -> Token | None:
        """Return a token by its number, or None."""
        row = self._db.read_one("SELECT * FROM token WHERE id = ?", (number,))
        return _token(row) if row is not None else None

    def revoke(self, reference: str, *, actor: str, now: float | None = None) -> Token:
        """Revoke a token by its name, number or first characters. Raises NotFoundError."""
        when = time.time() if now is None else now
        with self._db.write() as db:
            rows = db.execute(
                "SELECT * FROM token WHERE revoked_at IS NULL AND (name = ? OR CAST(id AS TEXT) = ? OR prefix = ?)",
                (reference, reference, reference[:PREFIX_LENGTH]),
            ).fetchall()
            if len(rows) != 1:
                problem = "several tokens are" if rows else "there is no token"
                raise NotFoundError(
                    f"{problem} called {reference!r}", hint="`triage token list` shows them with their numbers"
                )
            db.execute("UPDATE token SET revoked_at = ? WHERE id = ?", (when, rows[0]["id"]))
            audit.write_entry(db, when, actor, "token revoke", rows[0]["name"], {})
        return self._get(rows[0]["id"])

    def list_tokens(self, *, revoked: bool = False) -> list[Token]:
        """Return the tokens in the order of their creation."""
        rows = self._db.read(f"SELECT * FROM token {'' if revoked else 'WHERE revoked_at IS NULL'} ORDER BY id")
        return [_token(row) for row in rows]

    def has_valid_token(self, *, now: float | None = None) -> bool:
        """Whether any token may be used."""
        when = time.time() if now is None else now
        return any(token.is_valid(when) for token in self.list_tokens())

    def _get(self, number: int) -> Token:
        return _token(self._db.read("SELECT * FROM token WHERE id = ?", (number,))[0])


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _token(row: Any) -> Token:
    values = {name: row[name] for name in Token.__dataclass_fields__ if name != "scopes"}
    return Token(**values, scopes=tuple(json.loads(row["scopes"])))
