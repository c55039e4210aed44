"""Subscriptions: people have the failures of a cause, or of a filter, posted to a target of the settings."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from triage.base.errors import NotFoundError, OptionError
from triage.store import audit
from triage.store.interface import Connections
from triage.store.search import FACT

MOST_SUBSCRIPTIONS = 500
# The parameters of the lists that a post can be matched with when a job fails.
CAUSES = ("signature", "cluster", "cause")
FILTERS = ("kind", "verdict", "domain", *CAUSES, "host", "job")


@dataclass(frozen=True, slots=True)
class Subscription:
    """One subscription. `cause` is a signature or a cluster as it is called now; None: all that `filter` matches."""

    id: str
    owner: str
    target: str
    cause: str | None
    filter: Mapping[str, str]
    at: float


def find_unusable(query: Mapping[str, str]) -> list[str]:
    """Return the filters of a list that a post cannot be matched with."""
    return [name for name in query if name not in FILTERS and not name.startswith(FACT)]


class Subscriptions:
    """The subscriptions of a store."""

    def __init__(self, connections: Connections) -> None:
        self._db = connections

    def list_subscriptions(self) -> list[Subscription]:
        """Return all subscriptions, the oldest first."""
        rows = self._db.read("SELECT * FROM subscription ORDER BY at, id")
        redirects: dict[str, str] = {}
        if any((row["cause"] or "").startswith("u-") for row in rows):
            merged = self._db.read("SELECT id, redirect FROM cluster WHERE redirect IS NOT NULL")
            redirects = {row["id"]: row["redirect"] for row in merged}
        return [_subscription(row, redirects) for row in rows]

    def add(
        self,
        target: str,
        *,
        actor: str,
        cause: str | None = None,
        filter_: Mapping[str, str] | None = None,
        now: float | None = None,
    ) -> Subscription:
        """Subscribe a target to a cause or to a filter; the same twice is one. Raises OptionError."""
        when, chosen = time.time() if now is None else now, dict(sorted((filter_ or {}).items()))
        unknown = find_unusable(chosen)
        if unknown:
            hint = f"posts can be filtered by {', '.join(FILTERS)} and facts"
            raise OptionError(f"a subscription cannot use the filter {unknown[0]}", hint=hint)
        causes = [name for name in CAUSES if name in chosen]
        if len(causes) > 1:
            raise OptionError(f"a subscription cannot use both {causes[0]} and {causes[1]}", hint="leave out one")
        if (cause is None) == (not chosen):
            raise OptionError("a subscription needs a cause or a filter", hint="give one of them")
        body = json.dumps(chosen, ensure_ascii=True)
        digest = hashlib.sha256(json.dumps([actor, target, cause, body]).encode()).hexdigest()
        new = Subscription(f"s-{digest[:12]}", actor, target, cause, chosen, when)
        with self._db.write() as db:
            if db.execute("SELECT 1 FROM subscription WHERE id = ?", (new.id,)).fetchone() is not None:
                return new
            (count,) = db.execute("SELECT count(*) FROM subscription").fetchone()
            if count >= MOST_SUBSCRIPTIONS:
                raise OptionError(f"there are {MOST_SUBSCRIPTIONS} subscriptions already", hint="end some at /views")
            db.execute(
                "INSERT INTO subscription (id, owner, target, cause, filter, at) VALUES (?, ?, ?, ?, ?, ?)",
                (new.id, actor, target, cause, body, when),
            )
            audit.write_entry(db, when, actor, "subscribe", cause or new.id, _details(new))
        return new

    def remove(self, identifier: str, *, actor: str, any_owner: bool = False, now: float | None = None) -> None:
        """End a subscription: one's own, with `any_owner` that of anybody. Raises NotFoundError."""
        row = self._db.read_one("SELECT * FROM subscription WHERE id = ?", (identifier,))
        if row is None or not (any_owner or row["owner"] == actor):
            hint = "/views and GET /api/v1/subscriptions list the subscriptions; curators end those of others"
            raise NotFoundError(f"you have no subscription {identifier}", hint=hint)
        with self._db.write() as db:
            db.execute("DELETE FROM subscription WHERE id = ?", (identifier,))
            old, when = _subscription(row, {}), time.time() if now is None else now
            audit.write_entry(db, when, actor, "unsubscribe", old.cause or old.id, _details(old))


def _details(subscription: Subscription) -> dict[str, object]:
    return {"to": subscription.target, "filter": dict(subscription.filter), "owner": subscription.owner}


def _subscription(row: Any, redirects: Mapping[str, str]) -> Subscription:
    cause = row["cause"]
    while cause in redirects:
        cause = redirects[cause]
    return Subscription(row["id"], row["owner"], row["target"], cause, json.loads(row["filter"]), row["at"])
