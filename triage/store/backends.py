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
        raise OptionError("a store in PostgreSQL is not implemented", hint="name a file with --store")
    connections = SqliteConnections(location, create=create, read_only=read_only)
    try:
        migrations.migrate(connections)
    except BaseException:
        connections.close()
        raise
    return connections

