"""triage.records.unread_ranks"""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from triage.model import Origin
from triage.ranks.layouts import PLAIN, detect_layout
from triage.records.activity import SEARCHED_BYTES, Activity, read_activity
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
    """Return (rank, step) of the last lines of ranks, where the last 2000 bytes of the text are known."""
    data = text.encode()
    layout = detect_layout(data[-2000:])
    known = read_activity(data[-2000:], max(0, len(data) - 2000), 2026, layout, by_prefix=True)
    last = find_last_activity(lambda start, length: data[start : start + length], len(data), ranks, known, 2026, layout)
    return None if last is None else [(each.origin.rank, each.step) for each in last]


@pytest.mark.parametrize(
    "form",
    [
        "[rank{rank}]: {text}",
        "{rank}: {text}",
        "{rank:>3}: {text}",
        "[1,{rank}]<stdout>:{text}",
        "2026-11-21 03:07:45,123 [rank{rank}]: {text}",
        "INFO:trainer:[Rank {rank}] {text}",
        '{{"ts": "2026-11-21T03:07:45.123Z", "rank": {rank}, "msg": "{text}"}}',
    ],
)
def test_their_last_lines_are_found_by_what_stands_around_the_rank_of_the_others(form: str) -> None:
    """Wherever it stands in the line: the last line of each that wrote any, and none of the others."""

    def write(ranks: Iterable[int], steps: int) -> list[str]:
        return [form.format(rank=rank, text=f"step {step}") for step in range(steps) for rank in ranks]

    others = [rank for rank in range(40) if rank not in (7, 30)]
    lines = [*write(others, 40), form.format(rank=7, text="step 3"), *write(others[20:], 3)]
    assert find("\n".join(lines) + "\n", [7, 30]) == [(7, 3)]


def test_where_lines_do_not_show_their_rank_nothing_is_known() -> None:
    """Each rank may have written some."""
    assert find("".join(f"step {step}\n" for step in range(40)), [9]) is None


@pytest.mark.parametrize(("other", "is_known"), [("", True), ("p8 x ", False)])
def test_text_that_stands_before_other_numbers_too_is_no_mark(other: str, is_known: bool) -> None:
    """In a line of rank 0 the first number behind it is not the rank: a line with a number may be of any rank."""
    data = (other + "".join(f"p{rank} x\n" for rank in range(8))).encode()
    starts = {rank: data.index(b"p%d x" % rank) if rank else 0 for rank in range(8)}
    lines = [Activity(Origin(rank=rank), start, "", None, False) for rank, start in starts.items()]
    last = find_last_activity(lambda start, length: data[start : start + length], len(data), [9], lines, 2026, PLAIN)
    assert (last is not None) is is_known


@pytest.mark.parametrize(("others", "is_known"), [(5, True), (4, False)])
def test_a_few_others_must_show_their_rank_alike(others: int, is_known: bool) -> None:
    """Five ranks agree on the text around their number; four may do so by chance."""
    text = "".join(f"[rank{rank}]: step 1\n" for rank in range(others))
    assert (find(text, [9]) is not None) is is_known


@pytest.mark.parametrize(("filling", "is_known"), [(0, True), (SEARCHED_BYTES, False)])
def test_a_rank_without_a_line_may_have_written_before_what_is_searched(filling: int, is_known: bool) -> None:
    """Of a larger source, only its end is searched."""
    text = "x\n" * (filling // 2) + "".join(f"[rank{rank}]: step 1\n" for rank in range(8))
    assert (find(text, [9]) is not None) is is_known
