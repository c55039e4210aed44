"""What ended jobs: signatures and clusters with the sums of their incidents."""

from __future__ import annotations

import time
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Path, Query
from pydantic import BeforeValidator

from triage.render import causes as rendered
from triage.render.table import iso
from triage.service import view_queries
from triage.service.api import requests, schemas
from triage.service.api.responses import JsonResponse, comment_as_dict
from triage.service.dependencies import Curator, StoreDep, Submitter, Viewer
from triage.service.incident_queries import Text, parse_time
from triage.store import Store
from triage.store.cause_work import WorkChange
from triage.store.causes import CauseFilter, Order

router = APIRouter(prefix="/causes", tags=["causes"])
CauseId = Annotated[
    str,
    Path(max_length=200, description="a signature, or a cluster's id or name", examples=["cuda.out-of-memory"]),
]
Kind = Annotated[Literal["signature", "cluster"] | None, BeforeValidator(lambda value: value or None)]
Status = Annotated[
    Literal["waiting", "open", "acknowledged", "fixed", "regressed", "ignored"] | None,
    BeforeValidator(lambda value: value or None),
]
OrderQuery = Annotated[
    Order, Query(description="most failures this week, latest failure, most failures, or latest first failure first")
]
Offset = Annotated[int, Query(ge=0, le=1_000_000)]
Limit = Annotated[int, Query(ge=1, le=500)]


def cause_filter(
    store: StoreDep,
    user: Viewer,
    kind: Kind = None,
    domain: Text = None,
    host: Text = None,
    q: Text = None,
    status: Status = None,
    assignee: Text = None,
    new: Annotated[
        str | None, Query(max_length=40, description="first stored since: 7d, 12h, a date, or visit", examples=["7d"])
    ] = None,
) -> CauseFilter:
    """Return the filter of a request (a FastAPI dependency). Empty values, as forms send them, mean no filter."""
    since = None
    if new:
        since = view_queries.last_visit(store, user) if new == view_queries.VISIT else parse_time(new, time.time())
    return CauseFilter(kind, domain or None, host or None, q or None, status, assignee or None, since)


FilterDep = Annotated[CauseFilter, Depends(cause_filter)]


@router.get("", response_model=schemas.CauseList)
def list_causes(
    store: StoreDep, _: Viewer, query: FilterDep, order: OrderQuery = "week", limit: Limit = 50, offset: Offset = 0
) -> JsonResponse:
    """List the causes of failures with their counts, days, times and hosts."""
    page = store.causes.list_causes(query, order=order, limit=limit, offset=offset)
    late_since = iso(page.late_since) if page.late_since is not None else None
    rows = [rendered.as_dict(cause) for cause in page.causes]
    return JsonResponse({"total": page.total, "causes": rows, "late_since": late_since})


@router.get("/{cause}", response_model=schemas.CauseRow)
def get_cause(cause: CauseId, store: StoreDep, _: Viewer) -> JsonResponse:
    """Return one cause. `GET /incidents?cause=…` lists its incidents."""
    return JsonResponse(rendered.as_dict(store.causes.get(cause)))


@router.post("/work", response_model=schemas.WorkEntries)
def change_causes(body: requests.BulkWorkIn, store: StoreDep, user: Curator) -> JsonResponse:
    """Change status, assignee or ticket of several causes at once: all of them or none."""
    return JsonResponse({"entries": change_work(store, body.causes, body, user.name)})


@router.post("/{cause}/work", response_model=schemas.CauseRow)
def change_cause(cause: CauseId, body: requests.WorkIn, store: StoreDep, user: Curator) -> JsonResponse:
    """Change status, assignee or ticket of a cause. A failure after the date of a fix makes it `regressed`."""
    change_work(store, [cause], body, user.name)
    return JsonResponse(rendered.as_dict(store.causes.get(cause)))


@router.get("/{cause}/comments", response_model=schemas.CommentList)
def list_comments(cause: CauseId, store: StoreDep, _: Viewer) -> JsonResponse:
    """List the comments on a cause, the oldest first."""
    comments = store.cause_work.list_comments(store.causes.get(cause).id)
    return JsonResponse({"comments": [comment_as_dict(comment) for comment in comments]})


@router.post("/{cause}/comments", response_model=schemas.CommentRow, status_code=201)
def add_comment(cause: CauseId, body: requests.CommentIn, store: StoreDep, user: Submitter) -> JsonResponse:
    """Comment on a cause. Comments are never deleted."""
    comment = store.cause_work.comment(store.causes.get(cause).id, body.text, actor=user.name)
    return JsonResponse(comment_as_dict(comment), status_code=201)


def change_work(store: Store, causes: list[str], body: requests.WorkIn, actor: str) -> list[int]:
    """Change the work on causes that have incidents; return the audit entries. Raises OptionError."""
    date = parse_time(body.date, time.time()) if body.date else None
    change = WorkChange(body.status, body.fixed_in, date, body.assignee, body.ticket)
    return store.cause_work.change([store.causes.get(cause).id for cause in causes], change, actor=actor)
