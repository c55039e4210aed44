"""Incidents: lists, reports, evidence, documents and feedback."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Path, Query, Response

from triage.base.errors import NotFoundError, OptionError
from triage.render import incidents as rendered, job_comparison, json as json_report, render
from triage.service import incident_queries
from triage.service.api import requests, schemas
from triage.service.api.responses import JsonResponse, attachment
from triage.service.dependencies import Admin, CatalogDep, SettingsDep, StateDep, StoreDep, Submitter, Viewer
from triage.service.incident_files import bundle_response, delete_for_good
from triage.service.incident_queries import incident_filter
from triage.store.healthy_jobs import compare_stored
from triage.store.search import Filter

router = APIRouter(prefix="/incidents", tags=["incidents"])
IncidentId = Annotated[
    str, Path(max_length=100, description="its id, its job's id, or the start of one", examples=["i-9f2c41d07b3e"])
]
EvidenceNumber = Annotated[int, Path(ge=0, le=1_000_000, description="number from GET …/evidence")]
Format = Literal["text", "json", "markdown", "html", "github", "gitlab", "codequality", "junit", "sarif", "slack"]
# The file suffix and the content type of each format.
_FILE_TYPES = {
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
_REPORT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox"


def _content(*kinds: str) -> dict[int | str, dict[str, Any]]:
    """Return the description of a response with these content types."""
    schemas_ = {kind: {"schema": {} if "json" in kind else {"type": "string"}} for kind in kinds}
    return {200: {"content": schemas_}}


@router.get("", response_model=schemas.IncidentList)
def list_incidents(
    store: StoreDep,
    _: Viewer,
    query: Annotated[Filter, Depends(incident_filter)],
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
    after: Annotated[str | None, Query(max_length=100, description="`next` of the previous page")] = None,
) -> JsonResponse:
    """List incidents that match the filters, latest failure first."""
    return JsonResponse(incident_queries.list_incidents(store, query, limit=limit, after=after or None).as_json())


@router.get("/{incident}", response_model=schemas.Report)
def get_incident(incident: IncidentId, store: StoreDep, _: Viewer) -> JsonResponse:
    """Return an incident with its diagnosis, its feedback and its previous diagnoses."""
    stored = store.incidents.get(incident)
    return JsonResponse(rendered.remembered_as_dict(stored, stored.diagnosis))


@router.get(
    "/{incident}/report",
    responses=_content(*(kind for _, kind in _FILE_TYPES.values())),
    response_class=Response,
)
def get_report(
    incident: IncidentId,
    store: StoreDep,
    settings: SettingsDep,
    _: Viewer,
    format: Annotated[Format, Query()] = "text",  # noqa: A002
) -> Response:
    """Return the diagnosis as a file, in any format of `triage show`."""
    stored = store.incidents.get(incident)
    suffix, kind = _FILE_TYPES[format]
    base = settings.web.public_url.rstrip("/")
    text = render(stored.diagnosis, format, width=120, link=f"{base}/incidents/{stored.incident.id}" if base else "")
    response = attachment(text, f"{stored.incident.id}.{suffix}")
    response.headers["Content-Type"] = kind if kind == "application/json" else f"{kind}; charset=utf-8"
    response.headers["Content-Security-Policy"] = _REPORT_POLICY
    return response


@router.get("/{incident}/bundle", responses=_content("application/zip"), response_class=Response)
def get_bundle(incident: IncidentId, store: StoreDep, _: Viewer) -> Response:
    """Return the incident as a zip archive: its report, the quoted lines, feedback and documents."""
    return bundle_response(store, incident)


@router.delete("/{incident}", response_model=schemas.Done)
def delete_incident(
    incident: IncidentId,
    state: StateDep,
    user: Admin,
    because: Annotated[str, Query(min_length=1, max_length=2000, description="who asked for it, and why")],
) -> JsonResponse:
    """Delete an incident for good, with its uploaded files. The audit log keeps who, when, why and the id."""
    return JsonResponse({"id": delete_for_good(state, user, incident, because)})


@router.post("/{incident}/feedback", response_model=schemas.FeedbackRow, status_code=201)
def give_feedback(
    incident: IncidentId, body: requests.FeedbackIn, store: StoreDep, catalog: CatalogDep, user: Submitter
) -> JsonResponse:
    """Agree with the diagnosis, or mark it as wrong. Feedback is never deleted."""
    if body.signature is not None and all(item.id != body.signature for item in catalog.signatures):
        raise OptionError(
            f"the catalog has no signature {body.signature}", hint="GET /api/v1/signatures lists the signatures"
        )
    feedback = store.feedback.add(
        incident, body.verdict, actor=user.name, because=body.because, signature=body.signature
    )
    return JsonResponse(rendered.feedback_as_dict(feedback), status_code=201)


@router.get("/{incident}/similar", response_model=schemas.SimilarList)
def get_similar(
    incident: IncidentId, store: StoreDep, _: Viewer, limit: Annotated[int, Query(ge=1, le=100)] = 20
) -> JsonResponse:
    """List incidents with the same cause; those on the same host or with feedback come first."""
    incident_id = store.incidents.get(incident).incident.id
    return JsonResponse(rendered.similar_as_dict(incident_id, store.search.find_similar(incident, limit=limit)))


@router.get("/{incident}/compare", response_model=schemas.Document)
def compare_incident(
    incident: IncidentId,
    store: StoreDep,
    _: Viewer,
    healthy: Annotated[
        str | None, Query(max_length=100, description="an incident; default: the last healthy job of the same kind")
    ] = None,
) -> JsonResponse:
    """Compare a failed job with a healthy one: settings, versions, facts, size, pace, losses. 404 without one."""
    pair = compare_stored(store, incident, healthy or None)
    if pair.healthy is None or pair.comparison is None:
        hint = "give one as `healthy`, or ingest a job that ended well with the same model, project or user"
        raise NotFoundError(f"no healthy job to compare {pair.failed.id} with is stored", hint=hint)
    return JsonResponse(job_comparison.as_dict(pair.failed, pair.healthy, pair.common_facts, pair.comparison))


@router.get("/{incident}/evidence", response_model=schemas.EvidenceList)
def list_evidence(incident: IncidentId, store: StoreDep, _: Viewer) -> JsonResponse:
    """List the evidence of all findings with its numbers."""
    pieces = incident_queries.list_evidence(store.incidents.get(incident))
    rows = [{"number": item.number, "of": item.finding, **json_report.evidence(item.fact)} for item in pieces]
    return JsonResponse({"evidence": rows})


@router.get("/{incident}/evidence/{number}/raw", responses=_content("text/plain"), response_class=Response)
def get_raw(
    incident: IncidentId,
    number: EvidenceNumber,
    store: StoreDep,
    _: Viewer,
    around: Annotated[int, Query(ge=0, le=30)] = 0,
) -> Response:
    """Return the lines of a piece of evidence as a text file, with `around` more lines before and after."""
    stored = store.incidents.get(incident)
    excerpt = incident_queries.lines_around(store, stored, number, around=around)
    return attachment("\n".join(excerpt.lines) + "\n", f"{stored.incident.id}-{number}.txt")


@router.get("/{incident}/evidence/{number}/context", response_model=schemas.ContextPiece)
def get_context(
    incident: IncidentId,
    number: EvidenceNumber,
    store: StoreDep,
    _: Viewer,
    around: Annotated[int, Query(ge=0, le=30)] = 10,
) -> JsonResponse:
    """Return the lines around a piece of evidence; the evidence alone if they were not stored."""
    excerpt = incident_queries.lines_around(store, store.incidents.get(incident), number, around=around)
    return JsonResponse(
        {
            "source": excerpt.source,
            "line": excerpt.line,
            "marked": list(excerpt.marked),
            "lines": list(excerpt.lines),
        }
    )


@router.get("/{incident}/flight", response_model=schemas.Document)
def get_flight(incident: IncidentId, store: StoreDep, _: Viewer) -> JsonResponse:
    """Return the flight matrix like `triage flight --format json`. 404 for a job without dumps."""
    return JsonResponse(incident_queries.get_document(store, incident, "flight"))


@router.get("/{incident}/environment", response_model=schemas.Document)
def get_environment(incident: IncidentId, store: StoreDep, _: Viewer) -> JsonResponse:
    """Return settings and versions of the ranks and their differences, like `triage env --format json`."""
    return JsonResponse(incident_queries.get_document(store, incident, "environment"))
