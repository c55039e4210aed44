"""Incidents: lists with filters and cursors, one of them, what people say of it, and what stands beside it."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Path, Query
from starlette.responses import Response

from triage.base.errors import OptionError
from triage.render import incidents as shown
from triage.render import json as reports
from triage.render import render
from triage.service import queries
from triage.service.api import schemas
from triage.service.api.answers import Json, attachment
from triage.service.deps import Submitter, TheCatalog, TheSettings, TheStore, Viewer
from triage.service.filters import asked
from triage.store.search import Filter

router = APIRouter(prefix="/incidents", tags=["incidents"])
Wanted = Annotated[Filter, Depends(asked)]
Id = Annotated[
    str, Path(max_length=100, description="its id, its job's id, or their first digits", examples=["i-9f2c41d07b3e"])
]
Number = Annotated[int, Path(ge=0, le=1_000_000, description="as GET …/evidence numbers it")]
# What a format is called as a file, and its content type where it is not plain text.
_FILES = {
    "text": ("txt", "text/plain"),
    "json": ("json", "application/json"),
    "markdown": ("md", "text/markdown"),
    "html": ("html", "text/html"),
    "github": ("github.txt", "text/plain"),
    "gitlab": ("gitlab.json", "application/json"),
    "codequality": ("codequality.json", "application/json"),
    "junit": ("junit.xml", "application/xml"),
    "sarif": ("sarif", "application/json"),
    "slack": ("slack.json", "application/json"),
}
Format = Literal["text", "json", "markdown", "html", "github", "gitlab", "codequality", "junit", "sarif", "slack"]
_FILE = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox"


@router.get("", response_model=schemas.IncidentList)
def list_incidents(
    store: TheStore,
    _: Viewer,
    wanted: Wanted,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
    after: Annotated[str | None, Query(max_length=100, description="`next` of the page before")] = None,
) -> Json:
    """The incidents that the filters let through, the latest failure first."""
    return Json(queries.listing(store, wanted, limit=limit, after=after or None).as_json())


@router.get("/{incident}", response_model=schemas.Report)
def get_incident(incident: Id, store: TheStore, _: Viewer) -> Json:
    """An incident with its whole diagnosis, what people said and what it was held for before."""
    return Json(queries.incident_as_json(store.incidents.get(incident)))


@router.get(
    "/{incident}/report",
    responses={
        200: {
            "content": {kind: {"schema": {} if "json" in kind else {"type": "string"}} for _, kind in _FILES.values()}
        }
    },
    response_class=Response,
)
def get_report(
    incident: Id,
    store: TheStore,
    settings: TheSettings,
    _: Viewer,
    format: Annotated[Format, Query()] = "text",  # noqa: A002
) -> Response:
    """The diagnosis in any format of `triage show`, as a file."""
    found = store.incidents.get(incident)
    suffix, kind = _FILES[format]
    base = settings.web.public_url.rstrip("/")
    text = render(found.diagnosis, format, width=120, link=f"{base}/incidents/{found.incident.id}" if base else "")
    response = attachment(text, f"{found.incident.id}.{suffix}")
    response.headers["Content-Type"] = kind if kind == "application/json" else f"{kind}; charset=utf-8"
    response.headers["Content-Security-Policy"] = _FILE
    return response


@router.post("/{incident}/feedback", response_model=schemas.FeedbackRow, status_code=201)
def give_feedback(incident: Id, said: schemas.FeedbackIn, store: TheStore, catalog: TheCatalog, who: Submitter) -> Json:
    """Agree with the diagnosis, or say that it is wrong. It stays on the incident for ever."""
    if said.signature is not None and all(item.id != said.signature for item in catalog.signatures):
        raise OptionError(f"the catalog has no signature {said.signature}", hint="GET /api/v1/signatures lists them")
    found = store.feedback.add(incident, said.verdict, actor=who.name, because=said.because, signature=said.signature)
    return Json(shown.feedback_as_dict(found), status_code=201)


@router.get("/{incident}/similar", response_model=schemas.SimilarList)
def get_similar(incident: Id, store: TheStore, _: Viewer, limit: Annotated[int, Query(ge=1, le=100)] = 20) -> Json:
    """Incidents of the same cause, those on the same host and those that people spoke about first."""
    return Json(
        shown.similar_as_dict(store.incidents.get(incident).incident.id, store.search.similar(incident, limit=limit))
    )


@router.get("/{incident}/evidence", response_model=schemas.EvidenceList)
def list_evidence(incident: Id, store: TheStore, _: Viewer) -> Json:
    """The evidence of all findings, numbered."""
    pieces = queries.evidence(store.incidents.get(incident))
    return Json(
        {"evidence": [{"number": item.number, "of": item.of, **reports.evidence(item.fact)} for item in pieces]}
    )


@router.get(
    "/{incident}/evidence/{number}/raw",
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
    response_class=Response,
)
def get_raw(
    incident: Id, number: Number, store: TheStore, _: Viewer, around: Annotated[int, Query(ge=0, le=30)] = 0
) -> Response:
    """The lines of a piece of evidence, with `around` more before and after, as a text file."""
    found = store.incidents.get(incident)
    part = queries.context(store, found, number, around=around)
    return attachment("\n".join(part.lines) + "\n", f"{found.incident.id}-{number}.txt")


@router.get("/{incident}/evidence/{number}/context", response_model=schemas.ContextPiece)
def get_context(
    incident: Id, number: Number, store: TheStore, _: Viewer, around: Annotated[int, Query(ge=0, le=30)] = 10
) -> Json:
    """The lines around a piece of evidence. They were kept when the job was analysed; without them it is the evidence
    alone.
    """
    part = queries.context(store, store.incidents.get(incident), number, around=around)
    return Json({"source": part.source, "line": part.line, "marked": list(part.marked), "lines": list(part.lines)})


@router.get("/{incident}/flight", response_model=schemas.Document)
def get_flight(incident: Id, store: TheStore, _: Viewer) -> Json:
    """The flight matrix, as `triage flight --format json` writes it. 404 for a job without dumps."""
    return Json(queries.document(store, incident, "flight"))


@router.get("/{incident}/environment", response_model=schemas.Document)
def get_environment(incident: Id, store: TheStore, _: Viewer) -> Json:
    """Settings and versions of the ranks and what differs, as `triage env --format json` writes it."""
    return Json(queries.document(store, incident, "environment"))
