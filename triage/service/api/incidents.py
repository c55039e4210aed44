"""Incidents: lists with filters and cursors, and one of them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query

from triage.service import queries
from triage.service.api.answers import Json
from triage.service.deps import TheStore, Viewer
from triage.service.filters import asked
from triage.store.search import Filter

router = APIRouter(prefix="/incidents", tags=["incidents"])
Wanted = Annotated[Filter, Depends(asked)]


@router.get("")
def list_incidents(
    store: TheStore,
    _: Viewer,
    wanted: Wanted,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
    after: Annotated[str | None, Query(max_length=100, description="`next` of the page before")] = None,
) -> Json:
    """The incidents that the filters let through, the latest failure first."""
    return Json(queries.listing(store, wanted, limit=limit, after=after).as_json())


@router.get("/{incident}")
def get_incident(incident: str, store: TheStore, _: Viewer) -> Json:
    """An incident with its whole diagnosis, what people said and what it was held for before."""
    return Json(queries.incident_as_json(store.incidents.get(incident)))
