"""Subscriptions add routes: what they match is posted once, beside the routes of the settings."""

from __future__ import annotations

import pytest

from tests.store.factories import NOW, known_diagnosis, unknown_diagnosis
from triage.bots.announce import store_and_announce
from triage.bots.routing import RoutingFacts, matches_route
from triage.bots.subscribed import route_of
from triage.settings.notifications import Route, RoutingSettings
from triage.store import Store
from triage.store.subscriptions import Subscription

ROUTING = RoutingSettings(subscriptions=("webhook:team", "webhook:other"))


def targets(store: Store) -> list[str]:
    """Return the targets of all posts in the outbox."""
    return sorted(f"{post.kind}:{post.payload['place']}" for post in store.outbox.list_posts())


def test_a_subscribed_cause_is_posted_and_no_other(store: Store) -> None:
    """A failure of the cause goes to the target; one of another cause does not."""
    store.subscriptions.add("webhook:team", actor="anna", cause="cuda.out-of-memory")
    store_and_announce(store, known_diagnosis("a", "host.sigkill"), ROUTING, now=NOW)
    assert targets(store) == []
    store_and_announce(store, known_diagnosis("b", "cuda.out-of-memory"), ROUTING, now=NOW)
    assert targets(store) == ["webhook:team"]


def test_two_subscriptions_and_a_route_make_one_post(store: Store) -> None:
    """A target that a route and two subscriptions name gets one message of a failure."""
    routing = RoutingSettings(routes=(Route(to="webhook:team"),))
    store.subscriptions.add("webhook:team", actor="anna", cause="cuda.out-of-memory")
    store.subscriptions.add("webhook:team", actor="ben", filter_={"host": "node1"})
    store_and_announce(store, known_diagnosis("a", host="node1"), routing, now=NOW)
    assert targets(store) == ["webhook:team"]


def test_a_target_that_is_no_longer_allowed_gets_nothing(store: Store) -> None:
    """After the settings leave out a target, its subscriptions post nothing."""
    store.subscriptions.add("webhook:gone", actor="anna", cause="cuda.out-of-memory")
    store_and_announce(store, known_diagnosis("a"), ROUTING, now=NOW)
    assert targets(store) == []


@pytest.mark.parametrize(
    ("filter_", "expected"),
    [
        ({"host": "node1"}, True),
        ({"host": "node"}, False),
        ({"job": "lla"}, True),
        ({"job": "ll?"}, False),
        ({"domain": "cuda"}, True),
        ({"kind": "signature"}, True),
        ({"kind": "cluster"}, False),
        ({"verdict": "unknown"}, False),
        ({"cause": "cuda.out-of-memory", "host": "node1"}, True),
        ({"cause": "cuda.*"}, False),
    ],
)
def test_filters_mean_what_the_lists_mean(filter_: dict[str, str], expected: bool) -> None:
    """A filter of a subscription matches as in the lists: whole names, parts of jobs, no patterns."""
    route = route_of(Subscription("s-1", "anna", "webhook:team", None, filter_, NOW))
    assert matches_route(route, RoutingFacts.from_diagnosis(known_diagnosis("llama", host="node1"))) is expected


def test_a_kind_of_causes_is_a_verdict() -> None:
    """Subscribed clusters are unknown failures."""
    route = route_of(Subscription("s-1", "anna", "webhook:team", None, {"kind": "cluster"}, NOW))
    assert matches_route(route, RoutingFacts.from_diagnosis(unknown_diagnosis("a")))
