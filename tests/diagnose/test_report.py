"""What a finding tells: the texts of its signature with what the logs said put in."""

from __future__ import annotations

from triage.catalog.model import Catalog
from triage.diagnose.report import _fill
from triage.diagnose.say import say_ranks


def test_braces_of_commands_stay(catalog: Catalog) -> None:
    """Only placeholders are filled in: a step that quotes a command with braces is not changed by it."""
    for signature in catalog.signatures:
        for text in (signature.summary, *signature.steps):
            assert _fill(text, {}) == text
    said = "on {host}: docker inspect -f '{{.Name}}' {0..7} {unknown}"
    assert _fill(said, {"host": "node1"}) == "on node1: docker inspect -f '{{.Name}}' {0..7} {unknown}"


def test_a_sentence_names_a_few_of_very_many_ranks() -> None:
    """Ranges are named up to a number, the rest is counted: a `why` of 10,000 ranks stays a sentence."""
    assert say_ranks(range(0, 8000, 2)).endswith("28, 30 and 3984 more")
    assert say_ranks([*range(5000), 7000]) == "ranks 0-4999, 7000"
