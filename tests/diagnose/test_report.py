"""What a report shows beside the line of a failure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from triage.diagnose.candidates import Candidate
from triage.diagnose.causes import Verdict
from triage.diagnose.graph import CausalGraph
from triage.diagnose.outcome import Outcome
from triage.diagnose.reason import ReasoningResult
from triage.diagnose.report import (
    MOST_MOMENTS,
    NEAR_BYTES,
    build_findings,
    build_moments,
    decide_verdict,
    with_surroundings,
)
from triage.evidence.inference import DIFFERS, HUNG, make_inferences
from triage.model.details import EndingDetail, StackDetail
from triage.model.evidence import Evidence

from .factories import candidate, fact, raised


def ending_at(offset: int, text: str = "# SIGSEGV (0xb) at pc=0x7f1a") -> Evidence:
    made = replace(fact(text, 3), kind="ending", offset=offset, end=offset + 9000)
    return replace(made, detail=EndingDetail("x", "any", "weak", 0))


def build_result(candidates: Sequence[Candidate] = (), facts: Sequence[Evidence] = ()) -> ReasoningResult:
    """Return a result in which nothing is chosen as the root cause, of a job that did not end well."""
    outcome = Outcome({}, {}, 0, {}, {}, frozenset())
    return ReasoningResult(tuple(facts), tuple(candidates), Verdict(None, (), 0.0), outcome, {})


def test_last_lines_near_a_failure_are_shown() -> None:
    """Up to NEAR_BYTES between them; one more is too far."""
    failure = replace(fact("#0 ?? () from libhdfs.so", 3), offset=2000)
    near, far = ending_at(2000 + NEAR_BYTES), ending_at(2000 + NEAR_BYTES + 1)
    assert with_surroundings(failure, [failure, near]) == (failure, near)
    assert with_surroundings(failure, [failure, far]) == (failure,)


def test_last_lines_that_repeat_the_failure_are_left_out() -> None:
    """The same text is not shown twice."""
    failure = replace(fact("OSError: disk is full", 3), offset=2000)
    assert with_surroundings(failure, [failure, ending_at(2000, "OSError: disk is full")]) == (failure,)


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        (("data.bad",), "Consequence of data.bad: the rank printed this error before it ended"),
        (("data.bad", "host.oom"), "Consequence of data.bad and host.oom"),
    ],
)
def test_only_a_single_cause_is_given_with_its_reason(names: tuple[str, ...], reason: str) -> None:
    """With several causes, each for a reason of its own, only their names are listed."""
    causes = [candidate(name, "cause", [1]) for name in names]
    effect = candidate("crash.abort", "symptom", [1])
    graph = CausalGraph([*causes, effect])
    for cause in causes:
        graph.add_edge(cause, effect, "the rank printed this error before it ended")
    findings, _ = build_findings(build_result(graph.candidates))
    assert [one.why for one in findings if one.signature == "crash.abort"] == [(reason,)]


@pytest.mark.parametrize(
    ("ranks", "shown", "confidence"), [((2,), {2}, 0.3), ((3,), {0, 1, 2}, 0.3), ((), {0, 1, 2}, 0.1)]
)
def test_a_hang_without_a_cause_shows_the_stacks_of_its_suspects(
    ranks: tuple[int, ...], shown: set[int], confidence: float
) -> None:
    """Where no stack of a suspect is there, or nobody is suspected, the stacks of all others are shown."""
    stacks = [
        fact(f"stack of rank {rank}", rank, kind="stack", detail=StackDetail("blocked", "waits"), offset=100 * rank)
        for rank in range(3)
    ]
    hung = make_inferences(HUNG, ranks, "rank 2 is in download_shard", stacks[0], basis="absence")
    verdict, finding = decide_verdict(build_result(facts=[*stacks, *hung]))
    assert finding is not None
    assert (verdict, finding.title, finding.ranks) == ("unknown", "Hung: rank 2 is in download_shard", ranks)
    assert ({one.origin.rank for one in finding.evidence}, finding.confidence) == (shown, confidence)


@pytest.mark.parametrize(
    ("versions", "setting"),
    [
        ({"torch": "2.9.1"}, "set TORCH_FR_BUFFER_SIZE=2000 and"),
        ({"torch": "2.8.0"}, "set TORCH_NCCL_TRACE_BUFFER_SIZE=2000 and"),
        (None, "set TORCH_NCCL_TRACE_BUFFER_SIZE=2000 (TORCH_FR_BUFFER_SIZE since torch 2.9) and"),
    ],
)
def test_advice_beside_ranks_that_differ_uses_the_names_of_the_version(
    versions: dict[str, str] | None, setting: str
) -> None:
    """What to set for the next run depends on the version of torch; of an unknown version, both names are given."""
    report = fact("NCCL version 2.27.3", source="ras.txt")
    differs = make_inferences(DIFFERS, (), "NCCL's RAS report: RAS got no answer", report, basis="absence")
    verdict, finding = decide_verdict(build_result(facts=[report, *differs]), versions)
    assert finding is not None
    assert verdict == "unknown"
    assert setting in finding.why[-1]


@pytest.mark.parametrize(("early", "late"), [(100.0, 105.0), (0.0, 0.5)])
def test_of_symptoms_alone_the_earliest_is_shown(early: float, late: float) -> None:
    """Its time is that of the failure, whatever its name and however the clock counts."""
    symptoms = [candidate("a.late", "symptom", [0], time=late), candidate("b.early", "symptom", [1], time=early)]
    _, finding = decide_verdict(build_result(symptoms))
    assert finding is not None
    assert (finding.first_time, [one.origin.rank for one in finding.evidence]) == (early, [1])


def test_of_many_moments_the_first_are_listed() -> None:
    """Exactly MOST_MOMENTS of them, also where the facts are not in the order of time."""
    times = [1000.0 + number for number in range(MOST_MOMENTS + 1)]
    error = candidate("data.bad", "cause")
    error.facts = [fact("bad record", 0, time=time) for time in reversed(times)]
    moments = build_moments(build_result([error], error.facts))
    assert [moment.time for moment in moments] == times[:MOST_MOMENTS]


@pytest.mark.parametrize(
    ("other", "is_shown"),
    [
        (raised("KeyError: 'shape'", 3, offset=2000, chain="context"), True),
        (raised("KeyError: 'shape'", 3, offset=9000, chain="context"), False),
        (raised("KeyError: 'shape'", 3, offset=2000, chain="cause"), False),
    ],
)
def test_the_exception_that_was_being_handled_is_named(other: Evidence, *, is_shown: bool) -> None:
    """That of the same traceback: not one that was handled elsewhere, nor another exception of this traceback."""
    failure = raised("ValueError: no tokens", 3, offset=2500)
    other = replace(other, end=failure.end if other.offset < failure.offset else other.end)
    (shown,) = with_surroundings(failure, [failure, other])
    assert shown.text == failure.text + "\nraised while handling KeyError: 'shape'" * is_shown


def confidence_of(one: Candidate) -> float:
    """Return the confidence of a failure that is not the root cause."""
    outcome = Outcome({}, {}, 0, {}, {}, frozenset())
    ((finding,), _) = build_findings(ReasoningResult((), (one,), Verdict(None, (), 0.0), outcome, {}))
    return finding.confidence


def test_a_finding_is_the_surer_the_stronger_a_cause_it_may_be() -> None:
    """A symptom that nothing explains is the least sure, and one that is explained the surest."""
    explained = candidate("b.two", "symptom", [1])
    explained.explained_by.append("a.one")
    symptom, either, cause = (candidate("b.two", role, [1]) for role in ("symptom", "either", "cause"))
    assert confidence_of(symptom) < confidence_of(either) < confidence_of(cause) < confidence_of(explained)
