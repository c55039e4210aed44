"""What the API and the pages do with saved views, visits and subscriptions."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlencode

from triage.base.errors import OptionError
from triage.bots.subscribed import allowed_targets
from triage.render.table import iso
from triage.service.access import Principal
from triage.service.errors import ServiceError
from triage.settings import Settings
from triage.store import Store
from triage.store.saved_views import SavedView, ViewPage
from triage.store.search import FACT
from triage.store.subscriptions import Subscription

VISIT = "visit"
_PARAMETERS: Mapping[ViewPage, frozenset[str]] = {
    "causes": frozenset(("kind", "domain", "host", "q", "status", "assignee", "new", "order")),
    "incidents": frozenset(
        (
            *("verdict", "signature", "cluster", "cause", "domain", "host", "rank", "device"),
            "since",
            "until",
            "job",
            "q",
            "wrong",
        )
    ),
}


def is_remembered(user: Principal) -> bool:
    """Whether visits of this user are told from those of others: not where nobody signs in."""
    return user.sign_in_method != "local"


def last_visit(store: Store, user: Principal) -> float:
    """Return when the user's visit before this one ended, 0 at the first one. Raises OptionError without sign-in."""
    if not is_remembered(user):
        hint = "sign in (docs/operating.md), or write new=7d or a date"
        raise OptionError("nobody is signed in, so no visit is remembered", hint=hint)
    return store.visits.last(user.name) or 0.0


def list_parameters(page: ViewPage, query: Mapping[str, str]) -> dict[str, str]:
    """Return the filters among the parameters of a list's address."""
    known = _PARAMETERS[page]
    return {
        name: text
        for name, text in query.items()
        if text and (name in known or (page == "incidents" and name.startswith(FACT)))
    }


def filters_of(view: SavedView) -> dict[str, str]:
    """Return the filters of a view, without the order of its list."""
    return {name: text for name, text in view.query.items() if name != "order"}


def save_view(
    store: Store, user: Principal, name: str, page: ViewPage, query: Mapping[str, str], *, is_shared: bool
) -> SavedView:
    """Save a view. Raises ServiceError if a shared one needs a higher role, OptionError for unknown parameters."""
    if is_shared and not user.has_role("curator"):
        raise ServiceError(403, f"a shared view needs the role curator; {user.name} has the role {user.role}")
    chosen = list_parameters(page, query)
    unknown = [name for name, text in query.items() if text and name not in chosen]
    if unknown:
        hint = f"the list has {', '.join(sorted(_PARAMETERS[page]))}"
        raise OptionError(f"the list of {page} has no filter {unknown[0]}", hint=hint)
    return store.saved_views.save(name, page, chosen, actor=user.name, is_shared=is_shared)


def delete_view(store: Store, user: Principal, identifier: str) -> SavedView:
    """Delete an own view, or as a curator a shared one."""
    if store.saved_views.get(identifier, user.name).is_shared and not user.has_role("curator"):
        raise ServiceError(403, f"a shared view needs the role curator; {user.name} has the role {user.role}")
    return store.saved_views.delete(identifier, user.name)


def list_targets(settings: Settings, user: Principal) -> tuple[str, ...]:
    """Return the targets that take subscriptions of somebody: none of those who see a part, as posts are for all."""
    return allowed_targets(settings.routing) if user.sees is None else ()


def subscribe(
    store: Store,
    settings: Settings,
    user: Principal,
    to: str,
    *,
    cause: str | None = None,
    view: str | None = None,
    filter_: Mapping[str, str] | None = None,
) -> Subscription:
    """Subscribe a target to a cause, a saved view or a filter. Raises OptionError."""
    if user.sees is not None:
        hint = "ask somebody who sees all incidents to subscribe"
        raise ServiceError(403, "a subscription posts the failures of everybody", hint=hint)
    targets = list_targets(settings, user)
    if to not in targets:
        hint = f"one of: {', '.join(targets)}" if targets else "the settings need a route or routing.subscriptions"
        raise OptionError(f"{to!r} takes no subscriptions", hint=hint)
    if view is not None:
        filter_ = filters_of(store.saved_views.get(view, user.name))
    identifier = store.causes.get(cause).id if cause is not None else None
    return store.subscriptions.add(to, actor=user.name, cause=identifier, filter_=filter_)


def view_as_dict(view: SavedView) -> dict[str, object]:
    """Return a view as the API does; `address` is the list with its filters."""
    address = f"/{view.page}" + (f"?{urlencode(view.query)}" if view.query else "")
    return {
        "id": view.id,
        "name": view.name,
        "page": view.page,
        "query": dict(view.query),
        "shared": view.is_shared,
        "address": address,
        "actor": view.actor,
        "at": iso(view.at),
    }


def subscription_as_dict(subscription: Subscription) -> dict[str, object]:
    """Return a subscription as the API does."""
    return {
        "id": subscription.id,
        "owner": subscription.owner,
        "to": subscription.target,
        "cause": subscription.cause,
        "filter": dict(subscription.filter),
        "at": iso(subscription.at),
    }
