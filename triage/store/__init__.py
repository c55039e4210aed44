"""The store: a file of SQLite, or a database of PostgreSQL, with everything that triage stores.

Only this package contains SQL.

    with Store.open("triage.db") as store:
        result = store.incidents.add(diagnosis)
        store.incidents.get(result.id).diagnosis

Everything is redacted before it is stored.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from triage.base.errors import OptionError, StoreError
from triage.store.audit import Audit
from triage.store.backends import open_connections
from triage.store.clusters import Clusters
from triage.store.incidents import Incidents, StoreResult
from triage.store.interface import Connections
from triage.store.location import OFF, VARIABLE, DatabaseUrl, store_location
from triage.store.outbox import Outbox

if TYPE_CHECKING:
    from triage.store.cause_work import CauseWork
    from triage.store.causes import Causes
    from triage.store.cluster_actions import ClusterActions
    from triage.store.cluster_engine import ClusterEngine
    from triage.store.feedback import FeedbackLog
    from triage.store.host_history import HostHistory
    from triage.store.notifications import Notifications
    from triage.store.saved_views import SavedViews
    from triage.store.search import Search
    from triage.store.service_data import ServiceData
    from triage.store.stats_cache import StatsCache
    from triage.store.subscriptions import Subscriptions
    from triage.store.tasks import Tasks
    from triage.store.tokens import Tokens
    from triage.store.visits import Visits

__all__ = ["Store", "StoreError", "StoreResult", "store_location"]

MOST_PARTS = 200  # sets of facts whose statistics are cached


class Store:
    """An open store, for many threads and many processes at once."""

    def __init__(self, connections: Connections, engine: ClusterEngine | None = None) -> None:
        self.connections = connections
        self.clusters = Clusters(connections, engine)
        self.incidents = Incidents(connections, self.clusters)
        self.outbox = Outbox(connections)
        self.audit = Audit(connections)
        self._part_caches: dict[tuple[tuple[str, str], ...], StatsCache] = {}

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str] | DatabaseUrl | None = None,
        *,
        create: bool = True,
        read_only: bool = False,
        engine: ClusterEngine | None = None,
    ) -> Store:
        """Open the store at `path`, or at `store_location()`; without `create`, or with `read_only`, it must exist.

        A store of an older version is migrated. Raises StoreError when it cannot be used, OptionError when TRIAGE_STORE
        is off.
        """
        location = store_location(path)
        if location is None:
            raise OptionError(
                f"{VARIABLE} is {OFF}, so there is no store",
                hint="name a store with --store, or unset the variable",
            )
        return cls(open_connections(location, create=create, read_only=read_only), engine)

    def visible_to(self, facts: Sequence[tuple[str, str]], reader: str) -> Store:
        """Return the store as somebody sees it who may only read incidents whose job has one of some facts.

        `reader` is the name of that person. It uses the connections of this store.
        """
        from triage.store.visibility import VisibleConnections

        part = Store(VisibleConnections(self.connections, facts, reader), self.clusters.engine)
        if len(self._part_caches) >= MOST_PARTS:
            self._part_caches.clear()
        part.stats_cache = self._part_caches.setdefault(tuple(facts), part.stats_cache)
        return part

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self.connections.close()

    @cached_property
    def causes(self) -> Causes:
        """The causes of failures with the sums of their incidents."""
        from triage.store.causes import Causes

        return Causes(self.connections, self.clusters, self.cause_work, self.stats_cache)

    @cached_property
    def stats_cache(self) -> StatsCache:
        """The cached statistics, those of a part shared by all who see the same."""
        from triage.store.stats_cache import StatsCache

        return StatsCache(self.connections)

    @cached_property
    def cause_work(self) -> CauseWork:
        """What people do about causes."""
        from triage.store.cause_work import CauseWork

        return CauseWork(self.connections)

    @cached_property
    def saved_views(self) -> SavedViews:
        """The saved views of the lists."""
        from triage.store.saved_views import SavedViews

        return SavedViews(self.connections)

    @cached_property
    def visits(self) -> Visits:
        """When people last looked at the list of causes."""
        from triage.store.visits import Visits

        return Visits(self.connections)

    @cached_property
    def subscriptions(self) -> Subscriptions:
        """What people have posted to a target."""
        from triage.store.subscriptions import Subscriptions

        return Subscriptions(self.connections)

    def host_history(self, host: str, device: str | None = None) -> HostHistory:
        """What failed on a host, or on one of its devices."""
        from triage.store.host_history import read_history

        return read_history(self.connections, self.causes, self.cause_work, host, device)

    @cached_property
    def cluster_actions(self) -> ClusterActions:
        """The decisions of people about clusters."""
        from triage.store.cluster_actions import ClusterActions

        return ClusterActions(self.connections, self.clusters)

    @cached_property
    def feedback(self) -> FeedbackLog:
        """The feedback on diagnoses."""
        from triage.store.feedback import FeedbackLog

        return FeedbackLog(self.connections, self.incidents)

    @cached_property
    def search(self) -> Search:
        """Lists, full-text search and statistics."""
        from triage.store.search import Search

        return Search(self.connections, self.incidents, self.stats_cache)

    @cached_property
    def tasks(self) -> Tasks:
        """The tasks of the service."""
        from triage.store.tasks import Tasks

        return Tasks(self.connections)

    @cached_property
    def tokens(self) -> Tokens:
        """The tokens for the service."""
        from triage.store.tokens import Tokens

        return Tokens(self.connections)

    @cached_property
    def service_data(self) -> ServiceData:
        """What the service stores besides incidents."""
        from triage.store.service_data import ServiceData

        return ServiceData(self.connections)

    @cached_property
    def notifications(self) -> Notifications:
        """The messages that were sent to chats and forges."""
        from triage.store.notifications import Notifications

        return Notifications(self.connections)
