"""What ended jobs: signatures and clusters with the sums of their incidents."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Path, Query
from pydantic import BeforeValidator

from triage.render import causes as rendered
from triage.service.api import schemas
from triage.service.api.responses import JsonResponse
from triage.service.dependencies import StoreDep, Viewer
from triage.service.incident_queries import Text
from triage.store.causes import CauseFilter, Order

router = APIRouter(prefix="/causes", tags=["causes"])
CauseId = Annotated[
    str,
    Path(max_length=200, description="a signature, or a cluster's id or name", examples=["cuda.out-of-memory"]),
]
Kind = Annotated[Literal["signature", "cluster"] | None, BeforeValidator(lambda value: value or None)]
OrderQuery = Annotated[
    Order, Query(description="most failures this week, latest failure, most failures, or latest first failure first")
]
Offset = Annotated[int, Query(ge=0, le=1_000_000)]
Limit = Annotated[int, Query(ge=1, le=500)]


def cause_filter(kind: Kind = None, domain: Text = None, host: Text = None, q: Text = None) -> CauseFilter:
    """Return the filter of a request (a FastAPI dependency). Empty values, as forms send them, mean no filter."""
    return CauseFilter(kind, domain or None, host or None, q or None)


FilterDep = Annotated[CauseFilter, Depends(cause_filter)]


@router.get("", response_model=schemas.CauseList)
def list_causes(
    store: StoreDep, _: Viewer, query: FilterDep, order: OrderQuery = "week", limit: Limit = 50, offset: Offset = 0
) -> JsonResponse:
    """List the causes of failures with their counts, days, times and hosts."""
    page = store.causes.list_causes(query, order=order, limit=limit, offset=offset)
    return JsonResponse({"total": page.total, "causes": [rendered.as_dict(cause) for cause in page.causes]})


@router.get("/{cause}", response_model=schemas.CauseRow)
def get_cause(cause: CauseId, store: StoreDep, _: Viewer) -> JsonResponse:
    """Return one cause. `GET /incidents?cause=…` lists its incidents."""
    return JsonResponse(rendered.as_dict(store.causes.get(cause)))
