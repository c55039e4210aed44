"""A dump says that a rank never came to a call, and the watchdog of this rank timed out in it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from diagnose.factories import candidate, fact
from diagnose.watchdog_lines import context_of, timed_out
from triage.diagnose.candidates import Candidate
from triage.diagnose.confidence import OTHER_STORY, rate_confidence
from triage.diagnose.contradictions import describe_contradiction
from triage.evidence.inference import make_inferences
from triage.model.evidence import Evidence


def root_of(rule: str, kind: str = "flight", ranks: Sequence[int] = (3,), **fields: str) -> Candidate:
    """Return a cause that follows from dumps or stacks: ranks 0 to 2 wait for `ranks`."""
    inferences = make_inferences(rule, ranks, f"{ranks} never came", fact("x", kind=kind), waiting=(0, 1, 2), **fields)
    return Candidate(candidate("torch.rank-never-joined").signature, None, inferences)


def describe(root: Candidate, lines: Sequence[Evidence]) -> str:
    """Return how the lines contradict the root."""
    return describe_contradiction(context_of(lines), root)


@pytest.mark.parametrize(
    ("rule", "kind", "seq", "op", "is_contradicted"),
    [
        ("never-joined", "flight", 7, "ALLREDUCE", True),
        ("lagging-rank", "flight", 7, "ALLREDUCE", True),
        ("never-joined", "stack", 7, "ALLREDUCE", True),
        ("never-joined", "flight", 6, "ALLREDUCE", False),  # it waits in another call
        ("never-joined", "message", 7, "ALLREDUCE", False),  # no dump: the conclusion is from the lines
        ("divergent-call", "flight", 7, "ALLREDUCE", True),
        ("divergent-call", "flight", 7, "BROADCAST", False),  # as the dump says
        ("stuck-in-collective", "flight", 7, "ALLREDUCE", False),  # all wait, in both sources
    ],
)
def test_own_watchdog_against_a_dump(rule: str, kind: str, seq: int, op: str, *, is_contradicted: bool) -> None:
    """A rank that timed out in one call with those that wait for it has come to this call."""
    lines = [*(timed_out(rank) for rank in range(3)), timed_out(3, seq=seq, op=op)]
    assert bool(describe(root_of(rule, kind), lines)) == is_contradicted


def test_what_the_sentence_says() -> None:
    """It names the rank, the call, who else waits there, and that the dump may be older."""
    text = describe(root_of("never-joined"), [timed_out(rank) for rank in range(4)])
    assert text == (
        "Its own watchdog contradicts the dump of rank 3: rank 3 timed out in ALLREDUCE #7 of group default_pg, where "
        "ranks 0-2 wait; the dump may be of an earlier moment"
    )


def test_a_call_that_began_to_differ_earlier_is_no_contradiction() -> None:
    """Numbers that agree now say nothing about a call that the dump shows to differ before."""
    lines = [timed_out(rank) for rank in range(4)]
    assert describe(root_of("divergent-call", since="4"), lines) == ""


@pytest.mark.parametrize(("contradiction", "is_sure"), [("the lines say otherwise", False), ("", True)])
def test_a_contradicted_root_is_not_sure(contradiction: str, *, is_sure: bool) -> None:
    """Its reasons have the contradiction in place of what would confirm it."""
    root = root_of("never-joined")
    effect = Candidate(candidate("crash.abort", "symptom").signature, None, [fact("x", 3), fact("y", 1)])
    effect.explained_by.append(root.id)
    assert (rate_confidence(root, (), [root, effect], (), contradiction) > OTHER_STORY) == is_sure
    assert any(why.startswith("Confirmed by") for why in root.why) == is_sure
    assert (contradiction in root.why) == (not is_sure)
