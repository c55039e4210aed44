"""triage.diagnose.headline"""

from __future__ import annotations

from typing import Literal

import pytest

from tests.diagnose.factories import exited, fact, raised
from triage.diagnose.headline import choose_headline, describe_exits, has_no_message
from triage.model import EndingDetail, Evidence, ExitDetail


def ended(text: str, strength: Literal["strong", "weak"], time: float | None = None) -> Evidence:
    """Return a line that says that something ended."""
    return fact(text, 0, kind="ending", time=time, detail=EndingDetail("headline", "python", strength))


@pytest.mark.parametrize(
    ("exits", "sentence"),
    [
        ([exited(3, 74)], "Rank 3 ended with exit code 74"),
        ([exited(3, 74), exited(1, 74)], "Ranks 1, 3 ended with exit code 74"),
        ([exited(3, -9, signal="SIGKILL")], "Rank 3 was ended by SIGKILL"),
        ([exited(3, -9, signal="SIGKILL"), exited(4, 1)], "Ranks 3-4 were ended by SIGKILL"),
        ([exited(None, 1)], "A process ended with exit code 1"),
        ([fact("gone", 3, kind="exit", detail=ExitDetail(None))], "Rank 3 ended"),
    ],
)
def test_ends_are_described(exits: list[Evidence], sentence: str) -> None:
    """By the signal, else the exit code, of the ranks in order."""
    assert describe_exits(exits) == sentence
    assert choose_headline(exits) == sentence


def test_a_message_is_more_telling_than_an_end() -> None:
    """Then a line that is no wrapper, a strong form, and the earliest; a line without a time comes last."""
    error = raised("ValueError: x", 0, time=9.0)
    assert choose_headline([exited(0, 1, time=1.0), error]) == "ValueError: x"
    assert choose_headline([fact("crashed", 0, kind="crash", time=1.0), error]) == "ValueError: x"
    assert choose_headline([ended("weak one", "weak", 1.0), ended("strong one", "strong", 9.0)]) == "strong one"
    assert choose_headline([fact("late", 0, time=9.0), fact("early", 0, time=1.0)]) == "early"
    assert choose_headline([fact("no time", 0), fact("late", 0, time=9.0)]) == "late"
    wrapper = raised("ChildFailedError: a", 0, time=1.0)
    assert choose_headline([wrapper, error]) == "ValueError: x"
    assert choose_headline([exited(0, 1), wrapper]) == "ChildFailedError: a"


def test_a_headline_is_one_line_of_at_most_200_characters() -> None:
    """The first of the text."""
    assert choose_headline([raised("ValueError: x\n  at a", 0)]) == "ValueError: x"
    assert choose_headline([raised("ValueError: " + "x" * 300, 0)]) == "ValueError: " + "x" * 188


def test_an_end_with_other_facts_is_not_described_as_an_end() -> None:
    """Only ends and lines of an end are; and lines of an end alone are no end of a process."""
    assert choose_headline([exited(0, 1), ended("gave up", "strong")]) == "Rank 0 ended with exit code 1"
    assert choose_headline([ended("gave up", "strong")]) == "gave up"
    assert choose_headline([exited(0, 1), fact("loss is NaN", 0)]) == "loss is NaN"


@pytest.mark.parametrize(("kind", "expected"), [("exit", True), ("crash", True), ("core", True), ("message", False)])
def test_some_facts_have_no_message(kind: str, expected: bool) -> None:
    """They say that a process ended, not why."""
    assert has_no_message(fact("x", 0, kind=kind)) is expected


@pytest.mark.parametrize(
    ("text", "code", "headline"),
    [
        ("AssertionError", "assert n <= most", "AssertionError at: assert n <= most"),
        ("AssertionError:", "assert n <= most", "AssertionError at: assert n <= most"),
        ("StopIteration", "", "StopIteration"),
        ("AssertionError: too many", "assert n <= most", "AssertionError: too many"),
    ],
)
def test_an_exception_without_a_message_is_shown_with_its_line_of_code(text: str, code: str, headline: str) -> None:
    """A bare assertion says what did not hold; a message says it better."""
    assert choose_headline([raised(text, 0, code=code) if code else raised(text, 0)]) == headline
