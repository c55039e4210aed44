"""What triage remembers: one SQLite file, and the only room that speaks SQL.

    with Store.open("triage.db") as store:
        stored = store.incidents.add(diagnosis)
        store.incidents.get(stored.id).diagnosis

Everything that goes in passes the redaction first. Rooms of the store: incidents, clusters and moves (what people
decide about them),
feedback, search (lists, full text, sums), outbox, told (what was told to whom), audit, care (checks, retention) and
transfer (JSONL).
"""

from __future__ import annotations

import os
from functools import cached_property
from typing import TYPE_CHECKING

from triage.base.errors import OptionError, StoreError
from triage.store import migrations
from triage.store.audit import Audit
from triage.store.clusters import Clusters
from triage.store.connection import Connections
from triage.store.incidents import Incidents, Stored
from triage.store.outbox import Outbox
from triage.store.place import OFF, VARIABLE, place

if TYPE_CHECKING:
    from triage.store.beside import Beside
    from triage.store.engine import Engine
    from triage.store.feedback import Speaking
    from triage.store.moves import Moves
    from triage.store.search import Search
    from triage.store.tasks import Tasks
    from triage.store.tokens import Tokens
    from triage.store.told import Told

__all__ = ["Store", "StoreError", "Stored", "place"]


class Store:
    """An open store. It may be used by many threads and, as a file, by many processes at once."""

    def __init__(self, connections: Connections, engine: Engine | None = None) -> None:
        self.connections = connections
        self.clusters = Clusters(connections, engine)
        self.incidents = Incidents(connections, self.clusters)
        self.outbox = Outbox(connections)
        self.audit = Audit(connections)

    @classmethod
    def open(
        cls, path: str | os.PathLike[str] | None = None, *, create: bool = True, engine: Engine | None = None
    ) -> Store:
        """Open the store at `path`, or where `place` says; without `create` it must be there.

        A store of an older version is brought up to date. Raises StoreError when it cannot be used, OptionError when
        TRIAGE_STORE is off.
        """
        found = place(path)
        if found is None:
            raise OptionError(
                f"{VARIABLE} is {OFF}, so there is no store to use", hint="name one with --store FILE, or unset it"
            )
        connections = Connections(found, create=create)
        try:
            migrations.bring_up_to_date(connections)
        except BaseException:
            connections.close()
            raise
        return cls(connections, engine)

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close it; what was stored is in the file."""
        self.connections.close()

    @cached_property
    def moves(self) -> Moves:
        """What people decide about clusters."""
        from triage.store.moves import Moves

        return Moves(self.connections, self.clusters)

    @cached_property
    def feedback(self) -> Speaking:
        """What people say about diagnoses."""
        from triage.store.feedback import Speaking

        return Speaking(self.connections, self.incidents)

    @cached_property
    def search(self) -> Search:
        """Lists, full text and sums."""
        from triage.store.search import Search

        return Search(self.connections, self.incidents)

    @cached_property
    def tasks(self) -> Tasks:
        """Work that waits for a process."""
        from triage.store.tasks import Tasks

        return Tasks(self.connections)

    @cached_property
    def tokens(self) -> Tokens:
        """Tokens that open the service."""
        from triage.store.tokens import Tokens

        return Tokens(self.connections)

    @cached_property
    def beside(self) -> Beside:
        """What the service keeps beside incidents."""
        from triage.store.beside import Beside

        return Beside(self.connections)

    @cached_property
    def told(self) -> Told:
        """What was told to whom, in which message."""
        from triage.store.told import Told

        return Told(self.connections)
