"""Upload the files of a job, and follow its task. The form works without JavaScript, which adds progress."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse, Response

from triage.service.api.responses import task_as_dict
from triage.service.api.tasks import stop_task
from triage.service.dependencies import SettingsDep, StateDep, StoreDep, Submitter, Viewer
from triage.service.pages.rendering import page_and_json, redirect_with_notice, render_page
from triage.service.uploads import queue_source, receive_form
from triage.store.tasks import Task

router = APIRouter()
STAGE_TEXTS: Mapping[str, str] = {
    "find": "finding the files",
    "read": "reading",
    "scan": "reading",
    "finish": "comparing the ranks",
}


@dataclass(frozen=True, slots=True)
class UploadView:
    """The form: limits, configured sources, and the last tasks."""

    upload_bytes: int
    upload_files: int
    sources: tuple[dict[str, Any], ...]
    tasks: tuple[dict[str, Any], ...]


@dataclass(frozen=True, slots=True)
class TaskView:
    """A task. `percent` is the progress of its current stage, None if unknown; `says` is its state as text."""

    task: dict[str, Any]
    ended: bool
    percent: int | None
    says: str


@page_and_json(router, "/upload")
def show_form(request: Request, store: StoreDep, settings: SettingsDep, user: Viewer) -> Response:
    """Show the upload form and the last tasks."""
    listed = sorted(settings.sources.items()) if user.sees is None else []
    sources = tuple({"name": name, "one": source.one} for name, source in listed)
    tasks = tuple(task_as_dict(task) for task in store.tasks.list_tasks(limit=10))
    limits = settings.tasks
    return render_page(request, "upload.html", UploadView(limits.upload_bytes, limits.upload_files, sources, tasks))


@router.post("/upload")
async def upload_files(request: Request, state: StateDep, user: Submitter) -> Response:
    """Receive the files of one job, then show its task."""
    return _show_task(await receive_form(request, state, user))


@router.post("/upload/source")
async def ingest_source(request: Request, state: StateDep, user: Submitter) -> Response:
    """Ingest a job of a configured source by name, then show its task."""
    form = await request.form(max_files=0, max_fields=4)
    source, job = str(form.get("source", ""))[:200], str(form.get("job", ""))[:200].strip()
    return _show_task(await run_in_threadpool(queue_source, state, user, source, job or None))


@page_and_json(router, "/tasks/{task}")
def show_task(request: Request, task: str, store: StoreDep, _: Viewer) -> Response:
    """Show the progress of a task. A browser goes to the incident when it is done."""
    row = task_as_dict(store.tasks.get(task))
    if row["state"] == "done" and row["result"] and not request.url.path.endswith(".json"):
        return RedirectResponse(f"/incidents/{row['result']['incident']}", 303)
    return render_page(request, "task.html", _task_view(row))


@router.post("/tasks/{task}/cancel")
def cancel_task(task: str, store: StoreDep, user: Submitter) -> Response:
    """Stop a task. Only its owner or an administrator may."""
    stop_task(store, task, user)
    return redirect_with_notice(f"/tasks/{task}", "cancelled")


def _show_task(task: Task) -> Response:
    return RedirectResponse(f"/tasks/{task.id}", 303)


def _task_view(task: dict[str, Any]) -> TaskView:
    progress = task["progress"] or {}
    done, total = progress.get("done") or 0, progress.get("total")
    percent = min(100, round(100 * done / total)) if total else None
    text = {"queued": "waiting for a worker"}.get(task["state"], task["state"])
    if task["state"] == "running":
        stage = STAGE_TEXTS.get(str(progress.get("stage")), "working")
        text = stage if percent is None else f"{stage}, {percent} %"
    return TaskView(task, task["state"] in ("done", "failed", "cancelled"), percent, text)
