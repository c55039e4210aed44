from __future__ import annotations

import dataclasses

from tests.catalog.helpers import signature
from triage.catalog.gate import equip
from triage.catalog.match import positive_leaves

HEALTHY = "step 12 loss 3.1\nnode1 NCCL INFO Connected all rings\nconsumed samples 12\n"


def test_rare_literals_are_chosen() -> None:
    """A literal that healthy logs have is avoided where another follows from the pattern."""
    equipped, literals, weak = equip(
        [signature(r"text: 'NCCL INFO .* unexpected bytes \d+ consumed samples'")], HEALTHY
    )
    assert literals == (" unexpected bytes ",)
    assert weak == []
    assert [leaf.literals for leaf in positive_leaves(equipped[0].match)] == [literals]


def test_common_and_missing_literals_are_weak() -> None:
    """A pattern whose literals all stand in healthy logs, or that has none, is named with a remedy."""
    _, literals, weak = equip(
        [signature(r"any: [{text: 'consumed samples \d+'}, {text: '\d+ \w+'}, {text: 'error: .*'}]")], HEALTHY
    )
    assert [note.pattern for note in weak] == [r"consumed samples \d+", r"\d+ \w+", "error: .*"]
    assert all(note.hint and note.signature == "test.case" for note in weak)
    assert "consumed samples " in literals


def test_structural_evidence_needs_no_rare_literal() -> None:
    """Exceptions, exits and inferences are found by their shape: a common word is kept out of the scan, a rare one is
    not.
    """
    cases = [
        signature(
            "any: [{kind: exit, text: 'error: .*'}, {kind: exception, text: 'RareError: .*'}, {kind: inference, fields: {rule: x}}]"
        )
    ]
    _, literals, weak = equip(cases, HEALTHY)
    assert literals == ("RareError: ",)
    assert weak == []


def test_a_leaf_that_nothing_finds_is_weak() -> None:
    """A leaf of fields on a kind that only literals bring in is reported."""
    assert len(equip([signature("{kind: message, fields: {rank: '3'}}")], HEALTHY)[2]) == 1


def test_noise_may_stand_in_healthy_logs_a_few_times() -> None:
    """Noise is in healthy logs by its nature, but must not be on every other line."""
    noise = dataclasses.replace(signature("text: 'Connected all rings'"), role="noise")
    assert equip([noise], HEALTHY)[2] == []
    assert len(equip([noise], HEALTHY * 10)[2]) == 1


def test_context_may_stand_in_healthy_logs_too() -> None:
    """What an `all` asks for beside the failure may be a line of every start-up."""
    case = signature("all: [{text: 'Connected all rings'}, {text: 'strange failure'}]")
    assert equip([case], HEALTHY)[2] == []
    assert len(equip([case], HEALTHY * 10)[2]) == 1


def test_literals_under_none_are_not_looked_for() -> None:
    """What only drops evidence does not open the gate."""
    assert equip([signature("{text: 'abcd', none: [{text: 'efgh'}]}")], HEALTHY)[1] == ("abcd",)
