"""triage.records.unread_ranks"""

from __future__ import annotations

import pytest

from triage.ranks.layouts import PLAIN
from triage.records.activity import read_activity
from triage.records.unread_ranks import find_last_activity, list_unread_ranks


@pytest.mark.parametrize(
    ("ranks", "unread"),
    [
        ({0, 1, 3, 4}, [2]),
        ({0, 1, 3}, []),  # one of four is missing: some launchers show the output of some ranks only
        ({8, 9, 11, 12}, [10]),
        (set(range(16)) - {2, 3, 5, 7}, []),
        (set(range(20)) - {2, 3, 5, 7}, [2, 3, 5, 7]),
        (set(range(16)), []),
        (set(range(0, 64, 8)), []),
        (set(), []),
        (set(range(500)) - set(range(100, 164)), list(range(100, 164))),
        (set(range(500)) - set(range(100, 165)), []),
    ],
)
def test_the_few_that_are_missing_between_others(ranks: set[int], unread: list[int]) -> None:
    """At most one for four others, and at most 64, count as unread; those below the lowest may be elsewhere."""
    assert list_unread_ranks(ranks) == unread


def find(text: str, ranks: list[int]) -> list[tuple[int | None, int | None]] | None:
    """Return (rank, step) of the last lines of ranks, where the last 200 bytes of the text are known."""
    data = text.encode()
    known = read_activity(data[-200:], len(data) - 200, 2026, by_prefix=True)
    last = find_last_activity(lambda start, length: data[start : start + length], len(data), ranks, known, 2026, PLAIN)
    return None if last is None else [(each.origin.rank, each.step) for each in last]


@pytest.mark.parametrize("form", ["[rank{}]: ", "{}: ", "[1,{}]<stdout>:"])
def test_their_last_lines_are_found_by_the_prefix_of_the_others(form: str) -> None:
    """Whatever the prefix is: the last line of each that wrote any, and none of the others."""
    steps = [form.format(rank) + f"step {step}" for step in range(40) for rank in range(40) if rank != 30]
    text = "\n".join([*(line for line in steps if not line.startswith(form.format(7))), form.format(7) + "step 3"])
    filling = [form.format(rank) + "step 41" for rank in range(20, 40) if rank != 30] * 3
    assert find("\n".join([text, *filling]) + "\n", [7, 30]) == [(7, 3)]


@pytest.mark.parametrize("form", ["2026-11-21 03:07:45,{:03} [rank{}]: ", "", "step of rank {} of {}: "])
def test_without_a_prefix_at_the_start_of_lines_nothing_is_known(form: str) -> None:
    """Where the lines of the others do not begin with their rank, a rank may have written some."""
    text = "".join(form.format(rank, rank) + f"step {step}\n" for step in range(40) for rank in range(8))
    assert find(text, [9]) is None
