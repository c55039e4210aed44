"""The interface of a bot, and the errors of a delivery."""

from __future__ import annotations

from typing import Protocol

from triage.base.errors import TriageError
from triage.store import Store
from triage.store.outbox import Post


class Undelivered(TriageError):
    """The post did not arrive, and will not until somebody changes something."""


class RetryLater(Undelivered):
    """The post may not have arrived; a retry may help, after `wait` seconds if the server asked for a time."""

    def __init__(self, message: str, *, wait: float | None = None) -> None:
        super().__init__(message, hint="it is retried automatically; `triage outbox list` shows when")
        self.wait = wait


class Unsure(RetryLater):
    """The answer was lost, so nobody knows whether the post arrived."""


class Held(Undelivered):
    """Nobody knows whether an earlier try arrived, and the settings say not to repeat it."""


class Bot(Protocol):
    """Delivers posts of one kind. Delivering a post twice must leave one visible message."""

    @property
    def kind(self) -> str:
        """The kind of posts it delivers."""

    def deliver(self, post: Post, store: Store, now: float) -> str:
        """Deliver a post; return its identifier at the receiver. Raises Undelivered or RetryLater."""
