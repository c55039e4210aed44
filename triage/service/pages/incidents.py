"""The list of incidents with its filters, and search."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import Response

from triage.model.store import Incident
from triage.service import incident_queries, view_queries
from triage.service.dependencies import CatalogDep, StoreDep, Viewer
from triage.service.incident_queries import incident_filter
from triage.service.pages.rendering import page_and_json, render_page
from triage.store.search import FACT, Filter, StatsRow

router = APIRouter()
FACET_TITLES = {"verdict": "Verdict", "domain": "Domain", "signature": "Cause", "cluster": "Cluster", "host": "Host"}

FACT_ORDER = ("team", "user", "project", "partition", "cluster", "image", "torch")  # the others follow by name
ACRONYMS = ("cann", "cuda", "cudnn", "gpu", "hccl", "nccl", "os", "rccl", "rocm")


@dataclass(frozen=True, slots=True)
class Facet:
    """One way to narrow the list. `name` is the query parameter, `chosen` its current value.

    `latest` is in how many of the latest incidents it was counted, 0 if in all.
    """

    name: str
    title: str
    chosen: str
    counts: tuple[StatsRow, ...]
    latest: int = 0


def fact_title(name: str) -> str:
    """Return the heading of a fact: its name as people write it."""
    return name.upper() if name in ACRONYMS else name.capitalize()


@dataclass(frozen=True, slots=True)
class IncidentsView:
    """One page of the list. `next` is the cursor of the next page."""

    incidents: tuple[Incident, ...]
    total: int
    next: str | None
    facets: tuple[Facet, ...]
    limit: int
    views: tuple[dict[str, Any], ...] = ()


@page_and_json(router, "/incidents")
def list_incidents(
    request: Request,
    store: StoreDep,
    user: Viewer,
    query: Annotated[Filter, Depends(incident_filter)],
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
    after: Annotated[str | None, Query(max_length=100)] = None,
) -> Response:
    """Show the incidents that match the filters."""
    page = incident_queries.list_incidents(store, query, limit=limit, after=after)
    counts = store.search.count_facets(query)
    latest = store.search.latest_counted(query)
    facets = tuple(
        Facet(name, title, getattr(query, name) or "", tuple(counts[name]), latest if name == "host" else 0)
        for name, title in FACET_TITLES.items()
        if counts.get(name)
    )
    chosen, facts = dict(query.facts), [name.removeprefix(FACT) for name in counts if name.startswith(FACT)]
    names = sorted(facts, key=lambda name: (FACT_ORDER.index(name) if name in FACT_ORDER else len(FACT_ORDER), name))
    facets += tuple(
        Facet(FACT + name, fact_title(name), chosen.get(name, ""), tuple(counts[FACT + name]), latest) for name in names
    )
    views = tuple(map(view_queries.view_as_dict, store.saved_views.list_views(user.name, "incidents")))
    view = IncidentsView(page.incidents, page.total, page.next, facets, limit, views)
    return render_page(request, "incidents.html", view)


@dataclass(frozen=True, slots=True)
class CatalogHit:
    """A signature or a guide with the words."""

    kind: str
    id: str
    title: str


@dataclass(frozen=True, slots=True)
class IncidentHit:
    """An incident with the words. `pieces` are (text, whether it is one of the words)."""

    incident: Incident
    pieces: tuple[tuple[str, bool], ...]


@dataclass(frozen=True, slots=True)
class SearchView:
    """The results of a search."""

    query: str
    catalog: tuple[CatalogHit, ...]
    incidents: tuple[IncidentHit, ...]


@page_and_json(router, "/search")
def search(
    request: Request, store: StoreDep, catalog: CatalogDep, _: Viewer, q: Annotated[str, Query(max_length=400)] = ""
) -> Response:
    """Search signatures, guides and incidents. Words may be incomplete; double quotes make a phrase."""
    results = incident_queries.search(store, catalog, q)
    incidents = tuple(IncidentHit(hit.incident, _split_snippet(hit.snippet)) for hit in results.incidents)
    view = SearchView(q, tuple(CatalogHit(*row) for row in results.catalog), incidents)
    return render_page(request, "search.html", view)


def _split_snippet(snippet: str) -> tuple[tuple[str, bool], ...]:
    """Split a snippet of the store, where \\x02 and \\x03 enclose each word that matches."""
    pieces: list[tuple[str, bool]] = []
    for index, part in enumerate(snippet.split("\x02")):
        match, mark, rest = part.partition("\x03")
        pieces += [(match, True), (rest, False)] if mark and index else [(part, False)]
    return tuple((text, is_match) for text, is_match in pieces if text)
