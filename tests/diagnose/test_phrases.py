"""Small helpers for sentences."""

from __future__ import annotations

import pytest

from triage.diagnose.phrases import shorten


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("the feeder has died", "the feeder has died"),
        ("the feeder has died!", "the feeder has…"),
        ("x" * 40, "x" * 18 + "…"),
        ("a " + "x" * 40, "a " + "x" * 16 + "…"),
        ("", ""),
    ],
)
def test_a_long_line_is_cut_between_words(text: str, short: str) -> None:
    """A word longer than half of the room is cut itself; an ellipsis stands for what is left out."""
    assert shorten(text, 19) == short
