"""What every bot is: it brings one kind of post to its place, and says whether a failure is worth another try."""

from __future__ import annotations

from typing import Protocol

from triage.base.errors import TriageError
from triage.store import Store
from triage.store.outbox import Post


class Undelivered(TriageError):
    """The post did not arrive, and will not until somebody changes something."""


class Later(Undelivered):
    """The post may not have arrived; trying again may help, after `wait` seconds if the other side named them."""

    def __init__(self, message: str, *, wait: float | None = None) -> None:
        super().__init__(message, hint="it is tried again by itself; `triage outbox list` shows when")
        self.wait = wait


class Bot(Protocol):
    """One way to tell. Delivering a post twice must leave one visible message."""

    @property
    def kind(self) -> str:
        """Which posts it delivers."""

    def deliver(self, post: Post, store: Store, now: float) -> str:
        """Bring it there; what the other side calls it. Raises Undelivered or Later."""
