"""The worker: takes posts that are due, lets their bots deliver them, and retries failed ones after growing delays."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from triage.bots.interface import Bot, RetryLater, Undelivered
from triage.store import Store
from triage.store.outbox import Post

LEASE = 180.0  # longer than all calls of one post may take together
MIN_DELAY, MAX_DELAY = 5.0, 900.0
DAY = 86_400.0
_log = logging.getLogger("triage.bots")


@dataclass(slots=True)
class DeliveryCounts:
    """How many posts of a round were sent, put off, or given up."""

    sent: int = 0
    later: int = 0
    dead: int = 0


def deliver_due(
    store: Store,
    bots: Sequence[Bot],
    *,
    give_up_days: float = 7.0,
    lease: float = LEASE,
    clock: Callable[[], float] = time.time,
    stop: threading.Event | None = None,
) -> DeliveryCounts:
    """Deliver all posts that are due. A failed post does not delay the others."""
    counts = DeliveryCounts()
    by_kind = {bot.kind: bot for bot in bots}
    while by_kind and not (stop is not None and stop.is_set()):
        post = store.outbox.take(lease, kinds=tuple(by_kind), now=clock())
        if post is None:
            break
        try:
            receipt = by_kind[post.kind].deliver(post, store, clock())
        except Undelivered as error:
            next_try = _next_try(post, error, give_up_days, clock())
            store.outbox.mark_failed(post.id, _describe(error), again_at=next_try)
            counts.later += next_try is not None
            counts.dead += next_try is None
        except Exception as error:  # a bug must not stop the other posts; this one becomes a dead letter
            _log.exception("post %s cannot be delivered", post.id)
            store.outbox.mark_failed(post.id, f"bug: {type(error).__name__}: {error}"[:1000], again_at=None)
            counts.dead += 1
        else:
            store.outbox.mark_sent(post.id, receipt)
            counts.sent += 1
    return counts


def run(
    store: Store,
    bots: Sequence[Bot],
    stop: threading.Event,
    *,
    tick: Callable[[float], object] | None = None,
    give_up_days: float = 7.0,
    every: float = 1.0,
) -> None:
    """Deliver until `stop` is set, looking for posts each `every` seconds. `tick` is called before each round."""
    while not stop.is_set():
        try:
            if tick is not None:
                tick(time.time())
            deliver_due(store, bots, give_up_days=give_up_days, stop=stop)
        except Exception:  # the store may be locked or its disk full; the next round may succeed
            _log.exception("the outbox cannot be processed")
            stop.wait(10 * every)
        stop.wait(every)


def retry_delay(attempts: int, number: int) -> float:
    """Return the seconds until the next try: doubled each time up to 15 min, and spread by 20 % between posts."""
    return min(MIN_DELAY * 2.0 ** min(attempts - 1, 20), MAX_DELAY) * (1 + (number * 7919 % 100) / 500)


def _next_try(post: Post, error: Undelivered, give_up_days: float, now: float) -> float | None:
    if not isinstance(error, RetryLater) or now - post.at > give_up_days * DAY:
        return None
    return now + max(error.wait or 0.0, retry_delay(post.attempts, post.id) if error.wait is None else 0.0)


def _describe(error: Undelivered) -> str:
    return f"{error.message} ({error.hint})"[:1000] if not isinstance(error, RetryLater) else error.message[:1000]
