"""Tracebacks among physical lines: which lines belong to them, behind any prefix."""

from __future__ import annotations

import pytest

from triage.evidence.endings.printed_tracebacks import find_traceback_lines

TRACEBACK = ("Traceback (most recent call last):", '  File "a.py", line 3, in f', "    f()", "ValueError: lost")
TABLE = ("torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ", "=" * 60, "a.py FAILED", "=" * 60)


def indices(*lines: str) -> list[int]:
    return sorted(find_traceback_lines([line.encode() for line in lines]))


@pytest.mark.parametrize("prefix", ["node7: ", "Aug 18 22:59:09 [rank0]: ", '{"i": 7, "MESSAGE": "', "pod-0 main "])
def test_a_traceback_is_found_behind_any_prefix(prefix: str) -> None:
    """From its header to its exception, and neither the line before it nor the one behind."""
    assert indices("step 3", *(prefix + line for line in TRACEBACK), f"{prefix}step 4") == [1, 2, 3, 4]


def test_a_prefix_may_change_in_its_digits() -> None:
    """Each line has a time of its own."""
    assert indices(*(f"10:00:0{second}] {line}" for second, line in enumerate(TRACEBACK))) == [0, 1, 2, 3]


def test_lines_of_other_writers_in_between_do_not_belong_to_it() -> None:
    """Another prefix is another writer."""
    first, *others = (f"node7: {line}" for line in TRACEBACK)
    assert indices(first, "[pod] step 3", *others) == [0, 2, 3, 4]


def test_a_header_without_a_prefix_is_left_to_the_blanks_before_its_frames() -> None:
    """Such frames look like a stack line by line."""
    assert indices(*TRACEBACK) == []


def test_the_table_of_the_agent_belongs_to_its_traceback() -> None:
    """Up to its second rule; a rule behind any other exception does not."""
    header = TRACEBACK[:3]
    assert indices(*(f"pod: {line}" for line in (*header, *TABLE, "step 4"))) == [0, 1, 2, 3, 4, 5, 6]
    assert indices(*(f"pod: {line}" for line in (*TRACEBACK, *TABLE[1:]))) == [0, 1, 2, 3]
