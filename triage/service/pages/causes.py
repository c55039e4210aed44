"""The first page: what ended jobs, with the failures of each day; and the page of one cause with its incidents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import RedirectResponse, Response

from triage.model.store import Cause, Incident
from triage.service.api.causes import FilterDep, OrderQuery
from triage.service.dependencies import StoreDep, Viewer
from triage.service.pages.rendering import page_and_json, render_page
from triage.store.causes import TREND_DAYS
from triage.store.search import Filter

router = APIRouter()
PAGE = 50
BAR_WIDTH, TREND_HEIGHT = 4, 24
ORDERS = {"week": "this week", "last": "last failure", "count": "all failures", "first": "newest"}


@dataclass(frozen=True, slots=True)
class Bar:
    """The failures of one day in a drawing: where the bar begins, and how high it is."""

    x: int
    height: float


@dataclass(frozen=True, slots=True)
class CausesView:
    """Some causes. `pictures` are the bars of each by its id; `older` is the offset of the next page, or None."""

    causes: tuple[Cause, ...]
    total: int
    order: str
    orders: dict[str, str]
    older: int | None
    pictures: dict[str, tuple[Bar, ...]]


@dataclass(frozen=True, slots=True)
class CauseView:
    """One cause and its incidents. `next` is the cursor of the next page."""

    cause: Cause
    incidents: tuple[Incident, ...]
    next: str | None
    pictures: tuple[Bar, ...]


@router.get("/")
def home(_: Viewer) -> Response:
    """Go to the list of causes."""
    return RedirectResponse("/causes", 303)


@page_and_json(router, "/causes")
def list_causes(
    request: Request,
    store: StoreDep,
    _: Viewer,
    query: FilterDep,
    order: OrderQuery = "week",
    offset: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
) -> Response:
    """Show what ended jobs: by default the causes with the most failures of this week first."""
    page = store.causes.list_causes(query, order=order, limit=PAGE, offset=offset)
    older = offset + PAGE if offset + PAGE < page.total else None
    pictures = {cause.id: draw_trend(cause) for cause in page.causes}
    return render_page(request, "causes.html", CausesView(page.causes, page.total, order, ORDERS, older, pictures))


@page_and_json(router, "/causes/{cause}")
def show_cause(
    request: Request,
    cause: str,
    store: StoreDep,
    _: Viewer,
    after: Annotated[str | None, Query(max_length=100)] = None,
) -> Response:
    """Show one cause: how often, when and where it ended jobs, and its incidents."""
    summary = store.causes.get(cause)
    incidents = store.search.list_incidents(Filter(cause=summary.id), limit=PAGE + 1, after=after)
    cursor = store.search.cursor_after(incidents[PAGE - 1]) if len(incidents) > PAGE else None
    view = CauseView(summary, tuple(incidents[:PAGE]), cursor, draw_trend(summary))
    return render_page(request, "cause.html", view)


def draw_trend(cause: Cause) -> tuple[Bar, ...]:
    """Return a bar for each day with failures; the highest day of the cause fills the drawing."""
    most = max(cause.days, default=0)
    return tuple(
        Bar(BAR_WIDTH * (place + TREND_DAYS - len(cause.days)), max(2.0, round(TREND_HEIGHT * count / most, 1)))
        for place, count in enumerate(cause.days)
        if count
    )
