"""Upload what a job left behind, and follow the task that reads it. The form works without JavaScript; with it there is
progress.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from triage.service import ingest
from triage.service.api.answers import task as as_json
from triage.service.api.intake import receive
from triage.service.deps import Submitter, TheService, TheSettings, TheStore, Viewer
from triage.service.failure import ServiceError
from triage.service.pages.show import both, page

router = APIRouter()
STAGES: Mapping[str, str] = {
    "find": "looking through the files",
    "read": "reading",
    "scan": "reading",
    "finish": "comparing the ranks",
}


@dataclass(frozen=True, slots=True)
class Upload:
    """The form: what may be sent, from which configured sources a job may be taken, and the last tasks."""

    upload_bytes: int
    upload_files: int
    sources: tuple[dict[str, Any], ...]
    tasks: tuple[dict[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Following:
    """A task; `percent` is how much of its present stage is done, None where nobody knows; `says` are the same in
    words.
    """

    task: dict[str, Any]
    ended: bool
    percent: int | None
    says: str


@both(router, "/upload")
def upload(request: Request, store: TheStore, settings: TheSettings, _: Viewer) -> Response:
    """The form."""
    sources = tuple({"name": name, "one": source.one} for name, source in sorted(settings.sources.items()))
    tasks = tuple(as_json(item) for item in store.tasks.listed(limit=10))
    return page(
        request, "upload.html", Upload(settings.tasks.upload_bytes, settings.tasks.upload_files, sources, tasks)
    )


@router.post("/upload")
async def uploaded(request: Request, service: TheService, who: Submitter) -> Response:
    """Files of one job, streamed to disk; then the page of the task."""
    found = await receive(request, service, who)
    return RedirectResponse(f"/tasks/{found.id}", 303)


@router.post("/upload/source")
async def from_source(request: Request, service: TheService, who: Submitter) -> Response:
    """A job of a configured source, by name: never a path, never an address."""
    from starlette.concurrency import run_in_threadpool

    form = await request.form(max_files=0, max_fields=4)
    source, job = str(form.get("source", ""))[:200], str(form.get("job", ""))[:200].strip()
    found = await run_in_threadpool(ingest.of_source, service, who, source, job or None)
    return RedirectResponse(f"/tasks/{found.id}", 303)


@both(router, "/tasks/{task}")
def task(request: Request, task: str, store: TheStore, _: Viewer) -> Response:
    """How far it is. When it is done, a browser is led to the incident."""
    found = as_json(store.tasks.get(task))
    if found["state"] == "done" and found["result"] and not request.url.path.endswith(".json"):
        return RedirectResponse(f"/incidents/{found['result']['incident']}", 303)
    return page(request, "task.html", following(found))


@router.post("/tasks/{task}/cancel")
def cancel(task: str, store: TheStore, who: Submitter) -> Response:
    """Stop it; only who began it, or an administrator, may."""
    found = store.tasks.get(task)
    if found.actor != who.name and not who.may("admin"):
        raise ServiceError(403, f"it is {found.actor}'s task")
    store.tasks.cancel(task, actor=who.name)
    return RedirectResponse(f"/tasks/{task}?said=cancelled", 303)


def following(found: dict[str, Any]) -> Following:
    """The words for a task."""
    progress = found["progress"] or {}
    done, total = progress.get("done") or 0, progress.get("total")
    percent = min(100, round(100 * done / total)) if total else None
    stage = STAGES.get(str(progress.get("stage")), "working")
    says = {
        "queued": "waiting for a worker",
        "running": stage + (f", {percent} %" if percent is not None else ""),
        "done": "done",
        "failed": "failed",
        "cancelled": "cancelled",
    }[found["state"]]
    return Following(found, found["state"] in ("done", "failed", "cancelled"), percent, says)
