from __future__ import annotations

from dataclasses import replace

import pytest

from tests.catalog.factories import signature
from triage.catalog.lint_context import check_context_leaves
from triage.evidence import extract_text

HEALTHY = "node1:4711:4711 [0] NCCL INFO NET/OFI Selected Provider is efa"


def messages(match: str, role: str = "cause", lines: tuple[str, ...] = (HEALTHY,)) -> list[str]:
    one = replace(signature(match), role=role)  # type: ignore[arg-type]
    return [message for _, _, message, _ in check_context_leaves(one, extract_text, lines)]


@pytest.mark.parametrize("role", ["cause", "either", "symptom"])
def test_a_part_that_healthy_ranks_print_needs_the_mark(role: str) -> None:
    """A part of `all` that matches a line of a healthy job is reported, unless it has the mark."""
    match = "all:\n  - text: 'open AV failed'\n  - text: 'Selected Provider is efa'"
    assert messages(match, role) == [f"a part of `all` matches a line of a healthy job: {HEALTHY!r}"]
    assert messages(match, "noise") == []
    assert messages(match, lines=("step 1 loss 2",)) == []
    assert messages(f"{match}\n    context: true") == []


@pytest.mark.parametrize(
    "match",
    [
        "any:\n  - text: 'open AV failed'\n  - text: 'Selected Provider is efa'",  # each holds alone
        "all:\n  - text: 'open AV failed'\n  - {kind: kernel, text: 'Selected Provider is efa'}",  # of another program
        "all:\n  - text: 'open AV failed'\n  - {engine: regex, text: 'Selected (?=Provider is efa)'}",
        "all:\n  - text: 'open AV failed'\n  - {kind: inference, fields: {rule: 'left-early'}}",
    ],
)
def test_other_parts_need_no_mark(match: str) -> None:
    """Leaves that hold alone, that match no healthy evidence, or whose text nobody prints are not reported."""
    assert messages(match) == []


def test_something_must_show_the_failure() -> None:
    """A branch of context alone is an error, on its own or beside others."""
    message = ["a branch of `match` has nothing but context"]
    assert messages("{text: 'open AV failed', context: true}") == message
    assert messages("any:\n  - text: 'open AV failed'\n  - {text: 'Provider is cxi', context: true}") == message
    assert messages("all:\n  - text: 'open AV failed'\n  - {text: 'Provider is cxi', context: true}") == []
