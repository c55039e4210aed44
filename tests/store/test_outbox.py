"""Posts: written once, given to one at a time, and never lost by one who dies."""

from __future__ import annotations

from tests.store.making import NOW
from triage.store import Store


def test_once_is_once(store: Store) -> None:
    """The same post is not written twice."""
    assert store.outbox.put("slack", "i-1", "i-1/1", {"text": "é"}, now=NOW)
    assert not store.outbox.put("slack", "i-1", "i-1/1", {"text": "other"}, now=NOW)
    (post,) = store.outbox.listed()
    assert (post.payload, post.state, post.attempts) == ({"text": "é"}, "waiting", 0)


def test_one_at_a_time_until_the_lease_ends(store: Store) -> None:
    """Who takes a post has it alone; if it dies, the post is due again."""
    store.outbox.put("slack", "a", "a", {}, now=NOW)
    store.outbox.put("github", "b", "b", {}, now=NOW)
    taken = store.outbox.take(60, kinds=("slack",), now=NOW)
    assert taken is not None
    assert (taken.subject, taken.attempts) == ("a", 1)
    assert store.outbox.take(60, kinds=("slack",), now=NOW + 59) is None
    again = store.outbox.take(60, kinds=("slack",), now=NOW + 61)
    assert again is not None
    assert (again.id, again.attempts) == (taken.id, 2)
    store.outbox.sent(again.id, "ts 1")
    assert store.outbox.take(60, kinds=("slack",), now=NOW + 1000) is None
    assert [(post.state, post.receipt) for post in store.outbox.listed(state="sent")] == [("sent", "ts 1")]


def test_failures_wait_or_die(store: Store) -> None:
    """A failed post comes again when it shall, or is dead until a person says otherwise."""
    store.outbox.put("slack", "a", "a", {}, now=NOW)
    post = store.outbox.take(60, now=NOW)
    assert post is not None
    store.outbox.failed(post.id, "429", again_at=NOW + 30)
    assert store.outbox.take(60, now=NOW + 29) is None
    assert store.outbox.take(60, now=NOW + 30) is not None
    store.outbox.failed(post.id, "404", again_at=None)
    assert store.outbox.take(60, now=NOW + 9999) is None
    assert store.outbox.listed(state="dead")[0].error == "404"
    assert store.outbox.retry(post.id, now=NOW)
    assert store.outbox.take(60, now=NOW) is not None
    assert store.outbox.drop(post.id)
    assert store.outbox.take(60, now=NOW + 9999) is None
    store.outbox.put("slack", "b", "b", {}, now=NOW)
    store.outbox.sent(2)
    assert not store.outbox.drop(2)
    assert not store.outbox.retry(3)
