"""Sentences that change no answer: who may have been killed, which link, how many ranks, what was saved."""

from __future__ import annotations

from collections.abc import Sequence

from diagnose.factories import candidate, fact, unknown_failure
from triage.diagnose.candidates import Candidate
from triage.diagnose.context import RuleContext
from triage.diagnose.graph import EMPTY_CONTEXT, CausalGraph
from triage.diagnose.remarks import add_remarks


def remark(candidates: Sequence[Candidate], context: RuleContext = EMPTY_CONTEXT) -> None:
    add_remarks(CausalGraph(candidates, context))


def test_a_link_between_living_ends_names_both_and_the_device() -> None:
    """No rank failed before: host, peer and device are named."""
    link = candidate("fabric.retry", "either")
    object.__setattr__(link.signature, "indicates", "link")
    values = {"peer": ("10.0.0.5<4032>",), "device": ("mlx5_4",)}
    link = Candidate(link.signature, None, [fact("x", 0, host="a")], values=values)
    remark([link])
    assert any("the link is the cause, between a and 10.0.0.5<4032>, device mlx5_4" in reason for reason in link.why)


def test_the_same_error_on_all_ranks_is_the_program_s() -> None:
    """The reason says that all ranks show it, or how many of them."""
    context = RuleContext((), {}, frozenset(range(4)), 4, frozenset())
    everywhere, some = candidate("a.one", "cause", range(4)), candidate("b.two", "cause", [0, 1])
    remark([everywhere, some], context)
    assert any("All ranks (ranks 0-3) show it" in reason for reason in everywhere.why)
    assert any("2 of 4 ranks show it: ranks 0-1" in reason for reason in some.why)


def test_a_stop_after_saving_says_so() -> None:
    """Last lines about a saved checkpoint are mentioned with a stop from outside, and with no other failure."""
    context = RuleContext((), {}, frozenset({0, 1}), 2, frozenset(), doing={0: "saved"}, last_step={0: 400, 1: 399})
    stop = Candidate(candidate("slurm.preempted", "cause").signature, None, [fact("PREEMPTION", kind="scheduler")])
    own = unknown_failure("u-1", [1])
    remark([stop, own], context)
    assert stop.why == ["Stopped after saving at step 400, as the last lines of rank 0 show"]
    assert own.why == []
    other = Candidate(candidate("slurm.preempted", "cause").signature, None, [fact("PREEMPTION", kind="scheduler")])
    remark([other], RuleContext((), {}, frozenset({0}), 1, frozenset(), doing={0: "saving"}))
    assert other.why == []
