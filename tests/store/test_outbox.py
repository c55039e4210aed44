"""triage.store.outbox: posts are written once, have one owner at a time, and survive its death."""

from __future__ import annotations

from tests.store.factories import DAY, NOW
from triage.store import Store


def test_a_post_is_written_once(store: Store) -> None:
    """A second post with the same `once` is not written."""
    assert store.outbox.put("slack", "i-1", "i-1/1", {"text": "é"}, now=NOW)
    assert not store.outbox.put("slack", "i-1", "i-1/1", {"text": "other"}, now=NOW)
    (post,) = store.outbox.list_posts()
    assert (post.payload, post.state, post.attempts) == ({"text": "é"}, "waiting", 0)


def test_a_post_has_one_owner_until_its_lease_ends(store: Store) -> None:
    """A taken post belongs to one process; if that dies, it is due again."""
    store.outbox.put("slack", "a", "a", {}, now=NOW)
    store.outbox.put("github", "b", "b", {}, now=NOW)
    taken = store.outbox.take(60, kinds=("slack",), now=NOW)
    assert taken is not None
    assert (taken.subject, taken.attempts) == ("a", 1)
    assert store.outbox.take(60, kinds=("slack",), now=NOW + 59) is None
    again = store.outbox.take(60, kinds=("slack",), now=NOW + 61)
    assert again is not None
    assert (again.id, again.attempts) == (taken.id, 2)
    store.outbox.mark_sent(again.id, "ts 1")
    assert store.outbox.take(60, kinds=("slack",), now=NOW + 1000) is None
    assert [(post.state, post.receipt) for post in store.outbox.list_posts(state="sent")] == [("sent", "ts 1")]


def test_failures_wait_or_die(store: Store) -> None:
    """A failed post is due again later, or dead until a person retries it."""
    store.outbox.put("slack", "a", "a", {}, now=NOW)
    post = store.outbox.take(60, now=NOW)
    assert post is not None
    store.outbox.mark_failed(post.id, "429", again_at=NOW + 30)
    assert store.outbox.take(60, now=NOW + 29) is None
    assert store.outbox.take(60, now=NOW + 30) is not None
    store.outbox.mark_failed(post.id, "404", again_at=None)
    assert store.outbox.take(60, now=NOW + 9999) is None
    assert store.outbox.list_posts(state="dead")[0].error == "404"
    assert store.outbox.retry(post.id, now=NOW)
    assert store.outbox.take(60, now=NOW) is not None
    assert store.outbox.drop(post.id)
    assert store.outbox.take(60, now=NOW + 9999) is None
    store.outbox.put("slack", "b", "b", {}, now=NOW)
    store.outbox.mark_sent(2)
    assert not store.outbox.drop(2)
    assert not store.outbox.retry(3)


def test_a_lease_of_a_wrong_clock_ends(store: Store) -> None:
    """A lease that ends later than two leases from now is void, also for the other posts of its subject."""
    store.outbox.put("slack", "a", "a", {}, now=NOW - DAY)
    store.outbox.put("slack", "a", "b", {}, now=NOW - DAY)
    assert store.outbox.take(60, now=NOW + 60) is not None
    assert store.outbox.take(60, now=NOW) is None
    post = store.outbox.take(60, now=NOW - 1)
    assert post is not None
    assert store.outbox.take(60, now=NOW) is None  # the other post of its subject waits for it
    assert store.outbox.take(60, now=NOW - 62) is not None


def test_a_delay_of_a_wrong_clock_ends(store: Store) -> None:
    """A post that waits for more than two days was put off while the clock was wrong."""
    store.outbox.put("slack", "a", "a", {}, now=NOW + 2 * DAY)
    assert store.outbox.take(60, now=NOW) is None
    assert store.outbox.take(60, now=NOW - 1) is not None
