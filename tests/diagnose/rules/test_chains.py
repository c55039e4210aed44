"""What the catalog's edges explain, and what they do not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from diagnose.factories import candidate, explain, unknown_failure
from triage.catalog.model import CausalEdge
from triage.diagnose.candidates import Candidate
from triage.diagnose.context import RuleContext
from triage.diagnose.graph import CausalGraph
from triage.diagnose.rules import chains
from triage.model import Evidence
from triage.model.diagnosis import Role


def _candidate(name: str, role: str, ranks: Sequence[int], indicates: str, *effects: str) -> Candidate:
    one = candidate(name, role, ranks)  # type: ignore[arg-type]
    assert one.signature is not None
    edges = tuple(CausalEdge(effect) for effect in effects)
    one.signature = replace(one.signature, indicates=indicates, causal_edges=edges)
    return one


@pytest.mark.parametrize(
    ("aborted", "waiting", "is_explained"),
    [((), (0, 1), False), ((), (0,), True), ((0,), (0,), False), ((1,), (0,), True)],
)
def test_no_end_explains_that_the_same_process_waited(
    aborted: Sequence[int], waiting: Sequence[int], *, is_explained: bool
) -> None:
    """The launcher's line names no rank: all ranks, or those that aborted, gave up waiting before; or one did not."""
    report = _candidate("launch.end", "symptom", (), "own-failure", "torch.timeout")
    timeout = _candidate("torch.timeout", "symptom", waiting, "waiting", "crash.abort")
    abort = _candidate("crash.abort", "either", aborted, "ending", "launch.end")
    facts: list[Evidence] = []
    explain([report, timeout, *([abort] if aborted else [])], RuleContext(facts, {}, frozenset((0, 1)), 2, frozenset()))
    assert ("launch.end" in timeout.explained_by) is is_explained


@pytest.mark.parametrize(
    ("ranks", "indicates", "parts", "is_explained"),
    [
        ((), "", {}, True),
        ((2,), "", {}, True),
        ((1,), "", {}, False),
        ((), "link", {}, False),
        ((), "", {"kind": "kernel"}, False),
        ((), "", {"fields": {"harmless": "Steps follow"}}, False),
        ((), "", {"text": "grad norm is nan, iteration skipped"}, False),
    ],
)
def test_what_a_process_printed_explains_its_exit_code(
    ranks: Sequence[int], indicates: str, parts: dict[str, Any], *, is_explained: bool
) -> None:
    """A possible cause of no other rank, that the process wrote itself and did not survive, and no lost peer."""
    printed = _candidate("launch.misuse", "either", ranks, indicates)
    printed.facts = [replace(one, **parts) for one in printed.facts]
    end = unknown_failure("u-1", [2], kind="exit")
    explain([printed, end])
    assert (end.explained_by == ["launch.misuse"]) is is_explained


@pytest.mark.parametrize(
    ("name", "role", "is_explained"),
    [("data.bad", "cause", True), ("gloo.lost", "symptom", False), ("slurm.cancelled", "cause", False)],
)
def test_a_stop_explains_later_failures(name: str, role: Role, is_explained: bool) -> None:
    """What may be a cause fails because of the stop; symptoms have rules of their own, and a second stop is no
    failure.
    """
    stop = candidate("launch.interrupted", "cause", [0], time=100.0)
    later = candidate(name, role, [1], time=110.0)
    chains.stopped_before(CausalGraph([stop, later]))
    assert (later.explained_by == ["launch.interrupted"]) is is_explained


@pytest.mark.parametrize(
    ("name", "role", "is_explained"),
    [("data.bad", "cause", True), ("gloo.lost", "symptom", False), ("slurm.cancelled", "cause", False)],
)
def test_only_a_failure_of_the_job_explains_a_later_stop(name: str, role: Role, is_explained: bool) -> None:
    """Somebody stops a job because it failed, not because of a symptom or an earlier stop."""
    stop = candidate("launch.interrupted", "cause", [0], time=130.0)
    earlier = candidate(name, role, [1], time=100.0)
    explain([stop, earlier])
    assert (stop.explained_by == [name]) is is_explained
