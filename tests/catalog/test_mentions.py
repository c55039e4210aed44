"""triage.catalog.mentions"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import pytest

from tests.catalog.factories import evidence, signature
from triage.catalog.match import evaluate_signature


@pytest.mark.parametrize(
    ("text", "component", "matches"),
    [
        ("the disk is full", "app", True),
        ("ERROR writer: the disk is full", "app", True),
        ("INFO writer: the disk is full", "app", False),
        ("[DEBUG] the disk is full", "app", False),
        ("tests/test_disk.py::test_writer the disk is full", "app", False),
        ("# the disk is full", "app", False),
        ("#1 the disk is full", "app", True),
        ("an exit code of 28 usually means that the disk is full", "app", False),
        ("on_error: the disk is full", "app", False),
        ("  when_full = the disk is full", "app", False),
        ("on: the disk is full", "app", True),
        ('{"option": "on_full", "help": "the disk is full"}', "app", False),
        ('{"message": "the disk is full"}', "app", True),
        ("INFO the disk is full", "NCCL", True),
        ("io/disk.py:33:class Full: the disk is full", "app", False),
        ("io/disk.py:33:class Full: the disk is full", "torchelastic", False),
        ("io/disk.cpp-34-    // the disk is full", "app", False),
        ("[  OK  ] the disk is full", "kernel", False),
        ("\u2713 the disk is full", "app", False),
        ("[okay] the disk is full", "app", True),
        ("ok: the disk is full", "app", True),
        ("disk.py:211: the disk is full", "app", True),
        ("disk.py:211:   the disk is full", "app", True),
    ],
)
@pytest.mark.parametrize("role", ["cause", "either", "symptom"])
def test_a_line_that_mentions_a_failure_is_no_cause(
    text: str, component: str, matches: bool, role: Literal["cause", "either", "symptom"]
) -> None:
    """By the level, or as a comment or a test, of the program itself; what only follows from others is not claimed."""
    full = replace(signature("text: the disk is full"), role=role)
    match = evaluate_signature(full, [evidence(text, component=component)])
    assert (match is not None) is (matches or role == "symptom")


def test_a_mention_may_confirm_a_cause() -> None:
    """Where a signature asks for several facts, a line of the level INFO may be one of them."""
    both = signature("all:\n- text: version 16 of it\n- text: the disk is full")
    texts = ("INFO version 16 of it", "the disk is full")
    assert evaluate_signature(both, [evidence(text, component="app") for text in texts]) is not None
