"""Fingerprints of findings, and clusters of new fingerprints."""

from __future__ import annotations

import dataclasses

from triage.clusters import fingerprint
from triage.clusters.rule_engine import RuleEngine
from triage.model.diagnosis import Finding
from triage.model.evidence import Evidence, Origin


def fact(text: str) -> Evidence:
    """Return an exception."""
    return Evidence("exception", "Python", text, Origin(), "x.log", 0)


def finding(*texts: str) -> Finding:
    """Return an unknown finding with these facts."""
    return Finding(None, texts[0], "unknown", "cause", "error", 0.5, cluster="u-1", evidence=tuple(map(fact, texts)))


def test_a_finding_has_the_fingerprint_of_the_fact_that_says_what_happened() -> None:
    """Exit codes before the exception are not the fingerprint; a finding with a signature has no fingerprint."""
    engine = RuleEngine()
    result = engine.fingerprint(finding("exitcode 1", "SinkError: writer lost its lease"))
    assert result == fingerprint(fact("SinkError: writer lost its lease"))
    assert engine.fingerprint(dataclasses.replace(finding("x"), signature="a.b")) is None


def test_a_crash_says_more_than_last_lines() -> None:
    """The crash point counts before an exception, and any failure before the last lines of a writer."""
    ending = dataclasses.replace(fact("lane queue lost"), kind="ending")
    crash = dataclasses.replace(fact("lane lease lost"), kind="crash", fields={"crash_point": "p-1"})
    for facts, best in (
        ((ending, fact("SinkError: gone now"), crash), crash),
        ((ending, fact("SinkError: gone now")), None),
    ):
        result = RuleEngine().fingerprint(dataclasses.replace(finding("x"), evidence=facts))
        assert result == fingerprint(best or facts[1])


def test_a_finding_that_says_nothing_has_the_fingerprint_of_its_first_fact() -> None:
    """Without a fact that says what happened the first one counts."""
    assert RuleEngine().fingerprint(finding("exitcode 1", "exitcode 7")) == fingerprint(fact("exitcode 1"))


def test_drift_joins_the_nearest() -> None:
    """More words of the same join, with the reason and the runner-up; other words do not."""
    known = [
        fingerprint(fact(text)) for text in ("SinkError: writer lost its lease", "SinkError: reader lost its lease")
    ]
    known_keys = [("u-1", known[0]), ("u-2", known[1])]
    joined = RuleEngine().place(fingerprint(fact("SinkError: writer lost its lease, retrying")), known_keys, (), {})
    assert (joined.how, joined.cluster, joined.joins) == ("nested", "u-1", ())
    assert "retrying" in joined.why[0]
    assert joined.runner_up is not None
    assert (joined.runner_up.cluster, joined.runner_up.only_there) == ("u-2", ("reader",))
    assert RuleEngine().place(fingerprint(fact("SinkError: scanner lost its lease")), known_keys, (), {}).how == "new"


def test_a_third_does_not_join_what_is_kept_apart() -> None:
    """Two clusters that a failure shows to be one are joined, but not where a person keeps any two of their
    fingerprints apart.
    """
    one, other, both = (
        fingerprint(fact(f"SinkError: writer lost its lease {more}"))
        for more in ("today", "remotely", "today remotely")
    )
    known_keys = [("u-1", one), ("u-2", other)]
    assert len(RuleEngine().place(both, known_keys, (), {}).joins) == 1
    apart = RuleEngine().place(both, known_keys, [frozenset((one.key, other.key))], {})
    assert (apart.how, apart.joins) == ("nested", ())
