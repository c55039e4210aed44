"""The list of signatures, and the page of one with its incidents."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from triage.catalog.graph import group_edges_by_effect
from triage.catalog.match import describe_clause
from triage.catalog.model import Catalog, Clause, Leaf, Signature
from triage.model.store import Cluster, DiagnosisChange, Feedback, Incident
from triage.render.signature import format_reach
from triage.render.week_chart import Bar, weeks
from triage.service import incident_queries
from triage.service.dependencies import CatalogDep, StoreDep, Viewer
from triage.service.pages.rendering import PLACEHOLDER, page_and_json, render_page
from triage.store import Store
from triage.store.search import Filter

router = APIRouter()
MAX_SAMPLES, MAX_WRONG, MAX_INCIDENTS, MAX_WEEKS = 4, 20, 12, 53
SIGNATURE_FIELDS = (
    *("id", "title", "revision", "status", "role", "severity", "action", "domain", "meaning", "impact", "summary"),
    *("origin", "falsepositives", "references", "replaced_by", "fingerprint"),
)


@dataclass(frozen=True, slots=True)
class SignatureRow:
    """A signature in the list; `count` is the number of incidents here with this cause."""

    id: str
    title: str
    role: str
    severity: str
    status: str
    domain: str
    count: int


@dataclass(frozen=True, slots=True)
class SignaturesView:
    """The list for one domain; `domains` are all domains."""

    domain: str
    domains: tuple[str, ...]
    signatures: tuple[SignatureRow, ...]


@dataclass(frozen=True, slots=True)
class CausalEdge:
    """A cause or an effect of the signature, and how far the edge reaches."""

    id: str
    title: str
    reach: str


@dataclass(frozen=True, slots=True)
class Sample:
    """A sample, and why it matches or does not."""

    text: str
    why: str


@dataclass(frozen=True, slots=True)
class SignatureView:
    """One signature and its history in this store.

    `clusters` were promoted to it, `changes` are diagnoses that a new catalog changed; `filled`: its texts have
    placeholders.
    """

    signature: dict[str, object]
    steps: tuple[str, ...]
    filled: bool
    conditions: tuple[str, ...]
    leads_to: tuple[CausalEdge, ...]
    follows: tuple[CausalEdge, ...]
    matching: tuple[Sample, ...]
    silent: tuple[Sample, ...]
    total: int
    weeks: tuple[Bar, ...]
    pictures: str
    incidents: tuple[Incident, ...]
    agree: int
    wrong: tuple[Feedback, ...]
    clusters: tuple[Cluster, ...]
    changes: tuple[DiagnosisChange, ...]


@page_and_json(router, "/signatures")
def list_signatures(
    request: Request, store: StoreDep, catalog: CatalogDep, _: Viewer, domain: Annotated[str, Query(max_length=80)] = ""
) -> Response:
    """Show the signatures of a domain, or all but those of tables without incidents."""
    counts = {row.name: row.count for row in store.search.count_facets(limit=5000)["signature"]}
    rows = tuple(
        SignatureRow(item.id, item.title, item.role, item.severity, item.status, item.domain, counts.get(item.id, 0))
        for item in sorted(catalog.signatures, key=lambda item: item.id)
        if item.domain == domain or (not domain and (counts.get(item.id) or not item.table))
    )
    domains = tuple(sorted({item.domain for item in catalog.signatures}))
    return render_page(request, "signatures.html", SignaturesView(domain, domains, rows))


@page_and_json(router, "/signatures/{signature}")
def show_signature(request: Request, signature: str, store: StoreDep, catalog: CatalogDep, _: Viewer) -> Response:
    """Show what a signature means, what to do, its samples, its incidents and its feedback."""
    view = _make_view(store, catalog, incident_queries.get_signature(catalog, signature))
    return render_page(request, "signature.html", view)


def _make_view(store: Store, catalog: Catalog, signature: Signature) -> SignatureView:
    feedback = store.feedback.list_feedback(signature=signature.id, limit=500)
    query = Filter(signature=signature.id)
    chart = weeks(store.search.compute_stats(query, limit=MAX_WEEKS).weeks, time.time())
    fields: dict[str, object] = {name: getattr(signature, name) for name in SIGNATURE_FIELDS}
    promoted = store.clusters.list_clusters(states=("promoted",), limit=500)
    causes, effects = _causal_edges(catalog, signature)
    return SignatureView(
        signature=fields | {"applies_to": dict(signature.applies_to)},
        steps=signature.steps,
        filled=any(PLACEHOLDER.search(text) for text in (signature.meaning, signature.summary, *signature.steps)),
        conditions=tuple(_list_conditions(signature.match)),
        leads_to=effects,
        follows=causes,
        matching=tuple(Sample(sample.text, sample.why) for sample in signature.samples_match[:MAX_SAMPLES]),
        silent=tuple(Sample(sample.text, sample.why) for sample in signature.samples_no_match[:MAX_SAMPLES]),
        total=store.search.count_incidents(query),
        weeks=chart.bars,
        pictures=chart.svg,
        incidents=tuple(store.search.list_incidents(query, limit=MAX_INCIDENTS)),
        agree=sum(item.verdict == "agree" for item in feedback),
        wrong=tuple(item for item in feedback if item.verdict == "wrong")[:MAX_WRONG],
        clusters=tuple(cluster for cluster in promoted if cluster.signature == signature.id),
        changes=tuple(store.incidents.list_changes(signature.id)),
    )


def _causal_edges(catalog: Catalog, signature: Signature) -> tuple[tuple[CausalEdge, ...], tuple[CausalEdge, ...]]:
    """Return the causes and the effects of a signature."""
    titles = {item.id: item.title for item in catalog.signatures}
    causes = tuple(
        CausalEdge(edge.cause, titles.get(edge.cause, ""), format_reach(edge.scope, edge.window))
        for edge in group_edges_by_effect(list(catalog.signatures)).get(signature.id, ())
    )
    effects = tuple(
        CausalEdge(edge.signature, titles.get(edge.signature, ""), format_reach(edge.scope, edge.window))
        for edge in signature.causal_edges
    )
    return causes, effects


def _list_conditions(match: Clause | Leaf | None, depth: int = 0) -> Iterator[str]:
    """Yield one line per condition, indented by depth."""
    indent = "  " * depth
    if isinstance(match, Leaf):
        yield indent + describe_clause(match)
    elif match is not None:
        yield f"{indent}{match.op} of:"
        for part in match.parts:
            yield from _list_conditions(part, depth + 1)
        if match.none:
            yield f"{indent}but not:"
            yield from (f"{indent}  {describe_clause(leaf)}" for leaf in match.none)
