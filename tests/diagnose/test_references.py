"""Tests for triage.diagnose.references."""

from __future__ import annotations

import pytest

from tests.diagnose.factories import fact, raised
from triage.diagnose.references import is_reference
from triage.diagnose.unknown import has_known_reason

INNER = "RuntimeError: The Inner error is reported as above. The process exits for this inner error."


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (INNER, True),
        ("RuntimeError: Run task for graph:kernel_graph_1 error! The details refer to 'Ascend Error Message'.", True),
        ("RuntimeError: E19999: Inner Error! The device was reset", False),
        ("pool.WorkerGroupError: worker group failed, see above for the root cause", True),
        ("EngineError: the engine did not start. Inspect the previous error of its workers.", True),
        ("EngineError: start failed; look at the traceback above", True),
        ("ValueError: shard 17 has 12 columns, see the list above", False),
        ("ValueError: the error rate 0.3 is above the limit for errors per shard", False),
    ],
)
def test_an_error_that_refers_to_another_line(text: str, expected: bool) -> None:
    """The reason stands elsewhere; an inner error with words of its own is one."""
    assert is_reference(raised(text, 0)) is expected


def test_the_reason_is_that_of_the_same_rank() -> None:
    """What a signature knows of the rank, in any file, is the reason; that of another rank is not."""
    reason = fact("EI0002: a notify did not come", 0, source="plog-1_1.log")
    assert has_known_reason(raised(INNER, 0), [reason])
    assert not has_known_reason(raised(INNER, 1), [reason])
