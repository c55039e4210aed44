"""Incidents: a list that the address filters, with what else it could be filtered by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import RedirectResponse, Response

from triage.model.store import Incident
from triage.service import queries
from triage.service.deps import TheStore, Viewer
from triage.service.filters import asked
from triage.service.pages.show import both, page
from triage.store.search import Count, Filter

router = APIRouter()
LIMITS = (25, 50, 100, 200)


@dataclass(frozen=True, slots=True)
class Facet:
    """One way to narrow the list: `name` is the parameter of the address, `chosen` its value now."""

    name: str
    title: str
    chosen: str
    counts: tuple[Count, ...]


@dataclass(frozen=True, slots=True)
class Incidents:
    """The page. `next` is the cursor of the page after this one."""

    incidents: tuple[Incident, ...]
    total: int
    next: str | None
    facets: tuple[Facet, ...]
    limit: int


@router.get("/")
def home(_: Viewer) -> Response:
    """The list is what people come for."""
    return RedirectResponse("/incidents", 303)


@both(router, "/incidents")
def incidents(
    request: Request,
    store: TheStore,
    _: Viewer,
    wanted: Annotated[Filter, Depends(asked)],
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
    after: Annotated[str | None, Query(max_length=100)] = None,
) -> Response:
    """The list."""
    found = queries.listing(store, wanted, limit=limit, after=after)
    facets = [
        Facet(name, title, _chosen(getattr(wanted, name)), tuple(counts))
        for name, title, counts in _facets(store.search.facets(wanted))
    ]
    return page(request, "incidents.html", Incidents(found.incidents, found.total, found.next, tuple(facets), limit))


def _chosen(value: object) -> str:
    return "" if value is None else str(value)


def _facets(found: dict[str, tuple[Count, ...]]) -> Sequence[tuple[str, str, tuple[Count, ...]]]:
    titles = {"verdict": "Verdict", "domain": "Domain", "signature": "Cause", "cluster": "Cluster", "host": "Host"}
    return [(name, title, found[name]) for name, title in titles.items() if found.get(name)]
