"""Alertmanager's webhook: an alert that names a job starts its ingest from a configured source."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path

from triage.service import ingest
from triage.service.api import schemas
from triage.service.api.answers import Json, task
from triage.service.deps import Submitter, TheService
from triage.service.failure import ServiceError

router = APIRouter(tags=["alerts"])


@router.post("/alerts/{source}", status_code=202, response_model=schemas.AlertsOut)
def alertmanager(
    source: Annotated[str, Path(max_length=100, examples=["slurm"])],
    sent: schemas.AlertsIn,
    service: TheService,
    who: Submitter,
) -> Json:
    """Of each firing alert the label that the source's setting `label` names is the job. Sent again, nothing is begun
    twice at once.
    """
    known = service.settings.sources.get(source)
    if known is None:
        raise ServiceError(404, "no source of this name is configured", hint="GET /api/v1/sources lists them")
    tasks, skipped = {}, []
    for alert in sent.alerts:
        job = alert.labels.get(known.label)
        if alert.status != "firing":
            continue
        try:
            found = ingest.of_source(service, who, source, None if known.one else job)
            tasks[found.id] = task(found)
        except ServiceError as error:
            skipped.append({"job": job or "", "message": error.message})
    return Json({"tasks": list(tasks.values()), "skipped": skipped}, status_code=202)
