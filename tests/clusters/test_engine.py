"""What the store is told of a finding."""

from __future__ import annotations

import dataclasses

from triage.clusters import fingerprint
from triage.clusters.engine import ByRules
from triage.model import Evidence, Finding, Origin


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
    """More words of the same join, with the reason; other words do not."""
    known = [fingerprint(fact(text)) for text in ("SinkError: writer lost its lease", "SinkError: reader lost its lease")]
    joined = ByRules().join(fingerprint(fact("SinkError: writer lost its lease, retrying")), known)
    assert joined is not None
    assert joined[0] == known[0]
    assert "retrying" in joined[1]
    assert ByRules().join(fingerprint(fact("SinkError: scanner lost its lease")), known) is None
