"""triage.store.tasks: claimed by one process, requeued when that dies, ended once."""

from __future__ import annotations

import threading
from collections import Counter

import pytest

from triage.base.errors import NotFoundError
from triage.store import Store
from triage.store.tasks import Task


def ended(store: Store, task: Task) -> bool:
    with store.connections.write() as db:
        return store.tasks.end(db, task, "done", result={})


def test_each_task_is_claimed_once(store: Store) -> None:
    """Concurrent claims never get the same task, and all tasks are claimed."""
    made = {store.tasks.add("test", {"n": number}, actor="a").id for number in range(40)}
    got: list[str] = []

    def work(owner: str) -> None:
        while (task := store.tasks.claim(owner)) is not None:
            got.append(task.id)

    threads = [threading.Thread(target=work, args=(f"w{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Counter(got) == Counter(made)


def test_a_former_owner_cannot_end_a_task(store: Store) -> None:
    """After its task went to another owner, the first can neither send heartbeats nor end it."""
    store.tasks.add("test", {}, actor="a", now=0)
    first = store.tasks.claim("one", now=10)
    assert first is not None
    assert store.tasks.requeue_orphans(5, now=20) == [first.id]
    second = store.tasks.claim("two", now=21)
    assert second is not None
    assert second.attempts == 2
    assert not store.tasks.beat(first)
    assert not ended(store, first)
    assert ended(store, second)
    assert not ended(store, second)


@pytest.mark.parametrize(("beat_at", "is_orphan"), [(94, True), (95, False), (105, False), (106, True)])
def test_a_heartbeat_must_be_near_now(store: Store, beat_at: float, is_orphan: bool) -> None:
    """A task is queued again when its last heartbeat is too old, or of the future because a clock was wrong."""
    task = store.tasks.add("test", {}, actor="a", now=0)
    store.tasks.claim("one", now=beat_at)
    assert store.tasks.requeue_orphans(5, now=100) == ([task.id] if is_orphan else [])


def test_attempts_are_limited(store: Store) -> None:
    """A task that kills its process each time fails after the last attempt, with a reason."""
    task = store.tasks.add("test", {}, actor="a", most=2, now=0)
    for number in range(2):
        assert store.tasks.claim("w", now=100 * number) is not None
        store.tasks.requeue_orphans(5, now=100 * number + 50)
    task_now = store.tasks.get(task.id)
    assert (task_now.state, task_now.attempts) == ("failed", 2)
    assert task_now.error is not None
    assert task_now.error["hint"]


def test_cancelling(store: Store) -> None:
    """A queued task is cancelled at once, a running one at its next heartbeat, an ended one not at all."""
    waits, runs = (store.tasks.add("test", {"n": n}, actor="a", now=n) for n in (2, 1))
    claimed = store.tasks.claim("w")
    assert claimed is not None
    assert claimed.id == runs.id
    assert store.tasks.cancel(waits.id).state == "cancelled"
    assert store.tasks.cancel(runs.id).state == "running"
    assert not store.tasks.beat(claimed)
    assert ended(store, claimed)
    assert store.tasks.cancel(runs.id).state == "done"
    with pytest.raises(NotFoundError):
        store.tasks.cancel("t-none")


def test_a_released_task_counts_no_attempt(store: Store) -> None:
    """A worker that stops takes no attempt away."""
    task = store.tasks.add("test", {}, actor="a")
    claimed = store.tasks.claim("w")
    assert claimed is not None
    store.tasks.release(claimed)
    task_now = store.tasks.get(task.id)
    assert (task_now.state, task_now.attempts, task_now.owner) == ("queued", 0, None)


def test_a_cancelled_task_whose_process_is_gone_is_not_queued_again(store: Store) -> None:
    """The request to cancel it is carried out by whoever finds it."""
    task = store.tasks.add("test", {}, actor="a", now=0)
    store.tasks.claim("one", now=2)
    store.tasks.cancel(task.id, now=3)
    store.tasks.requeue_orphans(5, now=20)
    assert store.tasks.get(task.id).state == "cancelled"
