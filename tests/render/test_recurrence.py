"""triage.render.recurrence"""

from __future__ import annotations

import pytest

from triage.model.store import Recurrence
from triage.render.recurrence import describe_recurrence

LAST = 1_795_230_000.0  # 2026-11-21


@pytest.mark.parametrize(
    ("recurrence", "sentence"),
    [
        (Recurrence(1, 1, LAST), "Second time in a week"),
        (Recurrence(2, 2, LAST, ("node7",)), "Third time in a week, on node7 each time"),
        (Recurrence(8, 2, LAST, ("a1", "b2")), "Third time in a week, on a1 and b2 each time; 9 times in all"),
        (Recurrence(1, 0, LAST), "Second time; the last one was on 2026-11-21"),
        (Recurrence(11, 11, LAST), "12th time in a week"),
        (Recurrence(20, 20, LAST), "21st time in a week"),
        (
            Recurrence(1, 1, LAST, (), "anna: the shm was full"),
            "Second time in a week. Last said of it by anna: the shm was full",
        ),
        (
            Recurrence(2, 2, LAST, ("node7",), fix="Last fixed in trainer 4.2 on 2026-11-10"),
            "Third time in a week, on node7 each time. Last fixed in trainer 4.2 on 2026-11-10",
        ),
    ],
)
def test_how_often_where_and_what_was_said(recurrence: Recurrence, sentence: str) -> None:
    """The count of the week comes first, then the hosts of all, the total, and the latest feedback."""
    assert describe_recurrence(recurrence) == sentence
