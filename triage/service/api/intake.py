"""Send a job: uploads, ingests from configured sources, and alerts of Alertmanager."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Request, Response

from triage.service.api import requests, schemas
from triage.service.api.responses import JsonResponse, task_as_dict
from triage.service.dependencies import StateDep, Submitter, Viewer
from triage.service.errors import ServiceError
from triage.service.uploads import (
    append_upload,
    queue_address,
    queue_files,
    queue_source,
    receive_form,
    refuse_part,
    upload_progress,
)
from triage.store.tasks import Task

router = APIRouter(tags=["ingest"])
alerts_router = APIRouter(tags=["alerts"])
Digest = Annotated[str, Path(pattern="^[0-9a-f]{64}$", description="SHA-256 of the content", examples=["0" * 64])]
_BINARY = {"type": "string", "format": "binary"}
_FORM_SCHEMA = {
    "type": "object",
    "required": ["file"],
    "properties": {
        "file": {"type": "array", "items": _BINARY, "minItems": 1},
        "name": {"type": "string", "maxLength": 200, "description": "name of the job"},
        "labels": {"type": "string", "maxLength": 1000, "description": "facts of the job, as team=vision,user=anna"},
    },
}


def _request_body(content_type: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"requestBody": {"required": True, "content": {content_type: {"schema": schema}}}}


def _accepted(task: Task) -> JsonResponse:
    return JsonResponse(task_as_dict(task), status_code=202, headers={"Location": f"/api/v1/tasks/{task.id}"})


def _upload_row(sha256: str, received: int, is_complete: bool) -> JsonResponse:
    row = {"sha256": sha256, "received": received, "complete": is_complete}
    return JsonResponse(row, headers={"Upload-Offset": str(received)})


@router.post(
    "/uploads",
    status_code=202,
    response_model=schemas.TaskRow,
    openapi_extra=_request_body("multipart/form-data", _FORM_SCHEMA),
)
async def upload(request: Request, state: StateDep, user: Submitter) -> JsonResponse:
    """Send the files of one job as a form: logs, archives, dumps. A task diagnoses them."""
    return _accepted(await receive_form(request, state, user))


@router.get("/uploads/{sha256}", response_model=schemas.UploadRow)
def get_upload(sha256: Digest, state: StateDep, _: Submitter) -> JsonResponse:
    """Return how much of an upload the server has; continue at `received`."""
    received, is_complete = upload_progress(state, sha256)
    if not received and not is_complete:
        raise ServiceError(404, "the server has nothing of this content")
    return _upload_row(sha256, received, is_complete)


@router.head("/uploads/{sha256}", include_in_schema=False)
def head_upload(sha256: Digest, state: StateDep, user: Submitter) -> Response:
    """Return the same in the header Upload-Offset."""
    return Response(headers={"Upload-Offset": get_upload(sha256, state, user).headers["upload-offset"]})


@router.patch(
    "/uploads/{sha256}",
    response_model=schemas.UploadRow,
    openapi_extra=_request_body("application/octet-stream", _BINARY),
)
async def continue_upload(
    request: Request,
    sha256: Digest,
    state: StateDep,
    user: Submitter,
    upload_offset: Annotated[int, Header(ge=0, le=1 << 53, description="where these bytes begin; 0 for a new upload")],
    upload_length: Annotated[int, Header(ge=1, le=1 << 53, description="bytes of the whole content")],
) -> JsonResponse:
    """Send bytes of a content, named by its SHA-256, from an offset on. Then `POST /ingest`.

    An interrupted upload continues where it stopped.
    """
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/octet-stream":
        raise ServiceError(415, "the body must be application/octet-stream")
    received, is_complete = await append_upload(state, user, sha256, upload_offset, upload_length, request.stream())
    return _upload_row(sha256, received, is_complete)


@router.post("/ingest", status_code=202, response_model=schemas.TaskRow)
def start(body: requests.IngestIn, state: StateDep, user: Submitter) -> JsonResponse:
    """Diagnose uploaded files, a job of a configured source, or one at an address that `remote.allow` allows.

    Paths are refused. Credentials are the service's own, never part of an address.
    """
    if bool(body.files) + bool(body.source) + bool(body.address) != 1:
        raise ServiceError(400, "send one of `files`, `source` and `address`")
    if body.address:
        return _accepted(queue_address(state, user, body.address, body.name, body.labels))
    if body.source:
        return _accepted(queue_source(state, user, body.source, body.job, body.name, body.labels))
    return _accepted(
        queue_files(state, user, [(item.sha256, item.name) for item in body.files], body.name, body.labels)
    )


@router.get("/sources", response_model=schemas.SourceList)
def list_sources(state: StateDep, user: Viewer) -> JsonResponse:
    """List the sources that `POST /ingest` accepts; none for somebody who sees a part of the incidents."""
    sources = sorted(state.settings.sources.items()) if user.sees is None else []
    return JsonResponse({"sources": [{"name": name, "one": source.one} for name, source in sources]})


@alerts_router.post("/alerts/{source}", status_code=202, response_model=schemas.AlertsOut)
def alertmanager(
    source: Annotated[str, Path(max_length=100, examples=["slurm"])],
    body: requests.AlertsIn,
    state: StateDep,
    user: Submitter,
) -> JsonResponse:
    """Ingest the job of each firing alert; the source's setting `label` names the label with the job.

    A job that already waits or runs is not started twice.
    """
    refuse_part(user)
    settings = state.settings.sources.get(source)
    if settings is None:
        raise ServiceError(404, "no source with this name is configured", hint="GET /api/v1/sources lists them")
    tasks, skipped = {}, []
    for alert in body.alerts:
        job = alert.labels.get(settings.label)
        if alert.status != "firing":
            continue
        try:
            task = queue_source(state, user, source, None if settings.one else job)
            tasks[task.id] = task_as_dict(task)
        except ServiceError as error:
            skipped.append({"job": job or "", "message": error.message})
    return JsonResponse({"tasks": list(tasks.values()), "skipped": skipped}, status_code=202)
