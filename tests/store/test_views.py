"""Saved views, visits and subscriptions of people, in each kind of database."""

from __future__ import annotations

import pytest

from tests.store.conftest import Place
from tests.store.factories import NOW, unknown_diagnosis
from triage.base.errors import NotFoundError, OptionError
from triage.store import Store, saved_views, subscriptions, transfer, visits


def test_views_are_personal_or_shared(store: Store) -> None:
    """Everybody sees a shared view, only its owner a personal one; both may have one name."""
    store.saved_views.save("Mine", "causes", {"assignee": "anna"}, actor="anna", now=NOW)
    store.saved_views.save("Mine", "causes", {"assignee": "ben"}, actor="ben", now=NOW)
    shared = store.saved_views.save("Fabric", "incidents", {"domain": "fabric"}, actor="anna", is_shared=True, now=NOW)
    assert [view.name for view in store.saved_views.list_views("ben")] == ["Fabric", "Mine"]
    assert [view.query for view in store.saved_views.list_views("ben", "causes")] == [{"assignee": "ben"}]
    assert store.saved_views.get(shared.id, "nobody").is_shared
    (own,) = store.saved_views.list_views("anna", "causes")
    with pytest.raises(NotFoundError):
        store.saved_views.delete(own.id, "ben")
    store.saved_views.delete(own.id, "anna")
    assert store.saved_views.list_views("anna", "causes") == []
    assert [entry.action for entry in store.audit.list_entries(subject=own.id)] == ["delete view", "save view"]


def test_a_name_is_replaced_and_bounded(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Saving a name again replaces its filters; an empty or long name, or one view too many, is refused."""
    store.saved_views.save(" My  view ", "causes", {"host": "a"}, actor="anna")
    store.saved_views.save("My view", "causes", {"host": "b"}, actor="anna")
    assert [view.query for view in store.saved_views.list_views("anna")] == [{"host": "b"}]
    store.saved_views.save("x" * saved_views.MOST_NAME, "causes", {}, actor="anna")
    for name in ("  ", "x" * (saved_views.MOST_NAME + 1)):
        with pytest.raises(OptionError, match="name"):
            store.saved_views.save(name, "causes", {}, actor="anna")
    monkeypatch.setattr(saved_views, "MOST_VIEWS", 2)
    with pytest.raises(OptionError, match="2 views already"):
        store.saved_views.save("third", "causes", {}, actor="anna")


def test_a_visit_ends_after_a_pause(store: Store) -> None:
    """Looks within half an hour are one visit; the next one knows when the one before ended."""
    assert store.visits.record("anna", now=NOW) is None
    assert store.visits.record("anna", now=NOW + 120) is None
    later = NOW + 120 + visits.PAUSE
    assert store.visits.last("anna", now=later - 1) is None
    assert store.visits.record("anna", now=later) == NOW + 120
    assert store.visits.record("anna", now=later + 300) == NOW + 120
    assert store.visits.last("ben", now=later) is None


def test_a_visit_is_not_written_each_time(store: Store) -> None:
    """Two looks within a minute write once."""
    store.visits.record("anna", now=NOW)
    store.visits.record("anna", now=NOW + visits.PRECISION - 1)
    assert store.connections.read("SELECT seen_at FROM visit")[0]["seen_at"] == NOW
    store.visits.record("anna", now=NOW + visits.PRECISION)
    assert store.connections.read("SELECT seen_at FROM visit")[0]["seen_at"] == NOW + visits.PRECISION


def test_a_subscription_follows_a_merged_cluster(store: Store) -> None:
    """A subscription to a cluster is one to the cluster that it was merged into; the same twice is one."""
    clusters = []
    for name, text in (("a", "ValueError: shard is bad"), ("b", "KeyError: 'weights' is gone")):
        root = store.incidents.add(unknown_diagnosis(name, text, cluster=f"u-{name * 6}")).diagnosis.root_cause
        assert root is not None
        clusters.append(str(root.cluster))
    new = store.subscriptions.add("slack:C1", actor="anna", cause=clusters[1], now=NOW)
    assert store.subscriptions.add("slack:C1", actor="anna", cause=clusters[1]).id == new.id
    store.cluster_actions.merge(clusters, actor="anna")
    (subscription,) = store.subscriptions.list_subscriptions()
    assert subscription.cause == store.clusters.find_id(clusters[1])


def test_only_the_owner_or_a_curator_ends_a_subscription(store: Store) -> None:
    """Somebody else cannot end a subscription, except with `any_owner`; the audit log has both steps."""
    new = store.subscriptions.add("slack:C1", actor="anna", filter_={"host": "node1"})
    with pytest.raises(NotFoundError):
        store.subscriptions.remove(new.id, actor="ben")
    store.subscriptions.remove(new.id, actor="ben", any_owner=True)
    assert store.subscriptions.list_subscriptions() == []
    assert [entry.action for entry in store.audit.list_entries(subject=new.id)] == ["unsubscribe", "subscribe"]


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"cause": "a.b", "filter_": {"host": "node1"}},
        {"filter_": {"status": "open"}},
        {"filter_": {"signature": "a.b", "cause": "c.d"}},
    ],
)
def test_a_subscription_without_meaning_is_refused(store: Store, values: dict[str, object]) -> None:
    """Neither or both of cause and filter, a filter that a failure does not tell, and two causes are errors."""
    with pytest.raises(OptionError, match="subscription"):
        store.subscriptions.add("slack:C1", actor="anna", **values)  # type: ignore[arg-type]


def test_subscriptions_are_bounded(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """One subscription too many is refused."""
    monkeypatch.setattr(subscriptions, "MOST_SUBSCRIPTIONS", 1)
    store.subscriptions.add("slack:C1", actor="anna", cause="a.b")
    with pytest.raises(OptionError, match="1 subscriptions already"):
        store.subscriptions.add("slack:C1", actor="anna", cause="c.d")


def test_an_export_has_views_and_subscriptions(store: Store, place: Place) -> None:
    """An import has the saved views and subscriptions of the export."""
    store.saved_views.save("Mine", "causes", {"assignee": "anna"}, actor="anna")
    store.subscriptions.add("slack:C1", actor="anna", cause="a.b")
    with Store.open(place("other")) as other:
        transfer.import_lines(other.connections, transfer.export_lines(store.connections))
        assert other.saved_views.list_views("anna") == store.saved_views.list_views("anna")
        assert other.subscriptions.list_subscriptions() == store.subscriptions.list_subscriptions()
