"""A worker: claims a task, has it done in a cage, stores what came of it and the task's end in one transaction; and
keeps house.

Killed at any moment it loses nothing: what was not stored is begun again by another once its beats are missing.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from types import FrameType
from typing import Any

from triage.service import log
from triage.service.work import analysis, cage, files
from triage.settings import Settings
from triage.store import Store
from triage.store.tasks import Task

IDLE = 0.25
HOUSE = 60.0
KEEP_TASKS = 30 * 86_400.0
DAY = 86_400.0


class Worker:
    """One process, one task at a time."""

    def __init__(self, settings: Settings, store: Store) -> None:
        self.settings = settings
        self.store = store
        self.root = files.uploads(settings)
        self.owner = f"{socket.gethostname()}:{os.getpid()}"
        self.stopping = False
        self._housekept = 0.0
        files.ready(self.root)

    def run(self) -> None:
        """Until SIGTERM or SIGINT; a task that is being done is given back."""
        signal.signal(signal.SIGTERM, self._stop)
        signal.signal(signal.SIGINT, self._stop)
        parent = os.getppid()
        analysis.warm()
        while not self.stopping and os.getppid() == parent:
            if not self.step():
                time.sleep(IDLE)

    def step(self) -> bool:
        """Do one task, if there is one."""
        self._keep_house()
        task = self.store.tasks.claim(self.owner)
        if task is None:
            return False
        log.say("task begins", task=task.id, kind=task.kind, attempt=task.attempts)
        started = time.monotonic()
        out = files.part(self.root, f"result-{task.id}-{task.attempts}")
        try:
            how = self._do(task, out)
        finally:
            out.unlink(missing_ok=True)
            shutil.rmtree(
                self.root / "jobs" / f"{task.id}-{task.attempts}", ignore_errors=True
            )  # when its process was killed
        log.say("task ends", task=task.id, how=how, seconds=round(time.monotonic() - started, 3))
        return True

    def _do(self, task: Task, out: Path) -> str:
        """How it ended."""
        limits = self.settings.tasks
        self.store.connections.close()  # a connection must not live in two processes; the next use opens another

        def alive(news: Mapping[str, Any] | None) -> bool:
            return not self.stopping and self.store.tasks.beat(task, news)

        def work(say: analysis.Say) -> None:
            analysis.ingest(self.settings, self.root, task.payload, f"{task.id}-{task.attempts}", out, say)

        ended = cage.run(work, memory=limits.memory, seconds=limits.seconds, threads=limits.scan_threads, alive=alive)
        if ended.how == "stopped":
            if self.stopping:
                self.store.tasks.release(task)
                return "given back"
            self._end(task, "cancelled")
            return "cancelled"
        if ended.how != "done":
            self._end(task, "failed", error=ended.error)
            return f"failed: {ended.error.get('code')}"
        try:
            return self._keep(task, out)
        except _Lost:
            return "taken over by another"

    def _keep(self, task: Task, out: Path) -> str:
        """Store the diagnosis, its documents and the end of the task: all or nothing."""
        diagnosis, documents = analysis.read_back(out)
        with self.store.connections.write() as db:
            stored = self.store.incidents.add(diagnosis)
            result = {"incident": stored.id, "new": stored.new, "verdict": stored.diagnosis.verdict}
            if not self.store.tasks.end(db, task, "done", result=result):
                raise _Lost
            self.store.beside.put_origin(db, stored.id, task.actor, task.payload["place"], time.time())
            for kind, document in documents.items():
                self.store.beside.put_document(db, stored.id, kind, document)
        return "done"

    def _end(self, task: Task, state: Any, *, error: Mapping[str, Any] | None = None) -> None:
        with self.store.connections.write() as db:
            self.store.tasks.end(db, task, state, error=error)

    def _stop(self, _: int, __: FrameType | None) -> None:
        self.stopping = True

    def _keep_house(self) -> None:
        """Tasks whose process died are queued again; now and then old uploads and tasks go."""
        for identifier in self.store.tasks.orphans(self.settings.tasks.stale):
            log.say("task orphaned", task=identifier)
        now = time.time()
        if now - self._housekept < HOUSE:
            return
        self._housekept = now
        self.store.tasks.forget(now - KEEP_TASKS)
        old = self.store.beside.old_uploads(now - self.settings.tasks.keep_days * DAY)
        for digest in old:
            files.blob(self.root, digest).unlink(missing_ok=True)
        self.store.beside.drop_uploads(old)
        for path in (self.root / "parts").iterdir():
            if now - path.stat().st_mtime > DAY:
                path.unlink(missing_ok=True)


class _Lost(Exception):
    """The task is somebody else's by now: nothing of this attempt is stored."""
