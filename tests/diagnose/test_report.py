"""What a report shows beside the line of a failure."""

from __future__ import annotations

from dataclasses import replace

from triage.diagnose.report import NEAR_BYTES, with_surroundings
from triage.model.details import EndingDetail
from triage.model.evidence import Evidence

from .factories import fact


def ending_at(offset: int, text: str = "# SIGSEGV (0xb) at pc=0x7f1a") -> Evidence:
    made = replace(fact(text, 3), kind="ending", offset=offset, end=offset + 9000)
    return replace(made, detail=EndingDetail("x", "any", "weak", 0))


def test_last_lines_near_a_failure_are_shown() -> None:
    """Up to NEAR_BYTES between them; one more is too far."""
    failure = replace(fact("#0 ?? () from libhdfs.so", 3), offset=2000)
    near, far = ending_at(2000 + NEAR_BYTES), ending_at(2000 + NEAR_BYTES + 1)
    assert with_surroundings(failure, [failure, near]) == (failure, near)
    assert with_surroundings(failure, [failure, far]) == (failure,)


def test_last_lines_that_repeat_the_failure_are_left_out() -> None:
    """The same text is not shown twice."""
    failure = replace(fact("OSError: disk is full", 3), offset=2000)
    assert with_surroundings(failure, [failure, ending_at(2000, "OSError: disk is full")]) == (failure,)
