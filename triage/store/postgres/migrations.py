"""Create and migrate the tables by the numbered steps `steps/NNNN.sql`. A released step is never changed.

A step must leave tables with which triage of the version before still works, because nodes are upgraded one after the
other: it adds tables, columns with a default at the end, and indexes; what is no longer used is removed one release
later. So no code may rely on a table having no other columns than those it knows.
"""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING

from triage.base.errors import StoreError

if TYPE_CHECKING:
    from triage.store.postgres.connection import PostgresConnections

VERSION = 8  # the number of files in steps/


def migrate(connections: PostgresConnections, *, create: bool = True) -> int:
    """Apply the missing steps in one transaction; return their number.

    Of several nodes that start at once, one migrates and the others wait for it. Raises StoreError for a database of a
    newer version, and without `create` for one without a store.
    """
    applied = _check_version(connections, create)
    if applied == VERSION:
        return 0
    if not connections.writable:
        hint = "open it once with a user who may create tables, or run `triage db migrate` there"
        raise StoreError(
            "the database has no store of this version and is read-only", hint=hint, path=str(connections.location)
        )
    with connections.write() as db:  # serial: another node may have migrated it meanwhile
        applied = _check_version(connections, create)
        for number in range(applied + 1, VERSION + 1):
            for statement in read_step(number):
                db.execute(statement)
            db.execute("INSERT INTO schema_version (version) VALUES (?)", (number,))
    return VERSION - applied


def read_step(number: int) -> list[str]:
    """Return the statements of a step. They end with a semicolon at the end of a line; comments are lines of --."""
    text = (resources.files(__package__) / "steps" / f"{number:04}.sql").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("--")]
    return [statement for part in "\n".join(lines).split(";\n") if (statement := part.strip().rstrip(";"))]


def _check_version(connections: PostgresConnections, create: bool) -> int:
    applied = connections.schema_version()
    if applied > VERSION:
        hint = "update triage on this machine too, or name another database with --store"
        raise StoreError(
            f"the store was written by a newer triage (version {applied}, this one knows {VERSION})",
            hint=hint,
            path=str(connections.location),
        )
    if applied == 0 and not create:
        hint = "`triage ingest PATH --store postgresql://…` creates it; check the name of the database and the schema"
        raise StoreError("the database has no store", hint=hint, path=str(connections.location))
    return applied
