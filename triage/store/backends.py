"""Open the database of a store and migrate it: the only place that chooses between SQLite and PostgreSQL."""

from __future__ import annotations

from triage.base.errors import OptionError
from triage.store import migrations
from triage.store.interface import Connections
from triage.store.location import DatabaseUrl, StoreLocation
from triage.store.sqlite import SqliteConnections


def open_connections(location: StoreLocation, *, create: bool = True, read_only: bool = False) -> Connections:
    """Return the connections of a store of this version; without `create`, or with `read_only`, it must exist.

    Raises StoreError, and OptionError when the package for PostgreSQL is not installed.
    """
    if isinstance(location, DatabaseUrl):
        return _open_postgres(location, create=create, read_only=read_only)
    connections = SqliteConnections(location, create=create, read_only=read_only)
    try:
        migrations.migrate(connections)
    except BaseException:
        connections.close()
        raise
    return connections


def _open_postgres(location: DatabaseUrl, *, create: bool, read_only: bool) -> Connections:
    """Import what PostgreSQL needs only now: an ingest into a file must start fast and needs no such package."""
    try:
        from triage.store.postgres import open_postgres
    except ImportError as error:
        if error.name != "psycopg":
            raise
        hint = "pip install 'triage-kb[postgres]', or name a file with --store"
        raise OptionError("the package psycopg is not installed, which PostgreSQL needs", hint=hint) from None
    return open_postgres(location, create=create, read_only=read_only)
