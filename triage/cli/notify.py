"""Store a diagnosis and notify the routes: at once for `--notify`, or in a thread while a watch runs."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from triage.base.errors import OptionError, StoreError
from triage.bots import build_bots
from triage.bots.announce import Topic, announce, announce_pace, store_and_announce
from triage.bots.pace import PaceReport
from triage.bots.work import deliver_due, run
from triage.cli.config import load_settings
from triage.cli.ingest_job import save_settings, warn_not_stored
from triage.model import Diagnosis, Episode, Warning
from triage.model.store import Recurrence
from triage.render.phrases import format_count
from triage.store import Store
from triage.store.recurrence import find_recurrence

if TYPE_CHECKING:
    from triage.settings import Settings
    from triage.settings.notifications import RoutingSettings


def store_and_notify(
    diagnosis: Diagnosis, settings: Settings, own: Mapping[str, Any]
) -> tuple[Diagnosis, Recurrence | None]:
    """Store the diagnosis with the job's own settings and notify the routes.

    Return it as stored, and how often its cause ended jobs before. Notifications that could not be sent wait in the
    outbox, and the report gets a warning; so it does for a store that cannot be used.
    """
    try:
        with Store.open(settings.store.path) as opened:
            stored = store_and_announce(opened, diagnosis, settings.routing)
            save_settings(opened, stored.id, own)
            recurrence = find_recurrence(opened, stored.id)
            counts = deliver_due(opened, build_bots(settings), give_up_days=settings.routing.give_up_days)
    except StoreError as error:
        return warn_not_stored(diagnosis, error), None
    warnings = [*stored.diagnosis.warnings]
    if counts.dead:
        message = f"{format_count(counts.dead, 'notification')} refused; `triage outbox list --state dead` says why"
        warnings.append(Warning("not-notified", None, message))
    if counts.later:
        message = f"{format_count(counts.later, 'notification')} not delivered yet; `triage outbox list` says why"
        warnings.append(Warning("not-notified", None, message))
    return dataclasses.replace(stored.diagnosis, warnings=tuple(warnings)), recurrence


class WatchNotifier:
    """Notifies the routes of the events of a watch: one message per attempt, edited when the diagnosis changes."""

    def __init__(self, store: Store, routing: RoutingSettings, paths: Sequence[str]) -> None:
        self._store = store
        self._routing = routing
        common = os.path.commonpath([os.path.abspath(path) for path in paths])
        self._job = os.path.basename(common.rstrip("/")) or common, common if len(paths) > 1 else paths[0]
        self._name = "watch:" + hashlib.sha256("\0".join(sorted(map(os.path.abspath, paths))).encode()).hexdigest()[:16]

    def notify_failure(self, diagnosis: Diagnosis, attempt: int, first_at: float) -> None:
        """Notify of a failure. `first_at`, the time of the first report, tells jobs under the same paths apart."""
        self._announce(diagnosis, None, attempt, first_at)

    def notify_pace(self, episode: Episode) -> None:
        """Notify of pace problems and of their end: one message per episode."""
        topic = f"{self._name}:{episode.began_at:.3f}/pace"
        announce_pace(self._store, topic, PaceReport(*self._job, episode), self._routing, now=time.time())

    def store(self, diagnosis: Diagnosis, own: Mapping[str, Any] | None, attempt: int, first_at: float) -> None:
        """Store the diagnosis of a job that is over with its settings; the message becomes that of the incident."""
        with self._store.connections.write():
            stored = self._store.incidents.add(diagnosis)
            save_settings(self._store, stored.id, own)
            self._announce(stored.diagnosis, stored.id, attempt, first_at)

    def _announce(self, diagnosis: Diagnosis, incident: str | None, attempt: int, first_at: float) -> None:
        topic = Topic(f"{self._name}:{first_at:.3f}/{attempt}", incident, diagnosis)
        announce(self._store, topic, self._routing, now=time.time())


@contextlib.contextmanager
def watch_notifier(paths: Sequence[str], store: str | None, no_store: bool) -> Iterator[WatchNotifier]:
    """Yield a notifier while a thread delivers; deliver once more at the end. Raises OptionError without routes."""
    settings = load_routes(store, no_store)
    bots, days = build_bots(settings), settings.routing.give_up_days
    stop = threading.Event()
    with Store.open(settings.store.path) as opened:
        worker = threading.Thread(
            target=run, args=(opened, bots, stop), kwargs={"give_up_days": days, "every": 0.2}, daemon=True
        )
        worker.start()
        try:
            yield WatchNotifier(opened, settings.routing, paths)
        finally:
            stop.set()
            worker.join()
            deliver_due(opened, bots, give_up_days=days)


def load_routes(store: str | None, no_store: bool) -> Settings:
    """Return the settings with the routes for `--notify`. Raises OptionError without routes or a store."""
    settings = load_settings({"store.path": store}).settings
    if no_store:
        raise OptionError("--notify needs the store for its outbox", hint="leave out --no-store")
    if not settings.routing.routes and not settings.routing.subscriptions:
        raise OptionError(
            "--notify needs a route, and the settings have none",
            hint="write [[routing.routes]] into the settings, see docs/slack.md",
        )
    return settings
