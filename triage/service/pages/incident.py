"""The page of one incident: the diagnosis first, then its evidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Form, Query, Request
from starlette.responses import PlainTextResponse, Response

from triage.base.errors import OptionError
from triage.base.rank_ranges import format_ranks
from triage.model import Diagnosis, DiagnosisChange, Feedback, Incident
from triage.render import causal_chain, flight_matrix, inconclusive, job_warnings, phrases, rankmap, swimlanes
from triage.render.recurrence import describe_recurrence
from triage.render.sanitize import sanitize
from triage.service.dependencies import Admin, StateDep, StoreDep, Submitter, Viewer
from triage.service.incident_files import delete_for_good
from triage.service.pages import evidence
from triage.service.pages.rendering import page_and_json, redirect_with_notice, render_page
from triage.store import Store
from triage.store.incidents import blamed_device
from triage.store.recurrence import find_recurrence
from triage.store.search import SimilarIncident

router = APIRouter()
MAX_SIMILAR = 8
# What to do with a diagnosis of this confidence.
CONFIDENCE_ADVICE: Mapping[str, str] = {
    "high": "act on it",
    "medium": "likely; read the evidence before you act",
    "low": "a guess; see what else was considered",
}


@dataclass(frozen=True, slots=True)
class Pictures:
    """Drawings as SVG, empty if there is nothing to draw."""

    chain: str
    chain_folded: str
    ranks: str
    lanes: str
    lanes_narrow: str
    groups: tuple[flight_matrix.GroupDrawing, ...]


@dataclass(frozen=True, slots=True)
class IncidentView:
    """Everything on the page. The JSON has the data of `pictures`, not the drawings.

    `more` is the number of lines around the evidence that the page can also show, 0 if it shows all. `recurrence` says
    how often the cause ended jobs before.
    """

    incident: Incident
    diagnosis: Diagnosis
    kind: phrases.VerdictKind
    headline: str
    who: str
    confidence: str
    advice: str
    facts: tuple[evidence.Fact, ...]
    more: int
    crash: evidence.Fact | None
    considered: tuple[tuple[str, Any], ...]
    environment: Mapping[str, Any] | None
    flight: Mapping[str, Any] | None
    similar: tuple[SimilarIncident, ...]
    feedback: tuple[Feedback, ...]
    history: tuple[DiagnosisChange, ...]
    redacted: Mapping[str, int]
    timeline: tuple[tuple[str, str, str], ...]
    warnings: tuple[tuple[list[str], str, str], ...]
    pictures: Pictures
    end_sections: tuple[tuple[str, list[str]], ...] = ()
    end_steps: tuple[str, ...] = ()
    why: tuple[str, ...] = ()
    next_steps: tuple[str, ...] = ()
    began: tuple[int, ...] = ()
    borrowed: bool = False
    cause: str = ""
    recurrence: str = ""
    device: str = ""


def make_view(store: Store, incident_id: str, around: int = evidence.LINES_AROUND) -> IncidentView:
    """Return the page. Raises NotFoundError, or OptionError if several ids start like this."""
    stored = store.incidents.get(incident_id)
    diagnosis, root = stored.diagnosis, stored.diagnosis.root_cause
    number = store.incidents.find_number(stored.incident.id)
    documents = {kind: store.service_data.get_document(number, kind) for kind in ("context", "environment", "flight")}
    facts = evidence.list_facts(diagnosis, (documents["context"] or {}).get("sources", {}), around)
    confidence = phrases.format_confidence(root.confidence) if root is not None else ""
    recurrence = find_recurrence(store, stored.incident.id)
    return IncidentView(
        incident=stored.incident,
        diagnosis=diagnosis,
        kind=phrases.verdict_kind(diagnosis),
        headline=phrases.headline(diagnosis),
        who=phrases.describe_line_origin(diagnosis),
        confidence=confidence,
        advice=CONFIDENCE_ADVICE.get(confidence.partition(" ")[0], ""),
        facts=facts,
        more=evidence.MAX_LINES_AROUND if around < evidence.MAX_LINES_AROUND else 0,
        crash=evidence.find_crash(facts),
        considered=tuple(item for item in evidence.list_findings(diagnosis) if item[0] != "root"),
        environment=documents["environment"],
        flight=documents["flight"],
        similar=tuple(store.search.find_similar(stored.incident.id, limit=MAX_SIMILAR)),
        feedback=stored.feedback,
        history=stored.history,
        redacted=stored.redacted,
        timeline=_list_moments(diagnosis),
        warnings=tuple(job_warnings.merge_warnings(diagnosis)),
        pictures=_draw(diagnosis, documents["flight"], facts),
        end_sections=tuple(inconclusive.sections(diagnosis)),
        end_steps=tuple(inconclusive.next_steps(diagnosis)),
        why=tuple(phrases.root_reasons(diagnosis)),
        next_steps=tuple(phrases.next_steps(diagnosis)),
        began=phrases.began_ranks(diagnosis),
        borrowed=any(moment.or_later for moment in diagnosis.timeline),
        cause=stored.incident.signature or stored.incident.cluster or "",
        recurrence=describe_recurrence(recurrence) if recurrence is not None else "",
        device=(blamed_device(root) or "") if root is not None and len(stored.incident.hosts) == 1 else "",
    )


def _list_moments(diagnosis: Diagnosis) -> tuple[tuple[str, str, str], ...]:
    """Return (time, ranks, what) of the timeline; successive moments that show the same are one."""
    entries = []
    for what, group in groupby(diagnosis.timeline, key=lambda moment: moment.signature or moment.what):
        moments = list(group)
        ranks = [moment.rank for moment in moments if moment.rank is not None]
        entries.append((phrases.format_moment_time(moments[0], diagnosis), format_ranks(ranks) if ranks else "", what))
    return tuple(entries) if len(entries) > 1 else ()


def _draw(diagnosis: Diagnosis, flight: Mapping[str, Any] | None, facts: tuple[evidence.Fact, ...]) -> Pictures:
    root = diagnosis.root_cause
    links = {fact.finding: f"#{fact.anchor}" for fact in reversed(facts)}
    return Pictures(
        chain="" if causal_chain.is_folded(diagnosis) else causal_chain.draw(diagnosis, links),
        chain_folded=causal_chain.draw(diagnosis, links, folded=True),
        ranks=rankmap.draw(diagnosis.ranks, phrases.began_ranks(diagnosis), style=False),
        lanes=swimlanes.draw(diagnosis, style=False) if root is not None else "",
        lanes_narrow=swimlanes.draw(diagnosis, style=False, narrow=True) if root is not None else "",
        groups=flight_matrix.draw(flight) if flight is not None else (),
    )


@page_and_json(router, "/incidents/{incident}")
def show_incident(
    request: Request,
    incident: str,
    store: StoreDep,
    _: Viewer,
    around: Annotated[int, Query(ge=0, le=evidence.MAX_LINES_AROUND)] = evidence.LINES_AROUND,
) -> Response:
    """Show an incident; `around` is the number of lines before and after the evidence."""
    return render_page(request, "incident.html", make_view(store, incident, around))


@router.get("/incidents/{incident}/evidence.txt")
def download_evidence(incident: str, store: StoreDep, _: Viewer) -> Response:
    """Return all quoted lines as a text file that the browser saves."""
    view = make_view(store, incident)
    parts = []
    for fact in view.facts:
        rank = f", rank {fact.rank}" if fact.rank is not None else ""
        rows = [f"{'>' if row.own else ' '} {row.number:>7}  {row.text}" for row in fact.around]
        parts.append("\n".join([f"=== {fact.place}{rank} ({fact.finding})", *(rows or fact.text.split("\n"))]))
    headers = {"Content-Disposition": f'attachment; filename="{view.incident.id}-evidence.txt"'}
    return PlainTextResponse(sanitize("\n\n".join(parts)) + "\n", headers=headers)


@router.post("/incidents/{incident}/delete")
def delete_incident(
    incident: str, state: StateDep, user: Admin, because: Annotated[str, Form(max_length=2000)] = ""
) -> Response:
    """Delete an incident for good."""
    delete_for_good(state, user, incident, because)
    return redirect_with_notice("/incidents", "incident-deleted")


@router.post("/incidents/{incident}/feedback")
def give_feedback(
    incident: str,
    store: StoreDep,
    user: Submitter,
    verdict: Annotated[Literal["agree", "wrong"], Form()],
    because: Annotated[str, Form(max_length=4000)] = "",
    signature: Annotated[str, Form(max_length=200)] = "",
) -> Response:
    """Agree with the diagnosis, or mark it as wrong with a reason."""
    if verdict == "wrong" and not because.strip():
        raise OptionError("a reason is missing", hint="go back and write what the cause was, and how you know")
    signature_id = signature.strip() or None
    feedback = store.feedback.add(incident, verdict, actor=user.name, because=because, signature=signature_id)
    return redirect_with_notice(
        f"/incidents/{feedback.incident}", "agreed" if verdict == "agree" else "wrong", "#people"
    )
