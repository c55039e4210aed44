"""The worker: takes posts that are due, lets their bot deliver them, and puts off what failed, for longer each time."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from triage.bots.interface import Bot, Later, Undelivered
from triage.store import Store
from triage.store.outbox import Post

LEASE = 180.0  # longer than all calls of one post may take together
SHORTEST, LONGEST = 5.0, 900.0
DAY = 86_400.0
_log = logging.getLogger("triage.bots")


@dataclass(slots=True)
class Done:
    """What came of a round."""

    sent: int = 0
    later: int = 0
    dead: int = 0


def work(
    store: Store,
    bots: Sequence[Bot],
    *,
    give_up_days: float = 7.0,
    lease: float = LEASE,
    clock: Callable[[], float] = time.time,
    stop: threading.Event | None = None,
) -> Done:
    """Deliver what is due, until nothing is. A post that fails waits and does not hold up the others."""
    done = Done()
    by_kind = {bot.kind: bot for bot in bots}
    while by_kind and not (stop is not None and stop.is_set()):
        post = store.outbox.take(lease, kinds=tuple(by_kind), now=clock())
        if post is None:
            break
        try:
            receipt = by_kind[post.kind].deliver(post, store, clock())
        except Undelivered as error:
            again = _again(post, error, give_up_days, clock())
            store.outbox.failed(post.id, _said(error), again_at=again)
            done.later, done.dead = done.later + (again is not None), done.dead + (again is None)
        except Exception as error:  # a bug of ours must not stop the posts of others; it is a dead letter with its name
            _log.exception("post %s cannot be delivered", post.id)
            store.outbox.failed(post.id, f"bug: {type(error).__name__}: {error}"[:1000], again_at=None)
            done.dead += 1
        else:
            store.outbox.sent(post.id, receipt)
            done.sent += 1
    return done


def run(
    store: Store,
    bots: Sequence[Bot],
    stop: threading.Event,
    *,
    tick: Callable[[float], object] | None = None,
    give_up_days: float = 7.0,
    every: float = 1.0,
) -> None:
    """Work until `stop` is set, looking for new posts each `every` seconds. `tick` is called before each round, for
    what comes by the clock.
    """
    while not stop.is_set():
        try:
            if tick is not None:
                tick(time.time())
            work(store, bots, give_up_days=give_up_days, stop=stop)
        except Exception:  # the store may be locked or its disk full; the next round may find it well again
            _log.exception("the outbox could not be worked on")
            stop.wait(10 * every)
        stop.wait(every)


def pause(attempts: int, number: int) -> float:
    """Seconds until the next try: doubled each time up to a quarter of an hour, spread by a fifth so that posts do not
    come in step.
    """
    return min(SHORTEST * 2.0 ** min(attempts - 1, 20), LONGEST) * (1 + (number * 7919 % 100) / 500)


def _again(post: Post, error: Undelivered, give_up_days: float, now: float) -> float | None:
    if not isinstance(error, Later) or now - post.at > give_up_days * DAY:
        return None
    return now + max(error.wait or 0.0, pause(post.attempts, post.id) if error.wait is None else 0.0)


def _said(error: Undelivered) -> str:
    return f"{error.message} ({error.hint})"[:1000] if not isinstance(error, Later) else error.message[:1000]
