"""What the catalog's edges explain, and what they do not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from diagnose.factories import candidate, explain
from triage.catalog.model import CausalEdge
from triage.diagnose.candidates import Candidate
from triage.diagnose.context import RuleContext
from triage.model import Evidence


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
