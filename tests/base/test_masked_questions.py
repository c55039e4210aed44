"""Every question that is asked once for lines that differ in digits gets the answer that the line itself gets."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from triage.base.digit_masks import mask_digits
from triage.evidence import harmless_signs
from triage.evidence.endings import last_lines, shapes
from triage.records import activity, completion, introductions, memberships, pairing_lines, text

ROOT = Path(__file__).resolve().parents[2]
OF_BYTES: tuple[Callable[[bytes], Any], ...] = (
    activity._is_informative,
    activity._find_writer,
    completion.has_hint,
    introductions.may_introduce,
    last_lines._counted_shape,
    memberships._may_say_it,
    pairing_lines._joins,
    shapes.is_stack,
    shapes.shape_of,
    text._is_one_line,
)
OF_TEXT: tuple[Callable[[str], Any], ...] = (
    activity.shows_progress,
    completion._has_hint_in_text,
    harmless_signs._states_recovery,
)


@pytest.fixture(scope="module")
def lines() -> list[bytes]:
    """Return some lines of every sample."""
    chosen: dict[bytes, None] = {}
    for path in sorted((ROOT / "samples" / "jobs").rglob("*")):
        if path.is_file() and b"\0" not in (data := path.read_bytes()[: 1 << 18]):
            every = data.split(b"\n")
            chosen.update(dict.fromkeys(random.Random(path.name).sample(every, min(60, len(every)))))
    assert len(chosen) > 3000
    return list(chosen)


@pytest.mark.parametrize("question", [*OF_BYTES, *OF_TEXT], ids=lambda question: question.__name__)
def test_masking_digits_changes_no_answer(question: Callable[[Any], Any], lines: list[bytes]) -> None:
    """On the lines of all samples, the question itself answers as it does for the masked line, digits apart."""
    is_of_text = question in OF_TEXT
    for line in lines:
        subject = line.decode("utf-8", "replace") if is_of_text else line
        answers = question(subject), question.__wrapped__(subject)  # type: ignore[attr-defined]
        first, second = (mask_digits(answer) if isinstance(answer, bytes) else answer for answer in answers)
        assert first == second, line
