"""The catalog, search and statistics."""

from __future__ import annotations

import json
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Response

from triage.render import incidents as rendered, signature as rendered_signature
from triage.service import incident_queries
from triage.service.api import schemas
from triage.service.api.responses import JsonResponse
from triage.service.dependencies import CatalogDep, StoreDep, Viewer
from triage.service.incident_queries import incident_filter
from triage.store.search import Filter

router = APIRouter()


@router.get("/catalog", response_model=schemas.CatalogOut, tags=["catalog"])
def get_catalog(catalog: CatalogDep, _: Viewer) -> JsonResponse:
    """Return the version of the catalog, the number of signatures, and problems with its files."""
    problems = [note.message for note in catalog.warnings]
    return JsonResponse({"version": catalog.version, "signatures": len(catalog.signatures), "problems": problems})


@router.get("/signatures", response_model=schemas.SignatureList, tags=["catalog"])
def list_signatures(
    catalog: CatalogDep,
    _: Viewer,
    domain: Annotated[str | None, Query(max_length=100, description="only this domain, like cuda")] = None,
    role: Annotated[str | None, Query(max_length=20, description="only this role, like cause")] = None,
) -> JsonResponse:
    """List all signatures."""
    signatures = [
        item for item in catalog.signatures if (not domain or item.domain == domain) and (not role or item.role == role)
    ]
    names = ("id", "title", "role", "severity", "status", "revision")
    rows = [{name: getattr(item, name) for name in names} for item in signatures]
    return JsonResponse({"version": catalog.version, "signatures": rows})


@router.get("/signatures/{signature}", response_model=schemas.SignatureRow, tags=["catalog"])
def get_signature(
    signature: Annotated[str, Path(max_length=120, examples=["cuda.out-of-memory"])], catalog: CatalogDep, _: Viewer
) -> Response:
    """Return what a signature means, what it matches and what to do."""
    return JsonResponse(json.loads(rendered_signature.as_json(incident_queries.get_signature(catalog, signature))))


@router.get("/search", response_model=schemas.SearchOut, tags=["search"])
def search(
    store: StoreDep,
    catalog: CatalogDep,
    _: Viewer,
    q: Annotated[
        str, Query(max_length=400, description='words; "in quotes": a phrase', examples=["retry exceeded mlx5"])
    ],
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
) -> JsonResponse:
    """Find signatures, guides and incidents with all the words, else with some of them."""
    results = incident_queries.search(store, catalog, q, limit=limit)
    return JsonResponse(rendered.hits_as_dict(results.incidents, results.catalog, q))


@router.get("/stats", response_model=schemas.Stats, tags=["search"])
def stats(store: StoreDep, _: Viewer, query: Annotated[Filter, Depends(incident_filter)]) -> JsonResponse:
    """Count the incidents that match the filters."""
    return JsonResponse(rendered.sums_as_dict(store.search.compute_stats(query)))
