"""Search and sums."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from triage.render import incidents as shown
from triage.service import queries
from triage.service.api import schemas
from triage.service.api.answers import Json
from triage.service.api.incidents import Wanted
from triage.service.deps import TheCatalog, TheStore, Viewer

router = APIRouter(tags=["search"])


@router.get("/search", response_model=schemas.SearchOut)
def search(
    store: TheStore,
    catalog: TheCatalog,
    _: Viewer,
    q: Annotated[
        str,
        Query(max_length=400, description='words; "in quotes" they stay together', examples=["retry exceeded mlx5"]),
    ],
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
) -> Json:
    """Signatures, guides and incidents with all the words, else with some of them."""
    found = queries.search(store, catalog, q, limit=limit)
    return Json(shown.hits_as_dict(found.incidents, found.catalog, q))


@router.get("/stats", response_model=schemas.Stats)
def stats(store: TheStore, _: Viewer, wanted: Wanted) -> Json:
    """Sums of the incidents that the filters let through."""
    return Json(shown.sums_as_dict(queries.sums(store, wanted)))
