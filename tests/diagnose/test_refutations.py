"""triage.diagnose.refutations"""

from __future__ import annotations

import pytest

from tests.diagnose.factories import candidate, fact
from triage.diagnose.refutations import REFUTATIONS, list_refutations
from triage.evidence import inference
from triage.evidence.inference import make_inferences
from triage.model import Evidence


def infer(rule: str, *ranks: int) -> list[Evidence]:
    """Return a conclusion about some ranks."""
    return make_inferences(rule, ranks, "rank 3 did not join", fact("a line"))


@pytest.mark.parametrize("rule", sorted((inference._STALLED | inference._SILENT) - {inference.BLOCKED}))
def test_each_conclusion_about_a_hang_says_what_would_refute_it(rule: str) -> None:
    """Those about ranks that only wait name no culprit, so there is nothing to refute."""
    assert rule in REFUTATIONS


def test_the_sentence_names_the_ranks() -> None:
    """Those at fault, each rule once."""
    root = candidate("rank 3 did not join", "cause", [3])
    root.facts[:] = [*infer("never-joined", 3), *infer("never-joined", 3)]
    assert list_refutations(root) == [
        "Wrong if another file shows rank 3 in that call, or an error of rank 3 before it"
    ]


@pytest.mark.parametrize("others", [[fact("CUDA error: out of memory", 3)], infer("memory-imbalance", 3)])
def test_what_a_line_states_needs_no_refutation(others: list[Evidence]) -> None:
    """So do conclusions about other things than hangs."""
    root = candidate("x", "cause", [3])
    root.facts[:] = others
    assert list_refutations(root) == []
