"""The store in a database of PostgreSQL, by psycopg. Imported only where a store is named postgresql://…"""

from __future__ import annotations

from triage.store.location import DatabaseUrl
from triage.store.postgres.connection import PostgresConnections
from triage.store.postgres.migrations import migrate

__all__ = ["PostgresConnections", "open_postgres"]


def open_postgres(location: DatabaseUrl, *, create: bool = True, read_only: bool = False) -> PostgresConnections:
    """Return the connections of a store of this version; without `create`, its tables must exist. Raises StoreError."""
    connections = PostgresConnections(location, read_only=read_only)
    try:
        migrate(connections, create=create)
    except BaseException:
        connections.close()
        raise
    return connections
