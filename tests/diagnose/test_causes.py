"""What explains what, and which of the rest began it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from triage.catalog.model import CausalEdge
from triage.diagnose import causes
from triage.diagnose.candidates import Candidate
from triage.diagnose.confidence import OTHER_STORY
from triage.diagnose.context import RuleContext
from triage.diagnose.graph import is_known_rival, root_tier
from triage.diagnose.time_order import tie_clocks
from triage.model import CrashDetail, Evidence, ExceptionDetail
from triage.model.diagnosis import Role

from .factories import candidate, decide, exited, explain, fact, unknown_failure

NAMES = (
    "a.one",
    "b.two",
    "c.three",
    "crash.abort",
    "crash.segfault",
    "launch.interrupted",
    "slurm.cancelled",
    "data.worker-killed",
    "u-1",
    "u-2",
)
SCOPES = ("same-rank", "same-host", "other-ranks", "any-rank")


@st.composite
def graphs(draw: st.DrawFn) -> list[Candidate]:
    """Candidates of any role on any ranks at any time, with edges in any direction, circles included."""
    made = []
    for name in draw(st.lists(st.sampled_from(NAMES), unique=True, min_size=1, max_size=8)):
        ranks = draw(st.lists(st.integers(0, 4), unique=True, max_size=4))
        time = draw(st.none() | st.floats(0, 100))
        if name.startswith("u-"):
            made.append(unknown_failure(name, ranks, time=time, kind=draw(st.sampled_from(["exception", "exit"]))))
            continue
        one = candidate(name, draw(st.sampled_from(["cause", "symptom", "either", "confirmation"])), ranks, time=time)
        assert one.signature is not None
        edges = tuple(
            CausalEdge(draw(st.sampled_from(NAMES)), draw(st.sampled_from(SCOPES)))
            for _ in range(draw(st.integers(0, 3)))
        )
        object.__setattr__(one.signature, "causal_edges", edges)
        made.append(one)
    return made


def circles(candidates: Sequence[Candidate]) -> bool:
    """Does any candidate explain itself, by whatever detour?"""
    by_id = {one.id: one for one in candidates}

    def reaches(start: str, goal: str, visited: set[str]) -> bool:
        return any(
            cause == goal or (cause not in visited and reaches(cause, goal, visited | {cause}))
            for cause in by_id[start].explained_by
        )

    return any(reaches(one.id, one.id, set()) for one in candidates)


@given(graphs())
def test_explaining_never_closes_a_circle(candidates: list[Candidate]) -> None:
    """Whatever edges a catalog has, no candidate explains itself, and none is explained twice by another."""
    explain(candidates)
    assert not circles(candidates)
    for one in candidates:
        assert len(set(one.explained_by)) == len(one.explained_by)
        assert set(one.explained_by) <= {other.id for other in candidates} - {one.id}


@given(graphs(), st.integers(0, 1 << 30))
def test_the_order_of_candidates_does_not_decide(candidates: list[Candidate], seed: int) -> None:
    """Shuffled candidates give the same explanations, the same root and the same confidence."""
    shuffled = [
        Candidate(one.signature, one.cluster, list(one.facts), one.captures, one.values, one.suspects)
        for one in candidates
    ]
    random.Random(seed).shuffle(shuffled)
    answers = []
    for these in (candidates, shuffled):
        explain(these)
        verdict = decide(these)
        answers.append(
            (
                verdict.root and verdict.root.id,
                verdict.confidence,
                sorted(o.id for o in verdict.others),
                {o.id: sorted(o.explained_by) for o in these},
            )
        )
    assert answers[0] == answers[1]


@given(graphs())
def test_the_root_is_unexplained_and_confidence_is_bounded(candidates: list[Candidate]) -> None:
    """A root is explained by nothing, is of the best tier there is, or a known possible cause before unknown failures,
    and is never certain; every loser is told why.
    """
    explain(candidates)
    verdict = decide(candidates)
    if verdict.root is None:
        assert all(one.explained_by or root_tier(one) is None for one in candidates)
        return
    assert not verdict.root.explained_by
    assert 0.1 <= verdict.confidence <= 0.95
    stronger = [other for other in verdict.others if (root_tier(other) or 0) < (root_tier(verdict.root) or 0)]
    assert all(any(is_known_rival(known, other) for known in candidates) for other in stronger)
    assert all(other.why for other in verdict.others)


def root(*candidates: Candidate) -> str | None:
    explain(candidates)
    chosen = decide(candidates).root
    return chosen.id if chosen else None


def test_a_cause_explains_the_symptoms_around_it() -> None:
    """A rank that raised explains the lost peers of the others, whether the catalog knows it or not."""
    lost = candidate("gloo.lost", "symptom", [0, 1])
    assert root(unknown_failure("u-1", [2]), lost) == "u-1"
    assert lost.explained_by == ["u-1"]


def test_symptoms_alone_have_no_root() -> None:
    """Echoes do not begin anything."""
    assert root(candidate("gloo.lost", "symptom", [0, 1]), candidate("torch.wait", "symptom", [2])) is None
    assert root() is None


def test_the_earlier_of_two_causes_began_it() -> None:
    """Two causes of which neither explains the other: the one that was clearly first; the other is told why it lost."""
    later, early = candidate("a.late", "cause", [0], time=100.0), candidate("b.early", "cause", [1], time=10.0)
    assert root(later, early) == "b.early"
    assert later.why == ["Began 90 s after b.early"]


def test_stamps_a_second_apart_do_not_order() -> None:
    """Whole seconds cannot put one before the other: nothing says which came first, and confidence falls."""
    one, two = candidate("a.one", "cause", [0], time=10.0), candidate("b.two", "cause", [1], time=9.0)
    verdict = decide([one, two])
    assert "nothing in the files shows" in verdict.others[0].why[-1]
    assert verdict.confidence < 0.9


def test_an_ending_is_explained_by_the_error_before_it() -> None:
    """An abort is explained by the error that the same rank printed, and is a root of its own without one."""
    abort = candidate("crash.abort", "either", [1])
    assert root(candidate("cuda.assert", "cause", [1]), abort) == "cuda.assert"
    assert abort.explained_by == ["cuda.assert"]
    assert root(candidate("crash.abort", "either", [1])) == "crash.abort"


def test_a_stop_from_outside_is_the_last_choice() -> None:
    """A cancelled job that had failed before was cancelled because of it; one that had not was only cancelled."""
    assert root(candidate("slurm.cancelled", "cause", []), unknown_failure("u-1", [2])) == "u-1"
    assert root(candidate("slurm.cancelled", "cause", []), candidate("gloo.lost", "symptom", [1])) == "slurm.cancelled"


@pytest.mark.parametrize(
    ("scope", "explained"), [("same-rank", False), ("other-ranks", True), ("any-rank", True), ("same-host", True)]
)
def test_edges_hold_within_their_scope(scope: str, explained: bool) -> None:
    """An edge for the same rank does not reach another one; a host that is not known does not forbid anything."""
    cause, effect = candidate("a.cause", "either", [0]), candidate("b.effect", "either", [1])
    assert cause.signature is not None
    object.__setattr__(cause.signature, "causal_edges", (CausalEdge("b.effect", scope),))
    explain([cause, effect])
    assert bool(effect.explained_by) is explained


def test_rivals_and_unknown_ranks_lower_the_confidence() -> None:
    """Each rival of the same strength costs, and so does not knowing where."""
    alone = decide(explain([candidate("a.one", "cause", [0])]).candidates).confidence
    nowhere = decide(explain([candidate("a.one", "cause")]).candidates).confidence
    rivals = decide(
        explain([candidate(name, "cause", [0]) for name in ("a.one", "b.two", "c.three")]).candidates
    ).confidence
    assert alone > nowhere > rivals


def test_the_log_that_stops_first() -> None:
    """Of two failures without times, the one after which its rank wrote nothing while the other's went on; not if it
    waited in a collective.
    """
    one, other = unknown_failure("u-2", [2]), unknown_failure("u-0", [0])
    context = RuleContext(
        (), {}, frozenset(range(4)), 4, frozenset(), last_step={0: 9, 2: 9}, last_time={0: ("", 160.0), 2: ("", 100.0)}
    )
    assert causes.choose_root([other, one], context=context)[0] is one
    assert "went on for more than 10 s" in other.why[-1]
    waiting = Candidate(None, "u-2", [fact("u-2", 2, kind="exception", op="barrier")])
    assert causes.choose_root([unknown_failure("u-0", [0]), waiting], context=context)[0] is not waiting
    near = replace(context, last_time={0: ("", 105.0), 2: ("", 100.0)})
    assert causes.choose_root([other, one], context=near)[0] is other


@pytest.mark.parametrize(
    ("own", "theirs", "chosen", "is_sure"),
    [
        (10.0, 40.0, "fabric.retry", True),
        (40.0, 10.0, "u-1", True),
        (10.0, 10.5, "u-1", False),
        (None, None, "u-1", False),
    ],
)
def test_a_known_possible_cause_before_an_unknown_failure(
    own: float | None, theirs: float | None, chosen: str, is_sure: bool
) -> None:
    """A link that other ranks show broken before it comes first; where no time orders them, neither is sure."""
    known, unknown = candidate("fabric.retry", "either", [2], time=own), unknown_failure("u-1", [0], time=theirs)
    if own is None:
        unknown.facts = [replace(unknown.facts[0], source="rank0.log")]
    explain([known, unknown])
    verdict = decide([known, unknown])
    assert verdict.root is not None
    assert verdict.root.id == chosen
    assert (verdict.confidence > OTHER_STORY) is is_sure


@pytest.mark.parametrize(("offset", "chosen"), [(50, "crash.fault"), (150, "u-1")])
def test_the_order_of_lines_puts_a_possible_cause_first_without_certainty(offset: int, chosen: str) -> None:
    """Two ranks in one console without times: the line above comes first; a known one is not sure then."""
    known, unknown = candidate("crash.fault", "either", [2]), unknown_failure("u-1", [0])
    known.facts = [replace(known.facts[0], offset=offset)]
    unknown.facts = [replace(unknown.facts[0], offset=100)]
    verdict = decide([known, unknown])
    assert verdict.root is not None
    assert verdict.root.id == chosen
    assert (verdict.confidence <= OTHER_STORY) is (chosen != "u-1")


@pytest.mark.parametrize(
    "known",
    [
        candidate("fabric.retry", "either", [0], time=10.0),
        candidate("fabric.retry", "either", [], time=10.0),
        candidate("gloo.lost", "symptom", [2], time=10.0),
        candidate("launch.interrupted", "either", [2], time=10.0),
    ],
)
def test_what_precedes_an_unknown_failure_without_being_a_rival(known: Candidate) -> None:
    """A possible cause of the same or no rank, a symptom and a stop from outside do not come before it."""
    assert decide([known, unknown_failure("u-1", [0], time=40.0)]).root.id == "u-1"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("text", "role", "chosen"),
    [
        ("If you get `invalid device function` errors, rebuild it", "cause", "b.two"),
        ("CUDA error: invalid device function", "cause", "a.one"),
        ("If you get `invalid device function` errors, rebuild it", "either", "b.two"),
    ],
)
def test_what_lines_only_speak_of_comes_behind_a_possible_cause(text: str, role: Role, chosen: str) -> None:
    """Advice names many errors that did not happen."""
    mention = candidate("a.one", role)
    mention.facts = [fact(text)]
    assert causes.choose_root([mention, candidate("b.two", "either")])[0].id == chosen  # type: ignore[union-attr]


def caught_failure(name: str, rank: int, time: float | None = None) -> Candidate:
    """Return an unknown failure that the job's own code caught and printed."""
    one = unknown_failure(name, [rank], time=time)
    one.facts = [replace(each, detail=ExceptionDetail("KeyError", caught=True)) for each in one.facts]
    return one


@pytest.mark.parametrize(
    ("end", "is_first"),
    [(None, False), (exited(1, 1), True), (exited(2, 1), False), (exited(1, 143, signal="SIGTERM"), False)],
)
def test_a_caught_exception_comes_after_others(end: Evidence | None, is_first: bool) -> None:
    """Even if it is earlier, unless an exit code shows that its process failed."""
    caught, uncaught = caught_failure("u-1", 1, time=10), unknown_failure("u-2", [2], time=50)
    context = RuleContext([end] if end else [], {}, frozenset(range(4)), 4, frozenset())
    assert (causes.choose_root([uncaught, caught], context=context)[0] is caught) is is_first


def test_a_caught_exception_is_no_second_root() -> None:
    """It does not stand beside an uncaught one; two caught ones do."""
    caught, uncaught = caught_failure("u-1", 1), unknown_failure("u-2", [2])
    assert alongside(caught, uncaught) == []
    assert alongside(caught, caught_failure("u-3", 3)) == ["u-3"]


def test_high_confidence_needs_two_sources() -> None:
    """A rank's own log alone gives medium confidence; the launcher's report as well makes it high."""
    alone = decide([candidate("a.one", "cause", [1])])
    assert alone.confidence < 0.8
    assert alone.root is not None
    assert alone.root.why[-1] == "Only one source shows this"
    both = candidate("a.one", "cause", [1])
    both.facts.append(exited(1, 1))
    assert decide([both]).confidence >= 0.8


def alongside(*candidates: Candidate) -> list[str]:
    explain(candidates)
    chosen, others = causes.choose_root(candidates)
    assert chosen is not None
    return [other.id for other in causes.began_together(chosen, others)]


def test_two_failures_within_a_second_are_both_roots() -> None:
    """Independent failures of two ranks of the same strength began together up to a second apart, not later."""
    for seconds, expected in ((0.9, ["u-2"]), (1.1, [])):
        late = unknown_failure("u-2", [3], time=10.5 + seconds)
        assert alongside(unknown_failure("u-1", [0], time=10.5), late) == expected


@pytest.mark.parametrize(("seconds", "expected"), [(2.0, ["u-2"]), (3.0, [])])
def test_what_stands_below_in_the_same_file_began_later(seconds: float, expected: list[str]) -> None:
    """No clock has both hosts; the order of the lines and their times agree, so they did not begin together."""
    first, later = unknown_failure("u-1", [0], time=10.0), unknown_failure("u-2", [3], time=10.0 + seconds)
    later.facts = [replace(one, offset=500) for one in later.facts]
    for one in (first, later):
        one.set_clocks(tie_clocks([], "ab"))
    chosen, others = causes.choose_root([later, first])
    assert chosen is first
    assert [other.id for other in causes.began_together(chosen, others)] == expected
    if not expected:
        assert later.why == ["Stands below u-1 in the same file, and its time is later"]


def test_two_failures_without_times_are_both_roots() -> None:
    """Nothing shows which came first; the one that stands first in a file of both is shown first."""
    first, second = unknown_failure("u-9", [3]), unknown_failure("u-1", [0])
    second.facts = [replace(one, offset=500) for one in second.facts]
    assert root(first, second) == "u-9"
    assert alongside(first, second) == ["u-1"]


def test_a_weaker_or_placeless_failure_is_no_second_root() -> None:
    """Neither a failure of the same or an unknown rank, nor an ending, nor a lost peer began alongside."""
    for other in (
        unknown_failure("u-2", [0]),
        unknown_failure("u-2"),
        unknown_failure("u-2", [3], kind="exit"),
        candidate("crash.abort", "either", [3]),
    ):
        assert alongside(unknown_failure("u-1", [0]), other) == []


def test_a_failure_without_a_reason_is_no_second_root() -> None:
    """`internal error` beside an error with a reason says less; two of them say as much."""
    vague, other = unknown_failure("u-2", [3]), unknown_failure("u-3", [2])
    for one in (vague, other):
        one.facts = [replace(one.facts[0], text="LinkError: internal error")]
    assert alongside(unknown_failure("u-1", [0]), vague) == []
    assert alongside(vague, other) == ["u-3"]


def test_without_a_clock_the_first_in_a_file_comes_first() -> None:
    """A known failure before an unknown one; of two alike the one that stands above the other, whatever its id."""
    above, below = unknown_failure("u-2", [1]), unknown_failure("u-1", [2])
    above.facts = [replace(above.facts[0], offset=10)]
    below.facts = [replace(below.facts[0], offset=90)]
    assert decide([below, above]).root is above
    known = candidate("a.known", "cause", [3])
    known.facts = [replace(known.facts[0], offset=200)]
    assert decide([below, above, known]).root is known


@pytest.mark.parametrize("names", [("u-1", "u-2"), ("u-2", "u-1")])
@pytest.mark.parametrize(
    ("telling", "other"),
    [
        (fact("OSError: disk"), exited(0, 1)),
        (fact("ValueError: 3 tokens"), fact("RuntimeError: E19999: Inner Error! The device failed")),
        (fact("LinkError: internal error"), fact("Fatal Python error: Aborted", kind="fatal-python")),
        (fact("ValueError: 3 tokens", function="collate"), fact("ValueError: 3 tokens")),
        (fact("ValueError: 3 tokens"), fact("ValueError: 4 tokens", source="z.log")),
    ],
)
def test_a_tie_of_unknown_failures_is_decided_by_meaning(
    names: tuple[str, str], telling: Evidence, other: Evidence
) -> None:
    """A message, a reason, the frame of the job's own code, then the first place; never the id of the cluster."""
    first, second = (Candidate(None, name, [one]) for name, one in zip(names, (telling, other), strict=True))
    assert causes.choose_root([first, second])[0] is first
    assert causes.choose_root([second, first])[0] is first


@pytest.mark.parametrize(("message", "tier"), [("", 2), ("Assertion `head < size' failed.", 1)])
def test_a_crash_without_a_message_is_no_stated_cause(message: str, tier: int) -> None:
    """A stack alone says where a process crashed; a line that a signature knows comes before it."""
    crash = fact("#0  abort", 3, kind="crash", component="gdb", detail=CrashDetail("", "unknown"), message=message)
    assert root_tier(Candidate(None, "u-1", [crash])) == tier


def test_two_exit_codes_did_not_begin_together() -> None:
    """Where only the exit codes of two ranks are known, nothing says that each failed by itself."""
    assert alongside(unknown_failure("u-1", [0], kind="exit"), unknown_failure("u-2", [3], kind="exit")) == []
