"""One incident: the answer first, then what it rests on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Form, Query, Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response

from triage.base.errors import OptionError
from triage.model.diagnosis import Diagnosis
from triage.model.store import Change, Feedback, Incident
from triage.render import chain, matrix, rankmap, swimlanes, words
from triage.render.safe import safe
from triage.service.deps import Submitter, TheStore, Viewer
from triage.service.pages import evidence
from triage.service.pages.show import both, page
from triage.store import Store
from triage.store.search import Likeness

router = APIRouter()
ALIKE = 8
ODD_RANKS = 200
# What a confidence means for the one who must act.
CONFIDENCE: Mapping[str, str] = {
    "high": "act on it",
    "medium": "likely; read the evidence before you act",
    "low": "a guess; see what else was considered",
}


@dataclass(frozen=True, slots=True)
class Pictures:
    """Drawings, as SVG; empty where there is nothing to draw."""

    chain: str
    ranks: str
    lanes: str
    groups: tuple[matrix.Drawn, ...]


@dataclass(frozen=True, slots=True)
class Page:
    """Everything on the page; `pictures` are not in the JSON, which has the data that they are drawn of.

    `more` is how many lines around the facts there may be besides, 0 when all are shown.
    """

    incident: Incident
    diagnosis: Diagnosis
    kind: words.Kind
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
    similar: tuple[Likeness, ...]
    feedback: tuple[Feedback, ...]
    history: tuple[Change, ...]
    redacted: Mapping[str, int]
    timeline: tuple[tuple[str, str, str], ...]
    warnings: tuple[tuple[list[str], str, str], ...]
    pictures: Pictures


def view(store: Store, wanted: str, around: int = evidence.AROUND) -> Page:
    """Raises NotFoundError, or OptionError when several incidents begin so."""
    found = store.incidents.get(wanted)
    diagnosis, root = found.diagnosis, found.diagnosis.root_cause
    beside = documents(store, found.incident.id)
    facts = evidence.facts(diagnosis, beside.get("context", {}).get("sources", {}), around)
    links = {fact.finding: f"#{fact.anchor}" for fact in reversed(facts)}
    flight = beside.get("flight")
    said = words.confidence(root.confidence) if root is not None else ""
    return Page(
        incident=found.incident,
        diagnosis=diagnosis,
        kind=words.kind(diagnosis),
        headline=words.headline(diagnosis),
        who=words.seen(diagnosis),
        confidence=said,
        advice=CONFIDENCE.get(said.partition(" ")[0], ""),
        facts=facts,
        more=evidence.FAR if around < evidence.FAR else 0,
        crash=evidence.crash(facts),
        considered=tuple((part, finding) for part, finding in evidence.parts(diagnosis) if part != "root"),
        environment=beside.get("environment"),
        flight=flight,
        similar=tuple(store.search.similar(found.incident.id, limit=ALIKE)),
        feedback=found.feedback,
        history=found.history,
        redacted=found.redacted,
        timeline=tuple(words.timeline(diagnosis)),
        warnings=tuple(words.warnings(diagnosis)),
        pictures=Pictures(
            chain=chain.draw(diagnosis, links),
            ranks=rankmap.draw(diagnosis.ranks, root.ranks if root is not None else (), style=False),
            lanes=swimlanes.draw(diagnosis, style=False) if root is not None else "",
            groups=matrix.draw(flight) if flight is not None else (),
        ),
    )


def documents(store: Store, incident: str) -> dict[str, Any]:
    """What was stored beside the diagnosis."""
    num = store.incidents.number(incident)
    found = {kind: store.beside.document(num, kind) for kind in ("context", "environment", "flight")}
    return {kind: document for kind, document in found.items() if document is not None}


@both(router, "/incidents/{incident}")
def show(
    request: Request,
    incident: str,
    store: TheStore,
    _: Viewer,
    around: Annotated[int, Query(ge=0, le=evidence.FAR)] = evidence.AROUND,
) -> Response:
    """The page; `around` is how many lines before and after the facts are shown."""
    return page(request, "incident.html", view(store, incident, around))


@router.get("/incidents/{incident}/evidence.txt")
def evidence_text(incident: str, store: TheStore, _: Viewer) -> Response:
    """All quoted lines as a text to keep: never shown by the browser."""
    shown = view(store, incident)
    parts = []
    for fact in shown.facts:
        who = f", rank {fact.rank}" if fact.rank is not None else ""
        rows = [f"{'>' if row.own else ' '} {row.number:>7}  {row.text}" for row in fact.around]
        parts.append("\n".join([f"=== {fact.place}{who} ({fact.finding})", *(rows or fact.text.split("\n"))]))
    name = f"{shown.incident.id}-evidence.txt"
    return PlainTextResponse(
        safe("\n\n".join(parts)) + "\n", headers={"Content-Disposition": f'attachment; filename="{name}"'}
    )


@router.post("/incidents/{incident}/feedback")
def feedback(
    incident: str,
    store: TheStore,
    who: Submitter,
    verdict: Annotated[Literal["agree", "wrong"], Form()],
    because: Annotated[str, Form(max_length=4000)] = "",
    signature: Annotated[str, Form(max_length=200)] = "",
) -> Response:
    """Agree, or say that it is wrong and why."""
    if verdict == "wrong" and not because.strip():
        raise OptionError(
            "a wrong diagnosis needs a reason", hint="go back and say what it really was, and how you know"
        )
    said = store.feedback.add(incident, verdict, actor=who.name, because=because, signature=signature.strip() or None)
    return RedirectResponse(
        f"/incidents/{said.incident}?said={'agreed' if verdict == 'agree' else 'wrong'}#people", 303
    )
