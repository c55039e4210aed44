"""Signatures: the list, and one of them with what it met here."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from triage.catalog.graph import explained_by
from triage.catalog.match import describe
from triage.catalog.model import Catalog, Clause, Leaf, Signature
from triage.model.store import Change, Cluster, Feedback, Incident
from triage.render.bars import Bar, weeks
from triage.render.signature import reach
from triage.service import queries
from triage.service.deps import TheCatalog, TheStore, Viewer
from triage.service.pages.show import SLOT, both, page
from triage.store.search import Filter

router = APIRouter()
SAMPLES, REPORTS, LATEST = 4, 20, 12


@dataclass(frozen=True, slots=True)
class Listed:
    """A line of the list; `count` is how often it was the cause here."""

    id: str
    title: str
    role: str
    severity: str
    status: str
    count: int


@dataclass(frozen=True, slots=True)
class Signatures:
    """The list, by domain. `domains` are all there are."""

    domain: str
    domains: tuple[str, ...]
    signatures: tuple[Listed, ...]


@dataclass(frozen=True, slots=True)
class Edge:
    """Another signature that it leads to or follows from, and how far that reaches."""

    id: str
    title: str
    reach: str


@dataclass(frozen=True, slots=True)
class Line:
    """A sample, and why it matches or does not."""

    text: str
    why: str


@dataclass(frozen=True, slots=True)
class SignaturePage:
    """One signature: what it says, and what became of it in this store: `clusters` that it was made of, `changes` of
    what it was found in.

    `filled`: an incident puts words of its logs into the texts.
    """

    signature: dict[str, object]
    steps: tuple[str, ...]
    filled: bool
    conditions: tuple[str, ...]
    leads_to: tuple[Edge, ...]
    follows: tuple[Edge, ...]
    matching: tuple[Line, ...]
    silent: tuple[Line, ...]
    total: int
    weeks: tuple[Bar, ...]
    pictures: str
    incidents: tuple[Incident, ...]
    agree: int
    wrong: tuple[Feedback, ...]
    clusters: tuple[Cluster, ...]
    changes: tuple[Change, ...]


@both(router, "/signatures")
def signatures(
    request: Request, store: TheStore, catalog: TheCatalog, _: Viewer, domain: Annotated[str, Query(max_length=80)] = ""
) -> Response:
    """What is known."""
    counts = {item.name: item.count for item in store.search.facets(limit=5000)["signature"]}
    domains = tuple(sorted({item.domain for item in catalog.signatures}))
    listed = [
        Listed(item.id, item.title, item.role, item.severity, item.status, counts.get(item.id, 0))
        for item in sorted(catalog.signatures, key=lambda item: item.id)
        if item.domain == domain or (not domain and (counts.get(item.id) or not item.table))
    ]
    return page(request, "signatures.html", Signatures(domain, domains, tuple(listed)))


@both(router, "/signatures/{signature}")
def show(request: Request, signature: str, store: TheStore, catalog: TheCatalog, _: Viewer) -> Response:
    """Meaning, steps, samples, hits over time, wrong reports."""
    found = queries.signature(catalog, signature)
    said = store.feedback.listed(signature=found.id, limit=500)
    wanted = Filter(signature=found.id)
    bars = weeks(store.search.sums(wanted, limit=53).weeks, time.time())
    titles = {item.id: item.title for item in catalog.signatures}
    view = SignaturePage(
        signature=_plain(found),
        steps=found.steps,
        filled=any(SLOT.search(text) for text in (found.meaning, found.summary, *found.steps)),
        conditions=tuple(_conditions(found.match)),
        leads_to=tuple(
            Edge(edge.signature, titles.get(edge.signature, ""), reach(edge.scope, edge.window))
            for edge in found.leads_to
        ),
        follows=tuple(_follows(found, catalog, titles)),
        matching=tuple(Line(sample.text, sample.why) for sample in found.samples_match[:SAMPLES]),
        silent=tuple(Line(sample.text, sample.why) for sample in found.samples_no_match[:SAMPLES]),
        total=store.search.count(wanted),
        weeks=bars.bars,
        pictures=bars.svg,
        incidents=tuple(store.search.listed(wanted, limit=LATEST)),
        agree=sum(item.verdict == "agree" for item in said),
        wrong=tuple(item for item in said if item.verdict == "wrong")[:REPORTS],
        clusters=tuple(
            item for item in store.clusters.listed(states=("promoted",), limit=500) if item.signature == found.id
        ),
        changes=tuple(store.incidents.changes(found.id)),
    )
    return page(request, "signature.html", view)


def _plain(found: Signature) -> dict[str, object]:
    names = "id title revision status role severity action domain meaning impact summary origin falsepositives references replaced_by fingerprint"
    return {name: getattr(found, name) for name in names.split()} | {"applies_to": dict(found.applies_to)}


def _follows(found: Signature, catalog: Catalog, titles: dict[str, str]) -> Iterator[Edge]:
    for arrow in explained_by(list(catalog.signatures)).get(found.id, ()):
        yield Edge(arrow.cause, titles.get(arrow.cause, ""), reach(arrow.scope, arrow.window))


def _conditions(match: Clause | Leaf | None, depth: int = 0) -> Iterator[str]:
    """A line a condition, what belongs together behind the same indent."""
    space = "  " * depth
    if isinstance(match, Leaf):
        yield space + describe(match)
    elif match is not None:
        yield f"{space}{match.op} of:"
        for part in match.parts:
            yield from _conditions(part, depth + 1)
        if match.none:
            yield f"{space}but not:"
            yield from (f"{space}  {describe(leaf)}" for leaf in match.none)
