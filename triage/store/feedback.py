"""Feedback of people on diagnoses. It stays with the incident, also when the catalog changes."""

from __future__ import annotations

import time
from typing import Literal

from triage.base.errors import OptionError
from triage.evidence.redact import redact
from triage.model.store import Feedback
from triage.store import audit
from triage.store.incidents import Incidents, feedback_from_row
from triage.store.interface import Connections


class FeedbackLog:
    """The feedback in a store."""

    def __init__(self, connections: Connections, incidents: Incidents) -> None:
        self._db = connections
        self._incidents = incidents

    def add(
        self,
        reference: str,
        verdict: Literal["agree", "wrong"],
        *,
        actor: str,
        because: str = "",
        signature: str | None = None,
    ) -> Feedback:
        """Store an opinion on the diagnosis of an incident. Raises OptionError."""
        num = self._incidents.find_number(reference)
        if verdict not in ("agree", "wrong"):
            raise OptionError(f"{verdict!r} is not a verdict", hint="use agree or wrong")
        because = redact(because.strip())
        with self._db.write() as db:
            row = db.execute(
                "SELECT i.id, coalesce(i.signature, k.cluster, i.verdict) AS said FROM incident i LEFT "
                "JOIN cluster_key k ON k.key = i.key WHERE i.num = ?",
                (num,),
            ).fetchone()
            when = time.time()
            (number,) = db.execute(
                "INSERT INTO feedback (incident, at, actor, verdict, because, signature, said) "
                "VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING id",
                (num, when, actor, verdict, because, signature, row["said"]),
            ).fetchone()
            details = {"because": because, "signature": signature, "said": row["said"]}
            audit.write_entry(db, when, actor, f"feedback {verdict}", row["id"], details)
        return Feedback(number, row["id"], when, actor, verdict, because, signature, row["said"])

    def list_feedback(
        self, *, verdict: str | None = None, signature: str | None = None, limit: int = 1000
    ) -> list[Feedback]:
        """Return the feedback, the latest first; `signature` is the diagnosed or the right one."""
        clauses, arguments = ["TRUE"], []
        if verdict is not None:
            clauses.append("f.verdict = ?")
            arguments.append(verdict)
        if signature is not None:
            clauses.append("(f.said = ? OR f.signature = ?)")
            arguments += [signature, signature]
        rows = self._db.read(
            "SELECT f.*, i.id AS name FROM feedback f JOIN incident i ON i.num = f.incident "
            f"WHERE {' AND '.join(clauses)} ORDER BY f.id DESC LIMIT ?",
            (*arguments, limit),
        )
        return [feedback_from_row(row) for row in rows]

    def counts(self) -> list[tuple[str, int, int]]:
        """Return (diagnosed cause, number of agree, number of wrong), the most often wrong first."""
        rows = self._db.read(
            "SELECT coalesce(said, '') AS said, count(*) FILTER (WHERE verdict = 'agree') AS agree, "
            "count(*) FILTER (WHERE verdict = 'wrong') AS wrong FROM feedback GROUP BY 1 ORDER BY 3 DESC, 2 DESC, 1"
        )
        return [(row["said"], row["agree"], row["wrong"]) for row in rows]
