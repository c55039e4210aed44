"""`--notify`: a diagnosis is stored together with the posts about it, and what is due is sent at once, or while a watch
goes on.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import os
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from triage.base.errors import OptionError
from triage.model.diagnosis import Diagnosis
from triage.model.evidence import Warning
from triage.model.watch import Episode

if TYPE_CHECKING:
    from triage.settings import Settings
    from triage.settings.routing import Routing
    from triage.store import Store


def told(diagnosis: Diagnosis, store: Path | None, no_store: bool) -> Diagnosis:
    """The diagnosis as stored. What could not be sent now waits in the outbox, and the report says so. Raises
    OptionError without routes.
    """
    from triage.bots import bots
    from triage.bots.announce import remember
    from triage.bots.work import work
    from triage.store import Store

    settings = _settings(store, no_store)
    with Store.open(settings.store.path) as opened:
        stored = remember(opened, diagnosis, settings.routing)
        done = work(opened, bots(settings), give_up_days=settings.routing.give_up_days)
    if not done.later and not done.dead:
        return stored.diagnosis
    said = f"{done.later + done.dead} posts did not arrive yet; `triage outbox list` shows them"
    return dataclasses.replace(stored.diagnosis, warnings=(*stored.diagnosis.warnings, Warning("not-told", None, said)))


class Telling:
    """What a watch says of failures, as posts: one message an attempt, edited while the answer changes."""

    def __init__(self, store: Store, routing: Routing, paths: Sequence[str]) -> None:
        self._store = store
        self._routing = routing
        whole = os.path.commonpath([os.path.abspath(path) for path in paths])
        self._job = os.path.basename(whole.rstrip("/")) or whole, whole if len(paths) > 1 else paths[0]
        self._name = "watch:" + hashlib.sha256("\0".join(sorted(map(os.path.abspath, paths))).encode()).hexdigest()[:16]

    def tell(self, diagnosis: Diagnosis, attempt: int, first: float) -> None:
        """`first`: when something was said of this attempt first; it tells this job from others under the same paths."""
        self._announce(diagnosis, None, attempt, first)

    def pace(self, episode: Episode) -> None:
        """What is out of step, and when it no longer is: one message an episode."""
        from triage.bots.announce import announce_pace
        from triage.bots.pace import Pace

        announce_pace(
            self._store,
            f"{self._name}:{episode.began:.3f}/pace",
            Pace(*self._job, episode),
            self._routing,
            now=time.time(),
        )

    def keep(self, diagnosis: Diagnosis, attempt: int, first: float) -> None:
        """The job is over: it becomes an incident, and the message one about it."""
        with self._store.connections.write():
            stored = self._store.incidents.add(diagnosis)
            self._announce(stored.diagnosis, stored.id, attempt, first)

    def _announce(self, diagnosis: Diagnosis, incident: str | None, attempt: int, first: float) -> None:
        from triage.bots.announce import Topic, announce

        announce(
            self._store,
            Topic(f"{self._name}:{first:.3f}/{attempt}", incident, diagnosis),
            self._routing,
            now=time.time(),
        )


@contextlib.contextmanager
def telling(paths: Sequence[str], store: Path | None, no_store: bool) -> Iterator[Telling]:
    """Posts are sent by a thread while the block runs, and what is due once more at its end. Raises OptionError without
    routes.
    """
    from triage.bots import bots
    from triage.bots.work import run, work
    from triage.store import Store

    settings = _settings(store, no_store)
    made, days = bots(settings), settings.routing.give_up_days
    stop = threading.Event()
    with Store.open(settings.store.path) as opened:
        worker = threading.Thread(
            target=run, args=(opened, made, stop), kwargs={"give_up_days": days, "every": 0.2}, daemon=True
        )
        worker.start()
        try:
            yield Telling(opened, settings.routing, paths)
        finally:
            stop.set()
            worker.join()
            work(opened, made, give_up_days=days)


def _settings(store: Path | None, no_store: bool) -> Settings:
    from triage.cli.config import loaded

    settings = loaded({"store.path": store}).settings
    if no_store:
        raise OptionError("--notify needs the store, where posts wait until they arrive", hint="leave out --no-store")
    if not settings.routing.routes:
        raise OptionError("no route says to whom", hint="write [[routing.routes]] into the settings, see docs/slack.md")
    return settings
