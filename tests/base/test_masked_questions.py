"""Every question that is asked once for lines that differ in digits gets the answer that the line itself gets."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from triage.base.digit_masks import mask_digits
from triage.evidence import harmless_signs
from triage.evidence.endings import failure_terms, last_lines, logger_levels, shapes
from triage.ranks import file_prefixes, nesting
from triage.records import activity, completion, host_pairs, introductions, line_cuts, memberships, pairing_lines, text
from triage.records.text import Line

ROOT = Path(__file__).resolve().parents[2]
OF_BYTES: tuple[Callable[[bytes], Any], ...] = (
    activity._glance,
    completion.has_hint,
    host_pairs._hints_in,
    introductions.may_introduce,
    last_lines._counted_shape,
    last_lines._find_prefix,
    line_cuts.may_have_second_writer,
    nesting._look_at,
    memberships._may_say_it,
    pairing_lines._joins,
    shapes.is_stack,
    shapes.shape_of,
    text.is_one_line,
)
OF_TEXT: tuple[Callable[[str], Any], ...] = (
    activity.shows_progress,
    completion.has_hint_in_text,
    failure_terms._may_go_on,
    file_prefixes._look_at,
    harmless_signs._has_hint_of_sign,
    harmless_signs._may_show_a_run,
    harmless_signs._states_recovery,
    logger_levels._read_text_level,
    pairing_lines._names_part,
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


def test_a_quick_check_misses_nothing(lines: list[bytes]) -> None:
    """Each line that goes on, or is a sign that a failure ended nothing, passes the quick check before the patterns."""
    for line in lines:
        raw = line.decode("utf-8", "replace")
        parsed = Line(0, line, 2026).parsed
        if failure_terms._GOES_ON.search(parsed.text) is not None:
            assert failure_terms._may_go_on(parsed.text), line
        signs = (harmless_signs._shows_a_run, harmless_signs._is_progress, harmless_signs._states_recovery)
        if any(sign(parsed.text) for sign in signs):
            assert harmless_signs._may_be_sign(raw), line
