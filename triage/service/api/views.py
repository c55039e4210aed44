"""Saved views of the lists, and subscriptions that post failures."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path

from triage.service import view_queries
from triage.service.api import requests, schemas
from triage.service.api.responses import JsonResponse
from triage.service.dependencies import SettingsDep, StoreDep, Submitter, Viewer

router = APIRouter(tags=["views"])
ViewId = Annotated[str, Path(max_length=40, examples=["v-0123456789ab"])]
SubscriptionId = Annotated[str, Path(max_length=40, examples=["s-0123456789ab"])]


@router.get("/views", response_model=schemas.ViewList)
def list_views(store: StoreDep, user: Viewer) -> JsonResponse:
    """List the shared views and your own."""
    views = store.saved_views.list_views(user.name)
    return JsonResponse({"views": [view_queries.view_as_dict(view) for view in views]})


@router.post("/views", response_model=schemas.ViewRow, status_code=201)
def save_view(body: requests.ViewIn, store: StoreDep, user: Viewer) -> JsonResponse:
    """Save filters of a list under a name; the same name replaces them. `shared` needs the role curator."""
    view = view_queries.save_view(store, user, body.name, body.page, body.query, is_shared=body.shared)
    return JsonResponse(view_queries.view_as_dict(view), status_code=201)


@router.delete("/views/{view}", response_model=schemas.ViewRow)
def delete_view(view: ViewId, store: StoreDep, user: Viewer) -> JsonResponse:
    """Delete one of your views; a shared one needs the role curator."""
    return JsonResponse(view_queries.view_as_dict(view_queries.delete_view(store, user, view)))


@router.get("/subscriptions", response_model=schemas.SubscriptionList)
def list_subscriptions(store: StoreDep, settings: SettingsDep, user: Viewer) -> JsonResponse:
    """List the subscriptions, and the targets that take some."""
    rows = [view_queries.subscription_as_dict(item) for item in store.subscriptions.list_subscriptions()]
    return JsonResponse({"targets": list(view_queries.list_targets(settings, user)), "subscriptions": rows})


@router.post("/subscriptions", response_model=schemas.SubscriptionRow, status_code=201)
def subscribe(body: requests.SubscriptionIn, store: StoreDep, settings: SettingsDep, user: Submitter) -> JsonResponse:
    """Have the failures of a cause, a saved view or a filter posted to a target of the settings."""
    new = view_queries.subscribe(store, settings, user, body.to, cause=body.cause, view=body.view, filter_=body.filter)
    return JsonResponse(view_queries.subscription_as_dict(new), status_code=201)


@router.delete("/subscriptions/{subscription}", response_model=schemas.Done)
def unsubscribe(subscription: SubscriptionId, store: StoreDep, user: Submitter) -> JsonResponse:
    """End one of your subscriptions; curators end those of anybody."""
    store.subscriptions.remove(subscription, actor=user.name, any_owner=user.has_role("curator"))
    return JsonResponse({"id": subscription})
