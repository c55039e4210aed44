"""triage.records.pytests"""

from __future__ import annotations

import pytest

from tests.records.factories import text_of
from triage.records.pytests import failure_lines, failure_reasons, opens_summary, section_name
from triage.records.text import Line

OPENS = "=========================== short test summary info ============================"


def lines_of(*texts: str) -> list[Line]:
    """Return lines of one source."""
    text = text_of("\n".join(texts) + "\n")
    return list(text.lines_from(0, text.size))


def reasons_of(*texts: str) -> dict[str, list[str]]:
    """Return the reasons in the lines above a summary."""
    reasons = failure_reasons(reversed(lines_of(*texts)))
    return {name: [line.raw for line in lines] for name, lines in reasons.items()}


@pytest.mark.parametrize(
    ("line", "opens"), [(OPENS, True), ("see the short test summary info", False), ("==== FAILURES ====", False)]
)
def test_the_line_that_opens_the_summary(line: str, opens: bool) -> None:
    """Only the whole line of pytest."""
    assert opens_summary(lines_of(line)[0]) is opens


def test_failures_are_the_lines_up_to_the_end() -> None:
    """Lines that name a failed test, not those between, nor those behind the last line of pytest."""
    failed = ["FAILED tests/test_a.py::test_one - ValueError: x", "ERROR tests/test_b.py"]
    lines = lines_of(failed[0], "rank 3 is done", failed[1], "=== 1 failed in 0.1s ===", failed[0])
    assert [line.raw for line in failure_lines(lines)] == failed


@pytest.mark.parametrize(("count", "most"), [(1000, 1000), (1001, 1000)])
def test_at_most_1000_failures_are_read(count: int, most: int) -> None:
    """The first ones."""
    lines = lines_of(*(f"FAILED tests/test_a.py::test_{number}" for number in range(count)))
    assert len(failure_lines(lines)) == most


def test_a_reason_has_the_code_above_and_the_place_below() -> None:
    """The last exception of each section; one further up was handled, and other code is left out."""
    first = [
        ">       assert pick([]) == 1",
        "E       assert 2 == 1",
        "E        +  where 2 = pick([])",
        "a.py:7: AssertionError",
    ]
    second = ["E   ValueError: x"]
    above = ["_____ test_one _____", "E   KeyError: 1", "    def test_one():"]
    assert reasons_of(*above, *first, "___ ERROR at setup of test_two[a] ___", "    raise ValueError", *second) == {
        "test_one": first,
        "test_two[a]": second,
    }


def test_a_section_without_an_exception_has_an_empty_reason() -> None:
    """A test that only says where it failed has its place, and one without that has nothing."""
    assert reasons_of("____ test_a ____", "lost", "____ test_b ____", "x", "a.py:3: Failed") == {
        "test_a": [],
        "test_b": ["a.py:3: Failed"],
    }


def test_of_equal_sections_the_last_counts() -> None:
    """A run that was repeated in the same log has its own sections."""
    assert reasons_of("____ test_a ____", "E   A", "____ test_a ____", "E   B") == {"test_a": ["E   B"]}


def test_a_frame_is_no_place() -> None:
    """Only the line below the exception names the place; `b.py:3: in f` is a frame, and a place above is another's."""
    assert reasons_of("____ test_a ____", "E   A", "b.py:3: in f") == {"test_a": ["E   A"]}
    assert reasons_of("____ test_a ____", "b.py:3: Failed", "a.py:4: Failed") == {"test_a": ["a.py:4: Failed"]}


@pytest.mark.parametrize(
    ("failure", "section"),
    [
        ("FAILED tests/test_a.py::TestPick::test_one[1] - ValueError: x", "TestPick.test_one[1]"),
        ("FAILED tests/test_a.py::test_one", "test_one"),
        ("ERROR tests/test_a.py", "tests/test_a.py"),
        ("passed", ""),
    ],
)
def test_a_failure_names_its_section(failure: str, section: str) -> None:
    """Classes are separated by dots; a file that cannot be imported is its own section."""
    assert section_name(failure) == section
