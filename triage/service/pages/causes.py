"""The first page: what ended jobs, with the failures of each day; and the page of one cause with its incidents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Form, Query, Request
from pydantic import ValidationError
from starlette.responses import RedirectResponse, Response

from triage.base.errors import OptionError
from triage.model.store import AuditEntry, Cause, Incident
from triage.service import view_queries
from triage.service.api.causes import FilterDep, OrderQuery, change_work
from triage.service.api.requests import WorkIn
from triage.service.dependencies import Curator, SettingsDep, StoreDep, Submitter, Viewer
from triage.service.pages.rendering import local_path, page_and_json, redirect_with_notice, render_page
from triage.store.cause_details import TREND_DAYS
from triage.store.cause_work import Comment
from triage.store.search import Filter

router = APIRouter()
PAGE = 50
BAR_WIDTH, TREND_HEIGHT = 4, 24
SHOWN_STATUSES = ("waiting", "open", "acknowledged", "regressed", "fixed", "ignored")
ORDERS = {"week": "this week", "last": "last failure", "count": "all failures", "first": "newest"}


@dataclass(frozen=True, slots=True)
class Bar:
    """The failures of one day in a drawing: where the bar begins, and how high it is."""

    x: int
    height: float


@dataclass(frozen=True, slots=True)
class CausesView:
    """Some causes. `pictures` are the bars of each by its id; `older` is the offset of the next page, or None.

    `views` are saved ones, `visit` is when the reader's visit before this one ended; None: nothing is remembered.
    `late_since`: failures stored since then may be missing in the counts; None: the counts are current.
    `places` are the functions where failures of a cluster begin, by its id: equal titles differ in them.
    """

    causes: tuple[Cause, ...]
    total: int
    order: str
    orders: dict[str, str]
    older: int | None
    pictures: dict[str, tuple[Bar, ...]]
    places: dict[str, tuple[str, ...]]
    views: tuple[dict[str, Any], ...] = ()
    visit: float | None = None
    statuses: tuple[str, ...] = SHOWN_STATUSES
    late_since: float | None = None


@dataclass(frozen=True, slots=True)
class CauseView:
    """One cause, its incidents, and the work on it. `next` is the cursor of the next page."""

    cause: Cause
    incidents: tuple[Incident, ...]
    next: str | None
    pictures: tuple[Bar, ...]
    comments: tuple[Comment, ...]
    log: tuple[AuditEntry, ...]
    subscriptions: tuple[dict[str, Any], ...]
    targets: tuple[str, ...]
    late_since: float | None


@router.get("/")
def home(_: Viewer) -> Response:
    """Go to the list of causes."""
    return RedirectResponse("/causes", 303)


@page_and_json(router, "/causes")
def list_causes(
    request: Request,
    store: StoreDep,
    user: Viewer,
    query: FilterDep,
    order: OrderQuery = "week",
    offset: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
) -> Response:
    """Show what ended jobs: by default the causes with the most failures of this week first."""
    page = store.causes.list_causes(query, order=order, limit=PAGE, offset=offset)
    older = offset + PAGE if offset + PAGE < page.total else None
    pictures = {cause.id: draw_trend(cause) for cause in page.causes}
    places = store.clusters.list_places([cause.id for cause in page.causes if cause.kind == "cluster"])
    visit = store.visits.record(user.name) if view_queries.is_remembered(user) else None
    views = tuple(map(view_queries.view_as_dict, store.saved_views.list_views(user.name, "causes")))
    view = CausesView(
        page.causes, page.total, order, ORDERS, older, pictures, places, views, visit, late_since=page.late_since
    )
    return render_page(request, "causes.html", view)


@page_and_json(router, "/causes/{cause}")
def show_cause(
    request: Request,
    cause: str,
    store: StoreDep,
    settings: SettingsDep,
    user: Viewer,
    after: Annotated[str | None, Query(max_length=100)] = None,
) -> Response:
    """Show one cause: how often, when and where it ended jobs, and its incidents."""
    summary = store.causes.get(cause)
    incidents = store.search.list_incidents(Filter(cause=summary.id), limit=PAGE + 1, after=after)
    cursor = store.search.cursor_after(incidents[PAGE - 1]) if len(incidents) > PAGE else None
    view = CauseView(
        summary,
        tuple(incidents[:PAGE]),
        cursor,
        draw_trend(summary),
        tuple(store.cause_work.list_comments(summary.id)),
        tuple(entry for entry in store.audit.list_entries(subject=summary.id) if entry.action == "work"),
        tuple(
            view_queries.subscription_as_dict(item)
            for item in store.subscriptions.list_subscriptions()
            if item.cause == summary.id
        ),
        view_queries.list_targets(settings, user),
        store.causes.late_since(),
    )
    return render_page(request, "cause.html", view)


@router.post("/causes/work")
def change_selected(
    store: StoreDep,
    user: Curator,
    cause: Annotated[list[str], Form()] = [],  # noqa: B006
    status: Annotated[str, Form(max_length=20)] = "",
    fixed_in: Annotated[str, Form(max_length=100)] = "",
    date: Annotated[str, Form(max_length=40)] = "",
    assignee: Annotated[str, Form(max_length=100)] = "",
    ticket: Annotated[str, Form(max_length=500)] = "",
    back: Annotated[str, Form(max_length=2000)] = "/causes",
) -> Response:
    """Change the selected causes, and go back to the list; an empty field changes nothing."""
    if not cause:
        raise OptionError("no cause is selected", hint="select the causes to change")
    values = {"status": status, "fixed_in": fixed_in, "date": date, "assignee": assignee, "ticket": ticket}
    change_work(store, cause[:500], _work_of(values), user.name)
    return redirect_with_notice(local_path(back), "worked")


@router.post("/causes/{cause}/work")
def change_cause(
    cause: str,
    store: StoreDep,
    user: Curator,
    status: Annotated[str, Form(max_length=20)] = "",
    fixed_in: Annotated[str, Form(max_length=100)] = "",
    date: Annotated[str, Form(max_length=40)] = "",
    assignee: Annotated[str, Form(max_length=100)] = "",
    ticket: Annotated[str, Form(max_length=500)] = "",
) -> Response:
    """Change the work on a cause. An empty assignee or ticket removes it; an empty status leaves the status."""
    values = {"status": status, "fixed_in": fixed_in, "date": date}
    work = _work_of(values).model_copy(update={"assignee": assignee, "ticket": ticket})
    change_work(store, [cause], work, user.name)
    return redirect_with_notice(f"/causes/{quote(store.causes.find_id(cause))}", "worked")


@router.post("/causes/{cause}/comments")
def add_comment(
    cause: str, store: StoreDep, user: Submitter, text: Annotated[str, Form(max_length=4000)] = ""
) -> Response:
    """Comment on a cause."""
    identifier = store.causes.get(cause).id
    store.cause_work.comment(identifier, text, actor=user.name)
    return redirect_with_notice(f"/causes/{quote(identifier)}", "commented", "#comments")


def _work_of(values: dict[str, str]) -> WorkIn:
    """Return what a form changes; empty fields change nothing. Raises OptionError."""
    try:
        return WorkIn.model_validate({name: text.strip() for name, text in values.items() if text.strip()})
    except ValidationError:
        raise OptionError("the form has an invalid status", hint="go back and choose one of the list") from None


def draw_trend(cause: Cause) -> tuple[Bar, ...]:
    """Return a bar for each day with failures; the highest day of the cause fills the drawing."""
    most = max(cause.days, default=0)
    return tuple(
        Bar(BAR_WIDTH * (place + TREND_DAYS - len(cause.days)), max(2.0, round(TREND_HEIGHT * count / most, 1)))
        for place, count in enumerate(cause.days)
        if count
    )
