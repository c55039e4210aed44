"""The catalog: its version and its signatures."""

from __future__ import annotations

import json
from typing import Annotated

from fastapi import APIRouter, Path, Query
from starlette.responses import Response

from triage.render import signature as texts
from triage.service import queries
from triage.service.api import schemas
from triage.service.api.answers import Json
from triage.service.deps import TheCatalog, Viewer

router = APIRouter(tags=["catalog"])


@router.get("/catalog", response_model=schemas.CatalogOut)
def get_catalog(catalog: TheCatalog, _: Viewer) -> Json:
    """Its version, how many signatures it has, and files that could not be used."""
    return Json(
        {
            "version": catalog.version,
            "signatures": len(catalog.signatures),
            "problems": [note.message for note in catalog.warnings],
        }
    )


@router.get("/signatures", response_model=schemas.SignatureList)
def list_signatures(
    catalog: TheCatalog,
    _: Viewer,
    domain: Annotated[str | None, Query(max_length=100, description="only of this domain, like cuda")] = None,
    role: Annotated[str | None, Query(max_length=20, description="only of this role, like cause")] = None,
) -> Json:
    """All signatures, in a line each."""
    rows = [
        item for item in catalog.signatures if (not domain or item.domain == domain) and (not role or item.role == role)
    ]
    names = ("id", "title", "role", "severity", "status", "revision")
    return Json(
        {"version": catalog.version, "signatures": [{name: getattr(item, name) for name in names} for item in rows]}
    )


@router.get("/signatures/{signature}", response_model=schemas.SignatureRow)
def get_signature(
    signature: Annotated[str, Path(max_length=120, examples=["cuda.out-of-memory"])], catalog: TheCatalog, _: Viewer
) -> Response:
    """What a signature means, what it matches and what to do."""
    return Json(json.loads(texts.as_json(queries.signature(catalog, signature))))
