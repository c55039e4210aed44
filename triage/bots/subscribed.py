"""Routes that people add by subscriptions, beside those of the settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from triage.base.lazy_re import lazy_re
from triage.settings.notifications import Route, RoutingSettings
from triage.store import Store
from triage.store.search import FACT
from triage.store.subscriptions import Subscription

_SPECIAL = lazy_re(r"([*?[])")
_VERDICTS = {"signature": "known", "cluster": "unknown"}  # by the kind of a cause


def allowed_targets(routing: RoutingSettings) -> tuple[str, ...]:
    """Return the targets that people may subscribe: those that the settings name, else those of the routes."""
    return routing.subscriptions or tuple(dict.fromkeys(route.to for route in routing.routes))


def with_subscriptions(store: Store, routing: RoutingSettings) -> Sequence[Route]:
    """Return the routes of the settings and of subscriptions; a target that the settings no longer allow gets none."""
    targets = allowed_targets(routing)
    if not targets:
        return routing.routes
    subscribed = [item for item in store.subscriptions.list_subscriptions() if item.target in targets]
    return [*routing.routes, *map(route_of, subscribed)]


def route_of(subscription: Subscription) -> Route:
    """Return the route that posts what a subscription asks for."""
    filter_ = subscription.filter
    causes = [subscription.cause, *(filter_.get(name) for name in ("signature", "cluster", "cause"))]
    verdict = filter_.get("verdict") or _VERDICTS.get(filter_.get("kind", ""))
    values: dict[str, object] = {"verdicts": (verdict,)} if verdict else {}
    return Route.model_validate(
        {
            "to": subscription.target,
            "signatures": tuple(_literal(cause) for cause in causes if cause),
            "domains": _one(filter_, "domain"),
            "hosts": tuple(map(_literal, _one(filter_, "host"))),
            "facts": tuple(
                f"{name.removeprefix(FACT)}={_literal(text)}" for name, text in filter_.items() if name.startswith(FACT)
            ),
            "jobs": tuple(f"*{_literal(text)}*" for text in _one(filter_, "job")),
            **values,
        }
    )


def _one(filter_: Mapping[str, str], name: str) -> tuple[str, ...]:
    return (filter_[name],) if filter_.get(name) else ()


def _literal(text: str) -> str:
    """Return the pattern of a route that matches this text alone."""
    return _SPECIAL.sub(r"[\1]", text)
