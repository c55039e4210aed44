"""The page of saved views and subscriptions, and the forms that change them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal
from urllib.parse import parse_qsl

from fastapi import APIRouter, Form, Request
from starlette.responses import Response

from triage.service import view_queries
from triage.service.dependencies import SettingsDep, StoreDep, Submitter, Viewer
from triage.service.pages.rendering import local_path, page_and_json, redirect_with_notice, render_page
from triage.store.subscriptions import find_unusable

router = APIRouter()
FILTER_LABELS = {"q": "words", "new": "new since", "wrong": "marked as wrong"}  # as the lists call them


@dataclass(frozen=True, slots=True)
class ViewsView:
    """The saved views and the subscriptions that a person sees. `targets` take subscriptions.

    `unusable` has the first filter that posts do not know, as the lists call it, by the id of a view.
    """

    views: tuple[dict[str, Any], ...]
    subscriptions: tuple[dict[str, Any], ...]
    targets: tuple[str, ...]
    unusable: dict[str, str]


@page_and_json(router, "/views")
def show_views(request: Request, store: StoreDep, settings: SettingsDep, user: Viewer) -> Response:
    """Show the shared views, one's own, and the subscriptions."""
    views = store.saved_views.list_views(user.name)
    view = ViewsView(
        tuple(view_queries.view_as_dict(item) for item in views),
        tuple(view_queries.subscription_as_dict(item) for item in store.subscriptions.list_subscriptions()),
        view_queries.list_targets(settings, user),
        {
            item.id: FILTER_LABELS.get(names[0], names[0])
            for item in views
            if (names := find_unusable(view_queries.filters_of(item)))
        },
    )
    return render_page(request, "views.html", view)


@router.post("/views")
def save_view(
    store: StoreDep,
    user: Viewer,
    name: Annotated[str, Form(max_length=200)],
    page: Annotated[Literal["causes", "incidents"], Form()],
    query: Annotated[str, Form(max_length=8000)] = "",
    shared: Annotated[bool, Form()] = False,
) -> Response:
    """Save the filters of a list under a name."""
    chosen = view_queries.list_parameters(page, dict(parse_qsl(query)))
    view = view_queries.save_view(store, user, name, page, chosen, is_shared=shared)
    return redirect_with_notice("/views", "saved", f"#{view.id}")


@router.post("/views/{view}/delete")
def delete_view(view: str, store: StoreDep, user: Viewer) -> Response:
    """Delete a view."""
    view_queries.delete_view(store, user, view)
    return redirect_with_notice("/views", "deleted")


@router.post("/subscriptions")
def subscribe(
    store: StoreDep,
    settings: SettingsDep,
    user: Submitter,
    to: Annotated[str, Form(max_length=200)],
    cause: Annotated[str, Form(max_length=200)] = "",
    view: Annotated[str, Form(max_length=40)] = "",
    back: Annotated[str, Form(max_length=400)] = "/views",
) -> Response:
    """Have the failures of a cause or of a view posted."""
    view_queries.subscribe(store, settings, user, to, cause=cause or None, view=view or None)
    return redirect_with_notice(local_path(back), "subscribed")


@router.post("/subscriptions/{subscription}/end")
def unsubscribe(
    subscription: str, store: StoreDep, user: Submitter, back: Annotated[str, Form(max_length=400)] = "/views"
) -> Response:
    """End a subscription."""
    store.subscriptions.remove(subscription, actor=user.name, any_owner=user.has_role("curator"))
    return redirect_with_notice(local_path(back), "unsubscribed")
