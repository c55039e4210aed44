"""Tasks: list, follow and stop them."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from triage.base.errors import TriageError
from triage.service.access import Principal
from triage.service.api import schemas
from triage.service.api.responses import JsonResponse, task_as_dict
from triage.service.dependencies import StoreDep, Submitter, Viewer
from triage.service.errors import ServiceError
from triage.store import Store
from triage.store.tasks import Task

router = APIRouter(tags=["ingest"])
TaskId = Annotated[str, Path(max_length=40, examples=["t-7f3a9c0011223344"])]
POLL_SECONDS = 0.4
KEEP_ALIVE_SECONDS = 15.0  # a comment after so long without an event keeps proxies from closing the connection
STREAM_SECONDS = 600.0  # then the browser connects again by itself


@router.get("/tasks", response_model=schemas.TaskList)
def list_tasks(store: StoreDep, _: Viewer, limit: Annotated[int, Query(ge=1, le=500)] = 50) -> JsonResponse:
    """List tasks, newest first, and count them by state."""
    tasks = [task_as_dict(task) for task in store.tasks.list_tasks(limit=limit)]
    return JsonResponse({"counts": store.tasks.counts(), "tasks": tasks})


@router.get("/tasks/{task_id}", response_model=schemas.TaskRow)
def get_task(task_id: TaskId, store: StoreDep, _: Viewer) -> JsonResponse:
    """Return a task with its progress or result."""
    return JsonResponse(task_as_dict(store.tasks.get(task_id)))


@router.delete("/tasks/{task_id}", response_model=schemas.TaskRow)
def cancel_task(task_id: TaskId, store: StoreDep, user: Submitter) -> JsonResponse:
    """Stop a task. Only its owner or an administrator may; a task that has ended stays as it is."""
    return JsonResponse(task_as_dict(stop_task(store, task_id, user)))


def stop_task(store: Store, task_id: str, user: Principal) -> Task:
    """Cancel a task. Raises ServiceError for somebody else's task."""
    owner = store.tasks.get(task_id).actor
    if owner != user.name and not user.has_role("admin"):
        raise ServiceError(403, f"this task belongs to {owner}")
    return store.tasks.cancel(task_id, actor=user.name)


@router.get(
    "/tasks/{task_id}/events",
    responses={
        200: {
            "content": {
                "text/event-stream": {"schema": {"description": "events named `task`, with a task as JSON in data"}}
            }
        }
    },
    response_class=StreamingResponse,
)
def follow_task(task_id: TaskId, request: Request, store: StoreDep, _: Viewer) -> StreamingResponse:
    """Stream the task as it changes: server-sent events named `task`, until it or the session ends."""
    store.tasks.get(task_id)
    headers = {"X-Accel-Buffering": "no"}
    return StreamingResponse(
        _task_events(store, task_id, request.scope["triage.identify"]), media_type="text/event-stream", headers=headers
    )


async def _task_events(
    store: Store, task_id: str, identify: Callable[[], Awaitable[Principal | None]]
) -> AsyncIterator[bytes]:
    last_data, started, last_sent = b"", time.monotonic(), time.monotonic()
    yield b"retry: 2000\n\n"
    while time.monotonic() - started < STREAM_SECONDS:
        try:
            if await identify() is None:  # signed out, or the token was revoked
                return
            task = await run_in_threadpool(store.tasks.get, task_id)
        except TriageError:
            return
        data = json.dumps(task_as_dict(task), separators=(",", ":")).encode()
        if data != last_data:
            yield b"event: task\ndata: " + data + b"\n\n"
            last_data, last_sent = data, time.monotonic()
        elif time.monotonic() - last_sent > KEEP_ALIVE_SECONDS:
            yield b": keep-alive\n\n"
            last_sent = time.monotonic()
        if task.ended:
            return
        await asyncio.sleep(POLL_SECONDS)
