"""Uploads, ingests and the tasks that come of them."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response, StreamingResponse

from triage.service import ingest, uploads
from triage.service.api import schemas
from triage.service.api.answers import Json, task
from triage.service.deps import Submitter, TheService, TheStore, Viewer
from triage.service.events import events
from triage.service.failure import ServiceError
from triage.service.principal import Principal
from triage.service.state import Service
from triage.store.tasks import Task

router = APIRouter(tags=["ingest"])
Digest = Annotated[str, Path(pattern="^[0-9a-f]{64}$", description="SHA-256 of the content", examples=["0" * 64])]
TaskId = Annotated[str, Path(max_length=40, examples=["t-7f3a9c0011223344"])]
_FORM: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file"],
                    "properties": {
                        "file": {"type": "array", "items": {"type": "string", "format": "binary"}, "minItems": 1},
                        "name": {"type": "string", "maxLength": 200, "description": "what the job is called"},
                    },
                }
            }
        },
    }
}
_BYTES: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}


def accepted(found: Task) -> Json:
    """202 with the task and where to follow it."""
    return Json(task(found), status_code=202, headers={"Location": f"/api/v1/tasks/{found.id}"})


async def receive(request: Request, service: Service, who: Principal) -> Task:
    """A form with files, streamed to disk; the task for it. Pages use it as well."""
    length = request.headers.get("content-length", "")
    expected = int(length) if length.isdigit() else 0
    if expected > service.settings.tasks.upload_bytes + (1 << 20):
        raise ServiceError(
            413, f"an upload may hold {service.settings.tasks.upload_bytes} bytes", headers={"Connection": "close"}
        )
    root = await run_in_threadpool(ingest.room, service, expected)
    form = uploads.Form(service, root, request.headers.get("content-type", ""))
    try:
        async for piece in uploads.batches(request.stream()):
            await run_in_threadpool(form.feed, piece)
        received = form.close()
        if not received.files:
            raise ServiceError(400, "there is no file in the form", hint="send files as fields called `file`")
        if len(received.fields.get("name", "")) > 200:
            raise ServiceError(422, "the name of a job may have 200 characters")
        await run_in_threadpool(uploads.settle, service, root, form)
    except BaseException:
        form.drop()
        raise
    return await run_in_threadpool(ingest.of_files, service, who, received.files, received.fields.get("name"))


@router.post("/uploads", status_code=202, response_model=schemas.TaskRow, openapi_extra=_FORM)
async def upload(request: Request, service: TheService, who: Submitter) -> Json:
    """Send the files of one job as a form: logs, archives, dumps. They are diagnosed by a task."""
    return accepted(await receive(request, service, who))


@router.get("/uploads/{sha256}", response_model=schemas.UploadRow)
def get_upload(sha256: Digest, service: TheService, _: Submitter) -> Json:
    """How far an upload is: go on from `received`."""
    received, complete = uploads.progress(service, sha256)
    if not received and not complete:
        raise ServiceError(404, "nothing of this content has come")
    return Json(
        {"sha256": sha256, "received": received, "complete": complete}, headers={"Upload-Offset": str(received)}
    )


@router.head("/uploads/{sha256}", include_in_schema=False)
def head_upload(sha256: Digest, service: TheService, who: Submitter) -> Response:
    """The same in the header Upload-Offset."""
    answer = get_upload(sha256, service, who)
    return Response(headers={"Upload-Offset": answer.headers["upload-offset"]})


@router.patch("/uploads/{sha256}", response_model=schemas.UploadRow, openapi_extra=_BYTES)
async def continue_upload(
    request: Request,
    sha256: Digest,
    service: TheService,
    _: Submitter,
    upload_offset: Annotated[int, Header(ge=0, le=1 << 53, description="where these bytes begin; 0 for a new upload")],
    upload_length: Annotated[int, Header(ge=1, le=1 << 53, description="bytes of the whole content")],
) -> Json:
    """Send bytes of a content that is known by its SHA-256, from an offset on; broken off, it goes on where it was.
    Then `POST /ingest`.
    """
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/octet-stream":
        raise ServiceError(415, "this is no application/octet-stream")
    have, complete = await uploads.append(service, sha256, upload_offset, upload_length, request.stream())
    return Json({"sha256": sha256, "received": have, "complete": complete}, headers={"Upload-Offset": str(have)})


@router.post("/ingest", status_code=202, response_model=schemas.TaskRow)
def start(asked: schemas.IngestIn, service: TheService, who: Submitter) -> Json:
    """Diagnose files that have been sent, or a job of a configured source. Never a path, never an address."""
    if bool(asked.files) == bool(asked.source):
        raise ServiceError(400, "give either `files` or `source`")
    if asked.source:
        return accepted(ingest.of_source(service, who, asked.source, asked.job, asked.name))
    return accepted(ingest.of_files(service, who, [(item.sha256, item.name) for item in asked.files], asked.name))


@router.get("/sources", response_model=schemas.SourceList)
def list_sources(service: TheService, _: Viewer) -> Json:
    """The names that `POST /ingest` takes."""
    found = sorted(service.settings.sources.items())
    return Json({"sources": [{"name": name, "one": source.one} for name, source in found]})


@router.get("/tasks", response_model=schemas.TaskList)
def list_tasks(store: TheStore, _: Viewer, limit: Annotated[int, Query(ge=1, le=500)] = 50) -> Json:
    """The newest first, and how many are in each state."""
    return Json({"counts": store.tasks.counts(), "tasks": [task(item) for item in store.tasks.listed(limit=limit)]})


@router.get("/tasks/{task_id}", response_model=schemas.TaskRow)
def get_task(task_id: TaskId, store: TheStore, _: Viewer) -> Json:
    """How far it is, and what came of it."""
    return Json(task(store.tasks.get(task_id)))


@router.delete("/tasks/{task_id}", response_model=schemas.TaskRow)
def cancel_task(task_id: TaskId, store: TheStore, who: Submitter) -> Json:
    """Stop it. Only who began it, or an administrator, may; what has ended stays as it is."""
    found = store.tasks.get(task_id)
    if found.actor != who.name and not who.may("admin"):
        raise ServiceError(403, f"it is {found.actor}'s task")
    return Json(task(store.tasks.cancel(task_id, actor=who.name)))


@router.get(
    "/tasks/{task_id}/events",
    responses={
        200: {
            "content": {
                "text/event-stream": {"schema": {"description": "events called `task`, their data a task as JSON"}}
            }
        }
    },
    response_class=StreamingResponse,
)
def follow_task(task_id: TaskId, store: TheStore, _: Viewer) -> StreamingResponse:
    """The same as it changes: server-sent events called `task`, until it has ended."""
    store.tasks.get(task_id)
    return StreamingResponse(
        events(store, task_id), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"}
    )
