"""Explain errors of PostgreSQL: what happened, where, and what to do. No message contains the password."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

import psycopg
from psycopg.conninfo import conninfo_to_dict

from triage.base.errors import ReadOnlyStoreError, StoreError
from triage.store.location import DatabaseUrl

_AWAY = "check that the server runs and that this machine reaches it (pg_isready); nothing was lost of what was stored"
# By the beginning of the SQLSTATE (https://www.postgresql.org/docs/current/errcodes-appendix.html); the first that fits
# counts.
_STATES: Mapping[str, tuple[str, str]] = {
    "28": (
        "the server refuses this user or password",
        "set PGPASSWORD, write the password to ~/.pgpass, or ask who runs the server to let this user in (pg_hba.conf)",
    ),
    "3D000": ("there is no such database", "create it: `createdb NAME`; docs/postgres.md has the steps"),
    "42501": (
        "this user may not do that in this database",
        "let the owner of the database grant it: docs/postgres.md lists the permissions",
    ),
    "42P01": ("a table of the store is missing", "restore a backup, or name an empty database"),
    "53100": (
        "the server's disk is full; nothing of this was stored",
        "free some space on the server; what was stored before is still there",
    ),
    "53300": ("the server takes no more connections", "raise max_connections of the server, or lower web.processes"),
    "53200": ("the server is out of memory", "try again, and read the server's log"),
    "55P03": (
        "another process has locked the store for too long",
        "try again; `SELECT * FROM pg_stat_activity` on the server names the process",
    ),
    "40": ("the server ended this transaction because of another one; nothing of this was stored", "try again"),
    "0A000": ("another node changed the tables meanwhile; nothing of this was stored", "do it again"),
    "57014": ("the server ended a statement that took too long", "raise statement_timeout of the server, or ask less"),
    "57P03": ("the server is starting or stopping", "try again in a few seconds"),
    "57": ("the server was stopped", _AWAY),
    "08": ("the connection to the server broke", _AWAY),
    "25P03": ("the server ended a transaction that was idle for too long", "try again"),
    "XX": ("the database is damaged", "restore a backup of pg_dump; the server's log has details"),
    "58": ("the server's disk failed", "read the server's log, and check its disk"),
}
# libpq has no SQLSTATE for a connection that was not made: parts of its messages, with what they stand for.
_CONNECT = (
    ("authentication failed", "28"),
    ("no password supplied", "28"),
    ("no pg_hba.conf entry", "28"),
    ("role ", "28"),
    ("database ", "3D000"),
    ("too many clients", "53300"),
    ("remaining connection slots", "53300"),
    ("starting up", "57P03"),
    ("shutting down", "57P03"),
    ("recovery mode", "57P03"),
)
_READ_ONLY = "25006"
_OLD_PLAN = "0A000"  # a prepared statement whose columns a migration changed


def explain_error(error: psycopg.Error, location: DatabaseUrl, *, is_connecting: bool = False) -> StoreError:
    """Return the error as a StoreError with what to do."""
    text = without_secrets(_first_line(error), location)
    state = error.sqlstate or ""
    if state == _READ_ONLY:
        return explain_read_only(location)
    if is_connecting and not state:
        text_of_server = text.partition("FATAL:")[2] or text
        state = next((kind for part, kind in _CONNECT if part in text_of_server), "")
        if not state:
            return StoreError(f"the server cannot be reached ({text})", hint=_AWAY, path=str(location))
    if not state and isinstance(error, psycopg.OperationalError):
        state = "08"
    for prefix, (message, hint) in _STATES.items():
        if state.startswith(prefix):
            return StoreError(f"{message} ({text})", hint=hint, path=str(location))
    return StoreError(
        f"the store failed: {text}", hint="run `triage db check`, and read the server's log", path=str(location)
    )


def explain_read_only(location: DatabaseUrl) -> ReadOnlyStoreError:
    """Return the error of a write into a database that is read-only."""
    hint = "name the primary server: `postgresql://HOST1,HOST2/NAME?target_session_attrs=read-write` finds it"
    message = "the store is read-only: the server is a standby, or the user may only read"
    return ReadOnlyStoreError(message, hint=hint, path=str(location))


def explain_unknown_commit(error: psycopg.Error, location: DatabaseUrl) -> StoreError:
    """Return the error of a connection that broke while the server stored a transaction."""
    hint = "do it again: the same files are the same incident, and the same decision is refused or changes nothing"
    text = without_secrets(_first_line(error), location)
    return StoreError(
        f"the connection broke at the end, and it is not known whether this was stored ({text})",
        hint=hint,
        path=str(location),
    )


def is_lost_connection(error: psycopg.Error) -> bool:
    """Whether the connection is gone, or its prepared statements are of older tables, so that another one may work."""
    if error.sqlstate == _OLD_PLAN:
        return True
    return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError) and (error.sqlstate or "08")[:2] in (
        "08",
        "57",
    )


def without_secrets(text: str, location: DatabaseUrl) -> str:
    """Return a message of the server or of libpq without passwords: libpq quotes an address that it cannot read."""
    secrets = [location.url]
    with suppress(psycopg.Error):
        options = conninfo_to_dict(location.url)
        secrets += [str(value) for name, value in options.items() if name in ("password", "sslpassword") and value]
    address = location.url.partition("://")[2]
    user, at, _ = address.rpartition("@")
    secrets += [user.partition(":")[2]] if at and ":" in user else []
    for secret in secrets:
        text = text.replace(secret, "***") if secret else text
    return text


def _first_line(error: psycopg.Error) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return "; ".join(lines[:2]) or type(error).__name__
