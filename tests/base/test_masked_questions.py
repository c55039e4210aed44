"""Every question that is asked once for lines that differ in digits gets the answer that the line itself gets."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any

import pytest

from tests.effort import choose_some
from triage.base.digit_masks import mask_digits
from triage.compare import log_steps, quantities
from triage.evidence import harmless_signs, learn_job, provoked
from triage.evidence.endings import classification, last_lines, logger_levels, shapes
from triage.evidence.endings.interface import LONGEST_LINE
from triage.ranks import file_prefixes, nesting, stated_ranks
from triage.records import (
    activity,
    completion,
    host_order_lines,
    host_pairs,
    introductions,
    line_cuts,
    memberships,
    pairing_lines,
    text,
)
from triage.records.text import Line

ROOT = Path(__file__).resolve().parents[2]
OF_BYTES: tuple[Callable[[bytes], Any], ...] = (
    activity._glance,
    completion.has_hint,
    host_order_lines._may_have_command,
    host_pairs._hints_in,
    introductions.may_introduce,
    last_lines._find_prefix,
    last_lines._has_hint,
    learn_job._may_state,
    line_cuts.may_have_second_writer,
    nesting._look_at,
    last_lines._read_form,
    last_lines._read_form_without_prefix,
    memberships._may_say_it,
    pairing_lines._joins,
    provoked._may_inject,
    shapes.is_stack,
    shapes.shape_of,
    text.is_one_line,
)
OF_TEXT: tuple[Callable[[str], Any], ...] = (
    activity._may_state_action,
    activity.shows_progress,
    completion.has_hint_in_text,
    file_prefixes._look_at,
    harmless_signs._states_recovery,
    learn_job._look_at_fact,
    log_steps._find_step,
    logger_levels._read_text_level,
    pairing_lines._names_part,
    stated_ranks._may_state_ranks,
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
        first, second = map(_mask_answer, answers)
        assert first == second, line


def _mask_answer(answer: Any) -> Any:
    """Return an answer in which digits do not count."""
    if isinstance(answer, last_lines._Form):
        return replace(answer, shape=mask_digits(answer.shape))
    return mask_digits(answer) if isinstance(answer, bytes) else answer


@pytest.mark.parametrize("memory", [False, True])
def test_masking_digits_moves_no_value(memory: bool, lines: list[bytes]) -> None:
    """Values stand at the places found on the mask, in the lines of all samples and where a name has a digit."""
    subjects = [line.decode("utf-8", "replace")[:2000] for line in lines]
    subjects += ["grad_sha256 = 0x12ab", "sha1: 12ab34cd56", "param l2: 1.5", "param l1: 1.5", "checksum 0X12ab"]
    for subject in subjects:
        assert quantities._find_values(subject, memory) == quantities._find_in_text(subject, memory), subject
        line = subject.encode("utf-8", "replace")
        exact = quantities.quantity_pattern(memory).search(line) is not None
        assert quantities._may_have_quantity(line, memory) == exact, subject


def test_a_known_mask_changes_no_parsed_line(lines: list[bytes]) -> None:
    """A line is parsed alike whether its mask is known or not, also where decoding changes its length."""
    for data in [*lines, b"\x1b[31m[rank3]: a\x1b[0m", b"[rank\x003]: a", b"[rank3]: \xff", "[rank3]: é".encode()]:
        known, unknown = Line(0, data, 2026, mask=mask_digits(data)), Line(0, data, 2026)
        assert known.mask == unknown.mask
        assert astuple(known.parsed) == astuple(unknown.parsed)
        assert known.mask == unknown.mask


def test_digits_that_no_pattern_of_endings_tells_apart_change_no_form(lines: list[bytes]) -> None:
    """A line whose digits from 2 to 8 are read as 1 has the same form: only zero, and the 9 of `.f90`, decide."""
    extra = [b"exit code %d" % code for code in range(12)] + [b"failure in solver.f90:%d" % line for line in (2, 90)]
    for line in (*choose_some(lines, len(lines) // 3, "endings"), *extra):
        text = Line(0, line, 2026).parsed.text
        for level in ("", "low", "error"):
            whole = text[:LONGEST_LINE]
            assert classification.classify(text, level) == classification._classify_alike.__wrapped__(whole, level), (
                line
            )


def test_a_quick_check_misses_nothing(lines: list[bytes]) -> None:
    """Each line that is a sign that a failure ended nothing passes the quick check before the patterns."""
    for line in lines:
        parsed = Line(0, line, 2026).parsed
        glance = harmless_signs._glance_at(Line(0, line, 2026))
        read = parsed.text[: harmless_signs._LONGEST]
        assert glance.may_show_a_run or harmless_signs._RUNS.search(read) is None, line
        assert glance.states_recovery == harmless_signs._states_recovery(read), line
        assert glance.may_be_progress or not harmless_signs._is_progress(read), line
