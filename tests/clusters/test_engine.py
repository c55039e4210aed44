"""What the store is told of a finding."""

from __future__ import annotations

import dataclasses

from triage.clusters import fingerprint
from triage.clusters.engine import ByRules
from triage.model.diagnosis import Finding
from triage.model.evidence import Evidence, Origin


def fact(text: str) -> Evidence:
    return Evidence("exception", "Python", text, Origin(), "x.log", 0)


def finding(*texts: str) -> Finding:
    return Finding(None, texts[0], "unknown", "cause", "error", 0.5, cluster="u-1", evidence=tuple(map(fact, texts)))


def test_a_finding_is_what_its_telling_fact_says() -> None:
    """Exit codes before the exception do not speak for the failure; a finding with a signature has no fingerprint."""
    engine = ByRules()
    told = engine.fingerprint(finding("exitcode 1", "SinkError: writer lost its lease"))
    assert told == fingerprint(fact("SinkError: writer lost its lease"))
    assert engine.fingerprint(dataclasses.replace(finding("x"), signature="a.b")) is None


def test_drift_joins_the_nearest() -> None:
    """More words of the same join, with the reason and the runner-up; other words do not."""
    known = [
        fingerprint(fact(text)) for text in ("SinkError: writer lost its lease", "SinkError: reader lost its lease")
    ]
    given = [("u-1", known[0]), ("u-2", known[1])]
    joined = ByRules().place(fingerprint(fact("SinkError: writer lost its lease, retrying")), given, ())
    assert (joined.how, joined.cluster, joined.joins) == ("nested", "u-1", ())
    assert "retrying" in joined.why[0]
    assert joined.runner_up is not None
    assert (joined.runner_up.cluster, joined.runner_up.only_there) == ("u-2", ("reader",))
    assert ByRules().place(fingerprint(fact("SinkError: scanner lost its lease")), given, ()).how == "new"


def test_a_third_does_not_join_what_is_kept_apart() -> None:
    """Two clusters that a failure shows to be one are joined, but not where a person keeps any two of their
    fingerprints apart.
    """
    one, other, both = (
        fingerprint(fact(f"SinkError: writer lost its lease {more}"))
        for more in ("today", "remotely", "today remotely")
    )
    given = [("u-1", one), ("u-2", other)]
    assert len(ByRules().place(both, given, ()).joins) == 1
    kept = ByRules().place(both, given, [frozenset((one.key, other.key))])
    assert (kept.how, kept.joins) == ("nested", ())
