from __future__ import annotations

import dataclasses

from tests.catalog.factories import signature
from triage.catalog.literal_selection import assign_literals
from triage.catalog.match import positive_leaves

HEALTHY = "step 12 loss 3.1\nnode1 NCCL INFO Connected all rings\nconsumed samples 12\n"


def test_rare_literals_are_chosen() -> None:
    """A literal that healthy logs contain is avoided where another one is available."""
    equipped, literals, weak = assign_literals(
        [signature(r"text: 'NCCL INFO .* unexpected bytes \d+ consumed samples'")], HEALTHY
    )
    assert literals == (" unexpected bytes ",)
    assert weak == []
    assert [leaf.literals for leaf in positive_leaves(equipped[0].match)] == [literals]


def test_common_and_missing_literals_are_weak() -> None:
    """A pattern with only common literals, or none, is reported with a hint."""
    _, literals, weak = assign_literals(
        [signature(r"any: [{text: 'consumed samples \d+'}, {text: '\d+ \w+'}, {text: 'error: .*'}]")], HEALTHY
    )
    assert [note.pattern for note in weak] == [r"consumed samples \d+", r"\d+ \w+", "error: .*"]
    assert all(note.hint and note.signature == "test.case" for note in weak)
    assert "consumed samples " in literals


def test_structural_evidence_needs_no_rare_literal() -> None:
    """Exceptions, exits and inferences are found by their shape: only rare literals are added to the scan."""
    cases = [
        signature(
            "any: [{kind: exit, text: 'error: .*'}, {kind: exception, text: 'RareError: .*'},"
            " {kind: inference, fields: {rule: x}}]"
        )
    ]
    _, literals, weak = assign_literals(cases, HEALTHY)
    assert literals == ("RareError: ",)
    assert weak == []


def test_a_leaf_without_text_is_weak() -> None:
    """A leaf of fields on a kind that only literals find is reported."""
    assert len(assign_literals([signature("{kind: message, fields: {rank: '3'}}")], HEALTHY)[2]) == 1


def test_noise_may_occur_in_healthy_logs() -> None:
    """A literal of noise may occur in healthy logs a few times, but not often."""
    noise = dataclasses.replace(signature("text: 'Connected all rings'"), role="noise")
    assert assign_literals([noise], HEALTHY)[2] == []
    assert len(assign_literals([noise], HEALTHY * 10)[2]) == 1


def test_context_may_occur_in_healthy_logs() -> None:
    """The context that an `all` requires beside the failure may be a line of every start-up."""
    case = signature("all: [{text: 'Connected all rings'}, {text: 'strange failure'}]")
    assert assign_literals([case], HEALTHY)[2] == []
    assert len(assign_literals([case], HEALTHY * 10)[2]) == 1


def test_leaves_under_none_have_no_literals() -> None:
    """The scan does not stop for evidence that would only be dropped."""
    assert assign_literals([signature("{text: 'abcd', none: [{text: 'efgh'}]}")], HEALTHY)[1] == ("abcd",)
