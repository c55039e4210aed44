"""triage.ranks.habits"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triage.ranks.grammars import BY_START, GRAMMARS
from triage.ranks.habits import HABITS, UNLABELLED, Habit, table_of
from triage.ranks.prefix import parse


@pytest.mark.parametrize("habit", HABITS, ids=lambda habit: habit.grammar.name)
def test_a_habit_is_told_from_its_sample(habit: Habit) -> None:
    """The lines of its sample have it as their outermost layer, and what is left is what was written."""
    lines = habit.grammar.example.split("\n")
    found = table_of(lines)
    for line in lines:
        parsed = parse(line, 2026, found)
        assert parsed.layers[0] == habit.grammar.name
        assert parsed.text in ("step 3", "  File")


def test_names_are_unique_among_all_layouts() -> None:
    """A layer is known by its name."""
    names = [grammar.name for grammar in (*GRAMMARS, *(habit.grammar for habit in HABITS))]
    assert len(set(names)) == len(names)


ORDINARY = [
    ["loading: a", "saving: b", "epoch3: c", "epoch3: d", "epoch3: e", "epoch3: f"],
    ["gpu0: 61 C", "gpu1: 60 C", "gpu0: 62 C", "gpu1: 61 C"],
    [f"{number}: a line of a listing" for number in range(1, 40)],
    [f"[{number}] reference" for number in range(4)],
    ["the quick brown fox", "the quick red fox", "the quick brown dog", "the quick red dog"],
    [f"[INFO] HCCL(510{n},python3):2026-03-07-19:00:40.120.118 [x.cc:18][5108] body" for n in range(6)],
    [f"[rank3]:[E1121 02:38:00.123456789 ProcessGroupNCCL.cpp:607] [Rank 3] Watchdog {n}" for n in range(6)],
    ["name  | a", "size  | b", "depth | c", "width | d", "heads | e"],
]


@pytest.mark.parametrize("lines", ORDINARY, ids=lambda lines: lines[0][:30])
def test_text_that_looks_like_a_prefix_is_text(lines: list[str]) -> None:
    """Words, counters, listings and threads are no hosts and no ranks."""
    assert table_of(lines) in (BY_START, UNLABELLED)


def test_an_item_of_a_list_is_no_label() -> None:
    """In a file whose lines have no labels, `0: ` is text; where many have it, and in a few lines, it is srun's."""
    ordinary = [f"step {step}" for step in range(40)]
    assert parse("0: a list", 2026, table_of([*ordinary, "0: a list"])).origin.rank is None
    assert (
        parse("0: step 3", 2026, table_of([*ordinary[:10], *(f"{rank}: step 3" for rank in (0, 1, 1, 0))])).origin.rank
        == 0
    )
    assert parse("0: step 3", 2026, table_of(["0: step 3"])).origin.rank == 0


def test_a_few_lines_are_no_habit() -> None:
    """Three lines say nothing of a file."""
    assert table_of(["node1: a", "node1: b", "node1: c"]) is BY_START


def test_a_line_without_the_habit_is_read_as_elsewhere() -> None:
    """The launcher's own lines have no label."""
    found = table_of([f"{rank}: step {step}" for step in range(4) for rank in range(4)])
    assert parse("[rank3]: boom", 2026, found).origin.rank == 3
    assert parse("RuntimeError: boom", 2026, found).text == "RuntimeError: boom"
    assert parse("3:   File", 2026, found).text == "  File"


@given(st.lists(st.text(max_size=40), max_size=30))
def test_any_lines_are_taken(lines: list[str]) -> None:
    """Whatever a file holds, a table comes out that reads each of its lines."""
    found = table_of(lines)
    for line in lines:
        assert line.endswith(parse(line, 2026, found).text) or "across cluster" in line
