"""The outbox: posts for other systems, written in the transaction of the event that they are about.

A post is written once and sent at least once, by whichever process takes it.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from triage.store.interface import Connections, Transaction

# What ends later than this from now was written while the clock was wrong. A lease may be doubled by the difference of
# two hosts' clocks; a post waits at most for the end of quiet hours or as long as a server asks for.
LEASES = 2.0
LONGEST_WAIT = 2 * 86_400.0


@dataclass(frozen=True, slots=True)
class Post:
    """A post. `state`: waiting, taken (being sent), sent, dead (given up), dropped (by a person)."""

    id: int
    at: float
    kind: str
    subject: str
    payload: Mapping[str, Any]
    state: str
    attempts: int
    next_at: float
    receipt: str | None = None
    error: str | None = None


def put(db: Transaction, kind: str, subject: str, once: str, payload: Mapping[str, Any], when: float) -> bool:
    """Write a post within an open transaction; return False when one with the same `once` exists."""
    done = db.execute(
        "INSERT INTO outbox (at, kind, subject, once, payload, state, next_at) VALUES (?, ?, ?, ?, ?, 'waiting', ?) "
        "ON CONFLICT (once) DO NOTHING",
        (when, kind, subject, once, json.dumps(payload, ensure_ascii=False), when),
    )
    return done.rowcount == 1


class Outbox:
    """The posts of a store."""

    def __init__(self, connections: Connections) -> None:
        self._db = connections

    def put(self, kind: str, subject: str, once: str, payload: Mapping[str, Any], *, now: float | None = None) -> bool:
        """Write a post; return False when one with the same `once` exists."""
        with self._db.write() as db:
            return put(db, kind, subject, once, payload, time.time() if now is None else now)

    def request(
        self, kind: str, subject: str, payload: Mapping[str, Any], *, at: float, now: float | None = None
    ) -> bool:
        """Request a post of the current state, due at `at`.

        Returns False when one is waiting, which becomes due at `at` if that is earlier.
        """
        with self._db.write() as db:
            waiting = db.execute(
                "SELECT id, next_at FROM outbox WHERE state = 'waiting' AND kind = ? AND subject = ?", (kind, subject)
            ).fetchone()
            if waiting is not None:
                db.execute("UPDATE outbox SET next_at = ? WHERE id = ? AND next_at > ?", (at, waiting["id"], at))
                return False
            once = f"{kind}:{subject}:{secrets.token_hex(12)}"
            put(db, kind, subject, once, payload, time.time() if now is None else now)
            db.execute("UPDATE outbox SET next_at = ? WHERE once = ?", (at, once))
        return True

    def take(self, seconds: float, *, kinds: tuple[str, ...] = (), now: float | None = None) -> Post | None:
        """Take the oldest post that is due; it belongs to this caller for `seconds`, then it is due again.

        While a post of one kind and subject is being sent, no other of these is given out, so that two posts about one
        message never race. A post that was taken or put off while the clock was wrong is due when the clock is right.
        """
        when = time.time() if now is None else now
        kind_clause = f"AND kind IN ({', '.join('?' * len(kinds))})" if kinds else ""
        lease, wait = (when, when + LEASES * seconds), (when, when + LONGEST_WAIT)
        with self._db.write() as db:
            row = db.execute(
                "SELECT * FROM outbox WHERE ((state = 'waiting' AND NOT (next_at > ? AND next_at <= ?)) "
                f"OR (state = 'taken' AND NOT (taken_until > ? AND taken_until <= ?))) {kind_clause} "
                "AND NOT EXISTS (SELECT 1 FROM outbox o WHERE o.state = 'taken' AND o.taken_until > ? "
                "AND o.taken_until <= ? AND o.kind = outbox.kind AND o.subject = outbox.subject "
                "AND o.id <> outbox.id) ORDER BY next_at, id LIMIT 1",
                (*wait, *lease, *kinds, *lease),
            ).fetchone()
            if row is None:
                return None
            db.execute(
                "UPDATE outbox SET state = 'taken', taken_until = ?, attempts = attempts + 1 WHERE id = ?",
                (when + seconds, row["id"]),
            )
        return _post({**dict(row), "state": "taken", "attempts": row["attempts"] + 1})

    def mark_sent(self, number: int, receipt: str = "") -> None:
        """Mark a post as sent; `receipt` is its id on the other side."""
        self._db.execute(
            "UPDATE outbox SET state = 'sent', receipt = ?, error = NULL, taken_until = NULL WHERE id = ?",
            (receipt, number),
        )

    def mark_failed(self, number: int, error: str, *, again_at: float | None) -> None:
        """Mark a post as failed: due again at `again_at`, or dead when that is None."""
        state = "dead" if again_at is None else "waiting"
        self._db.execute(
            "UPDATE outbox SET state = ?, error = ?, next_at = coalesce(?, next_at), taken_until = NULL WHERE id = ?",
            (state, error, again_at, number),
        )

    def retry(self, number: int, *, now: float | None = None) -> bool:
        """Make a post due now; return False when it does not exist, was sent or is being sent."""
        when = time.time() if now is None else now
        changed = self._db.execute(
            "UPDATE outbox SET state = 'waiting', next_at = ? WHERE id = ? AND state <> 'sent' "
            "AND NOT (state = 'taken' AND taken_until > ?)",
            (when, number, when),
        )
        return changed == 1

    def drop(self, number: int) -> bool:
        """Drop a post; return False when it does not exist or was sent."""
        return self._db.execute("UPDATE outbox SET state = 'dropped' WHERE id = ? AND state <> 'sent'", (number,)) == 1

    def counts(self) -> dict[str, int]:
        """Return how many posts are in each state."""
        return {row["state"]: row["n"] for row in self._db.read("SELECT state, count(*) AS n FROM outbox GROUP BY 1")}

    def get(self, number: int) -> Post | None:
        """Return the post with this number, or None."""
        row = self._db.read_one("SELECT * FROM outbox WHERE id = ?", (number,))
        return _post(row) if row is not None else None

    def list_posts(self, *, state: str | None = None, limit: int = 100) -> list[Post]:
        """Return the posts, the newest first."""
        where, arguments = ("WHERE state = ?", (state, limit)) if state else ("", (limit,))
        return [
            _post(row) for row in self._db.read(f"SELECT * FROM outbox {where} ORDER BY id DESC LIMIT ?", arguments)
        ]


def _post(row: Any) -> Post:
    values = {name: row[name] for name in Post.__dataclass_fields__ if name != "payload"}
    return Post(**values, payload=json.loads(row["payload"]))
