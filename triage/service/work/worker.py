"""A worker: claim a task, do it in a sandbox, and store the result and the end of the task in one transaction.

Killed at any moment it loses nothing: a task without heartbeats is given to another worker.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

from triage.service.log import write_event
from triage.service.work import analysis, job_files, sandbox
from triage.settings import Settings
from triage.settings.retention_rules import list_rules
from triage.store import Store
from triage.store.retention import apply_rules
from triage.store.tasks import Task

IDLE_SECONDS = 1.0  # between two looks for work, if the store does not say when there is some
CLEANUP_SECONDS = 60.0
RETENTION_SECONDS = 3600.0
DAY = 86_400.0
KEEP_TASKS_SECONDS = 30 * DAY
GIVEN_BACK = "given back"


class Worker:
    """One process that does one task at a time."""

    def __init__(self, settings: Settings, store: Store) -> None:
        self._settings = settings
        self._store = store
        self._root = job_files.upload_directory(settings)
        self._owner = f"{socket.gethostname()}:{os.getpid()}"
        self._is_stopping = False
        self._cleaned_up_at = self._retained_at = 0.0
        job_files.make_upload_directories(self._root)

    def run(self, may_write: Callable[[], bool] = lambda: True) -> None:
        """Do tasks until SIGTERM or SIGINT, while the store may be written; an unfinished task is released."""
        signal.signal(signal.SIGTERM, self._request_stop)
        signal.signal(signal.SIGINT, self._request_stop)
        parent = os.getppid()
        analysis.warm_up()
        while not self._is_stopping and os.getppid() == parent:
            if not may_write() or not self.do_next_task():
                self._store.tasks.wait(IDLE_SECONDS)

    def do_next_task(self) -> bool:
        """Do one task. Returns False if none is waiting."""
        self._clean_up()
        task = self._store.tasks.claim(self._owner)
        if task is None:
            return False
        write_event("task begins", task=task.id, kind=task.kind, attempt=task.attempts)
        started = time.monotonic()
        attempt = f"{task.id}-{task.attempts}"
        out = job_files.partial_path(self._root, f"result-{attempt}")
        try:
            end = self._do(task, attempt, out)
        finally:
            self._remove_attempts(task)
        if end == GIVEN_BACK:  # only now: who claims it next works in the same directory
            self._store.tasks.release(task)
        write_event("task ends", task=task.id, how=end, seconds=round(time.monotonic() - started, 3))
        return True

    def _remove_attempts(self, task: Task) -> None:
        """Remove the files of this attempt, and of earlier ones: a killed process removes nothing."""
        for number in range(1, task.attempts + 1):
            attempt = f"{task.id}-{number}"
            job_files.partial_path(self._root, f"result-{attempt}").unlink(missing_ok=True)
            shutil.rmtree(job_files.task_directory(self._root, attempt), ignore_errors=True)

    def _do(self, task: Task, attempt: str, out: Path) -> str:
        """Do a task and store its end. Returns how it ended, for the log."""
        limits = self._settings.tasks
        self._store.connections.close()  # two processes must not share a connection; the next use opens another

        def heartbeat(progress: Mapping[str, Any] | None) -> bool:
            return not self._is_stopping and self._store.tasks.beat(task, progress)

        def work(report: analysis.Report) -> None:
            analysis.analyse(self._settings, self._root, task.payload, attempt, out, report)

        outcome = sandbox.run_limited(
            work, memory=limits.memory, seconds=limits.seconds, threads=limits.scan_threads, heartbeat=heartbeat
        )
        if outcome.kind == "stopped":
            if self._is_stopping:
                return GIVEN_BACK
            self._end_task(task, "cancelled")
            return "cancelled"
        if outcome.kind != "done":
            self._end_task(task, "failed", error=outcome.error)
            return f"failed: {outcome.error.get('code')}"
        try:
            self._store_result(task, out)
        except _TaskTakenOver:
            return "taken over by another"
        return "done"

    def _store_result(self, task: Task, out: Path) -> None:
        """Store the diagnosis, its documents and the end of the task: all or nothing."""
        diagnosis, documents = analysis.read_result(out)
        with self._store.connections.write() as db:
            incident = self._store.incidents.add(diagnosis, actor=task.actor)
            result = {"incident": incident.id, "new": incident.is_new, "verdict": incident.diagnosis.verdict}
            if not self._store.tasks.end(db, task, "done", result=result):
                raise _TaskTakenOver
            self._store.service_data.save_origin(db, incident.id, task.actor, task.payload["place"], time.time())
            for kind, document in documents.items():
                self._store.service_data.save_document(db, incident.id, kind, document)

    def _end_task(self, task: Task, state: Any, *, error: Mapping[str, Any] | None = None) -> None:
        with self._store.connections.write() as db:
            self._store.tasks.end(db, task, state, error=error)

    def _request_stop(self, _: int, __: FrameType | None) -> None:
        self._is_stopping = True

    def _apply_retention(self) -> None:
        for rule, count in apply_rules(
            self._store.connections, self._store.incidents, list_rules(self._settings.retention)
        ):
            if count:
                write_event("incidents deleted by age", rule=str(rule), incidents=count)

    def _clean_up(self) -> None:
        """Queue the tasks of dead workers again; once a minute delete old uploads and tasks."""
        for task_id in self._store.tasks.requeue_orphans(self._settings.tasks.stale):
            write_event("task orphaned", task=task_id)
        now = time.time()
        if now - self._cleaned_up_at < CLEANUP_SECONDS:
            return
        self._cleaned_up_at = now
        self._store.tasks.delete_ended(now - KEEP_TASKS_SECONDS)
        if now - self._retained_at >= RETENTION_SECONDS:
            self._retained_at = now
            self._apply_retention()
        old = self._store.service_data.list_old_uploads(now - self._settings.tasks.keep_days * DAY)
        for digest in old:
            job_files.blob_path(self._root, digest).unlink(missing_ok=True)
        self._store.service_data.delete_uploads(old)
        for path in (self._root / "parts").iterdir():
            if _age(path, now) > self._settings.tasks.partial_hours * 3600:
                path.unlink(missing_ok=True)
        for path in (self._root / "jobs").iterdir():
            if _age(path, now) > DAY:  # its worker was killed in its last attempt
                shutil.rmtree(path, ignore_errors=True)


def _age(path: Path, now: float) -> float:
    """Return the seconds since a file changed; 0 when another worker has removed it meanwhile."""
    with suppress(FileNotFoundError):
        return now - path.stat().st_mtime
    return 0.0


class _TaskTakenOver(Exception):
    """Another worker has the task by now: nothing of this attempt is stored."""
