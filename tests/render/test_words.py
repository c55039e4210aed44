from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triage.model.diagnosis import RankState
from triage.render import words

from .samples import CAUSE, CLEAN, ECHO, KNOWN, LOST, NOISE, SECOND_ECHO, SYMPTOMS, UNKNOWN_ROOT


@pytest.mark.parametrize(
    ("diagnosis", "kind"),
    [(KNOWN, "ROOT CAUSE"), (UNKNOWN_ROOT, "UNKNOWN FAILURE"), (SYMPTOMS, "SYMPTOMS ONLY"), (CLEAN, "CLEAN")],
)
def test_each_verdict_has_its_word(diagnosis: object, kind: str) -> None:
    """Symptoms and an unknown failure are told apart although both have the verdict unknown."""
    assert words.kind(diagnosis) == kind  # type: ignore[arg-type]


def test_findings_are_sorted_under_their_headings() -> None:
    """What the root explains through another finding counts as caused; the root itself is under none."""
    groups = words.groups(KNOWN)
    assert groups.caused == [ECHO, SECOND_ECHO]
    assert groups.considered == [LOST]
    assert groups.noise == [NOISE]
    assert CAUSE not in groups.caused + groups.considered


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0.9, "high (0.9)"),
        (0.8, "high (0.8)"),
        (0.55, "medium (0.55)"),
        (0.3, "low (0.3)"),
        (1.0, "high (1)"),
        (0.0, "low (0)"),
    ],
)
def test_confidence_in_words(value: float, said: str) -> None:
    """The words change at 0.8 and 0.5."""
    assert words.confidence(value) == said


@given(st.sets(st.integers(0, 30)))
def test_rank_ranges_name_exactly_the_ranks(ranks: set[int]) -> None:
    """Reading the ranges back gives the ranks."""
    said = words.rank_list(ranks)
    if "more" in said:
        return
    read: set[int] = set()
    for span in said.split(", ") if said else []:
        low, _, high = span.partition("-")
        read |= set(range(int(low), int(high or low) + 1))
    assert read == ranks


def test_many_ranges_are_counted() -> None:
    """A thousand scattered ranks do not fill the screen."""
    assert words.rank_list(range(0, 1000, 2)).endswith("and 488 more ranges")


@pytest.mark.parametrize(
    ("count", "said"),
    [(0, "0 bytes"), (999, "999 bytes"), (3_100_000, "3.1 MB"), (999_999, "1.0 MB"), (10**15, "1000.0 TB")],
)
def test_sizes(count: int, said: str) -> None:
    """Decimal units with one digit."""
    assert words.size(count) == said


def test_the_grid_joins_equal_lines() -> None:
    """A thousand healthy ranks around one failed rank take three lines."""
    states = [RankState(rank, None, "failed" if rank == 512 else "ok") for rank in range(1024)]
    grid = words.rank_grid(states, 64)
    assert [(line.first, line.last) for line in grid] == [(0, 511), (512, 575), (576, 1023)]
    assert grid[1].marks == "F" + "." * 63


def test_a_grid_of_far_ranks_is_small() -> None:
    """Two ranks far apart take two lines, whatever lies between."""
    assert len(words.rank_grid([RankState(0, None, "ok"), RankState(10**9, None, "ok")], 64)) == 2


@given(st.lists(st.integers(0, 500), unique=True))
def test_every_rank_has_its_mark(ranks: list[int]) -> None:
    """The marks of all lines, repeated as often as they stand for, are as many as the ranks."""
    grid = words.rank_grid([RankState(rank, None, "stalled") for rank in ranks], 64)
    marks = sum(line.marks.count("S") * ((line.last - line.first + 1) // max(len(line.marks), 1)) for line in grid)
    assert marks == len(ranks)


def test_clock_says_the_day_when_the_job_has_several() -> None:
    """The date is left out only when the whole job is on one day."""
    assert words.clock(KNOWN.job.first_time, KNOWN) == "03:00:00"
    assert words.clock(0.0, KNOWN) == "1970-01-01 00:00:00"
    assert words.clock(1e300, KNOWN) == ""


def test_the_line_of_the_rank_where_it_began_stands_apart() -> None:
    """Where all ranks hang, the one that is to blame can be found without colour."""
    states = [RankState(rank, None, "stalled") for rank in range(512)]
    grid = words.rank_grid(states, 64, [170])
    assert [(line.first, line.last) for line in grid] == [(0, 127), (128, 191), (192, 511)]
    assert [words.began_here(line, [170], 20) for line in grid] == ["", "  < 170", ""]
    assert words.began_here(grid[1], range(128, 190, 2), 20) == "  <"
