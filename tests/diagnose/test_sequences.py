"""Reasoning over the numbers that watchdogs print."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given, strategies as st

from triage.diagnose import sequences
from triage.model.evidence import Evidence, Origin

OLD = (
    "[PG 0 (default_pg) Rank {local}] Exception (either an error or timeout) detected by watchdog at work: 9, "
    "last enqueued NCCL work: {e}, last completed NCCL work: {c}."
)
NEW = (
    "[PG ID 0 PG GUID 0(default_pg) Rank {local}]  failure detected by watchdog at work sequence id: 9 PG "
    "status: last enqueued work: {e}, last completed work: {c}"
)

DUMP = (
    "[PG ID 0 PG GUID 0(default_pg) Rank {local}] Received a dump signal due to a collective timeout from  rank "
    "1 and we will try our best to dump the "
    "debug info. Last enqueued NCCL work: {e}, last completed NCCL work: {c}.This is most likely caused by "
    "incorrect usages of collectives"
)


def facts(progress: Mapping[int, tuple[int, int]], form: str = NEW) -> list[Evidence]:
    """The line of each rank for (enqueued, completed)."""
    return [
        Evidence(
            "message",
            "c10d",
            form.format(local=0, e=enqueued, c=completed),
            Origin(rank=rank),
            f"rank_{rank}.log",
            rank,
        )
        for rank, (enqueued, completed) in progress.items()
    ]


def conclude(
    progress: Mapping[int, tuple[int, int]], world_size: int = 4, form: str = NEW
) -> tuple[str, frozenset[int]] | None:
    conclusion = sequences.compare_progress(facts(progress, form), frozenset(range(world_size)))
    return (conclusion.rule, conclusion.ranks) if conclusion else None


def test_the_rank_behind_the_majority_lags() -> None:
    """Three ranks at 100 and one at 98: that one stopped."""
    assert conclude({0: (100, 99), 1: (100, 99), 2: (98, 97), 3: (100, 99)}) == ("lagging-rank", frozenset({2}))


def test_the_rank_ahead_of_the_majority_has_one_too_many() -> None:
    """Three ranks at 100 and one at 101: the innocent look late, the one ahead issued an extra collective."""
    assert conclude({0: (101, 99), 1: (100, 99), 2: (100, 99), 3: (100, 99)}, form=OLD) == (
        "extra-collective",
        frozenset({0}),
    )


def test_all_at_the_same_place_is_no_bad_rank() -> None:
    """All wait in the same work: the transfer hangs. All completed everything: they hang elsewhere."""
    assert conclude(dict.fromkeys(range(4), (100, 99))) == ("stuck-in-collective", frozenset(range(4)))
    assert conclude(dict.fromkeys(range(4), (100, 100))) == ("outside-collectives", frozenset(range(4)))
    assert conclude(dict.fromkeys(range(4), (-1, -1))) == ("outside-collectives", frozenset(range(4)))


def test_the_numbers_of_a_dump_signal_count_as_well() -> None:
    """A rank that hangs elsewhere times out in nothing, but says how far it had come when the others ask for a dump."""
    assert conclude(dict.fromkeys(range(4), (512, 512)), form=DUMP) == ("outside-collectives", frozenset(range(4)))
    assert conclude({0: (512, 511), 1: (512, 511), 2: (510, 510), 3: (512, 511)}, form=DUMP) == (
        "lagging-rank",
        frozenset({2}),
    )


def test_nothing_is_said_without_a_majority_or_with_ranks_missing() -> None:
    """Two against two, a single report, or a rank that did not report: no conclusion."""
    assert conclude({0: (100, 99), 1: (100, 99), 2: (98, 97), 3: (98, 97)}) is None
    assert conclude({0: (100, 99)}) is None
    assert conclude(dict.fromkeys(range(3), (100, 99))) is None


def test_of_two_ranks_at_different_places_both_are_named() -> None:
    """A world of two has no majority; of a larger world two reports are too few."""
    assert conclude({0: (100, 99), 1: (98, 97)}, 2) == ("lagging-rank", frozenset({0, 1}))
    assert conclude({0: (100, 99), 1: (98, 97)}, 3) is None


@pytest.mark.parametrize(
    ("first", "second", "is_same"),
    [
        ("[PG 1 (undefined) Rank 0] x", "[PG 2 (undefined) Rank 1] x", False),
        ("[PG 1 (dp) Rank 0] x", "[PG 2 (dp) Rank 1] x", False),
        ("[PG 1 (dp) Rank 0] x", "[PG 1 (dp) Rank 1] x", True),
        ("[PG ID 1 PG GUID 5(dp) Rank 0] x", "[PG ID 3 PG GUID 5(dp) Rank 1] x", True),
        ("[PG 1 Rank 0] x", "[PG 2 Rank 0] x", False),
    ],
)
def test_the_key_of_a_group_has_what_is_equal_on_all_ranks(first: str, second: str, *, is_same: bool) -> None:
    """The GUID and the description; where there is no GUID, the number, which a group without description needs."""
    assert (sequences.group_of(first)[0] == sequences.group_of(second)[0]) == is_same


def test_uninitialised_numbers_are_not_known() -> None:
    """What torch 2.3 prints before anything completed is no number."""
    assert conclude({0: (100, 76280750235782912), 1: (100, 99)}, 2) is None


def test_groups_are_not_mixed() -> None:
    """Numbers of two groups are counted apart."""
    one = facts({0: (100, 99), 1: (100, 99)})
    two = [
        Evidence(
            "message",
            "c10d",
            NEW.replace("default_pg", "tp").format(local=0, e=7, c=6),
            Origin(rank=rank),
            "x",
            9 + rank,
        )
        for rank in (0, 1)
    ]
    assert [len(ranks) for ranks in sequences.progress_by_group([*one, *two]).values()] == [2, 2]


@given(st.dictionaries(st.integers(0, 7), st.tuples(st.integers(-1, 5), st.integers(-1, 5)), max_size=8), st.randoms())
def test_the_order_of_the_lines_does_not_matter(progress: dict[int, tuple[int, int]], random: object) -> None:
    """The same reports in any order give the same conclusion, and only reporting ranks are named."""
    shuffled = facts(progress)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    conclusion, again = (
        sequences.compare_progress(lines, frozenset(range(8))) for lines in (facts(progress), shuffled)
    )
    assert (conclusion and (conclusion.rule, conclusion.ranks, conclusion.text)) == (
        again and (again.rule, again.ranks, again.text)
    )
    assert conclusion is None or conclusion.ranks <= set(progress)


def test_an_unused_group_does_not_hide_a_pending_collective() -> None:
    """A group that never worked shows -1 on all ranks; the default group waits in a collective."""
    unused = "[PG ID 3 PG GUID 9(aux) Rank {local}] Last enqueued NCCL work: {e}, last completed NCCL work: {c}."
    idle = dict.fromkeys(range(4), (-1, -1))
    pending = dict.fromkeys(range(4), (512, 511))
    for first, second in (((idle, unused), (pending, NEW)), ((pending, NEW), (idle, unused))):
        conclusion = sequences.compare_progress([*facts(*first), *facts(*second)], frozenset(range(4)))
        assert conclusion is not None
        assert conclusion.rule == "stuck-in-collective"
    conclusion = sequences.compare_progress(facts(idle, unused), frozenset(range(4)))
    assert conclusion is not None
    assert conclusion.rule == "outside-collectives"
