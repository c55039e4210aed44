"""triage.ranks.name_evidence"""

from __future__ import annotations

import pytest

from triage.ranks.name_evidence import NameEvidence


@pytest.mark.parametrize(
    ("named", "doubtful"),
    [
        ((2, 3, 4, 5), set()),  # with the lines of 0 and 1, no rank is missing
        ((2, 3, 5), {"exp_rank5.log"}),
        ((3, 4), {"exp_rank3.log", "exp_rank4.log"}),
        ((0, 1), set()),
    ],
)
def test_a_name_beyond_the_world_needs_its_siblings(named: tuple[int, ...], doubtful: set[str]) -> None:
    """A rank of a name at or beyond the world's size is believed only if names or lines give every rank below it."""
    names = NameEvidence()
    for rank in (0, 1):
        names.add("console.log", None, [("rank", None, rank)])
    for rank in named:
        names.add(f"exp_rank{rank}.log", rank, [])
    assert names.find_doubtful([2], {}) == doubtful


@pytest.mark.parametrize(
    ("source", "rank", "of_lines", "is_doubtful"),
    [
        ("exp_rank8.log", 8, {0}, True),  # named after an experiment
        ("rank_8.log", 8, {0}, False),  # a single other rank in it changes nothing
        ("rank_8.log", 8, {8, 0}, True),
        ("rank_8.log", 8, {8}, False),
        ("rank_8.log", 8, set(), False),
        ("exp_rank1.log", 1, {3}, False),  # lines of a higher rank do not refute it
        ("exp_rank1.log", 1, {3, 4, 5}, True),  # lines of three others do
    ],
)
def test_lines_refute_a_name(source: str, rank: int, of_lines: set[int], is_doubtful: bool) -> None:
    """Of a file with lines of several ranks, or of lower ones where the name may be that of something else."""
    names = NameEvidence()
    names.add(source, rank, [])
    assert names.find_doubtful((), {source: of_lines}) == ({source} if is_doubtful else set())


def test_a_larger_family_of_names_is_believed() -> None:
    """Three files that count up are named after their ranks, whatever one of them holds."""
    names = NameEvidence()
    for rank in range(3):
        names.add(f"exp_rank{rank}.log", rank, [])
    assert names.find_doubtful((), {"exp_rank2.log": {0}}) == set()
    pair = NameEvidence()
    for rank in range(2):
        pair.add(f"exp_rank{rank}.log", rank, [])
    assert pair.find_doubtful((), {"exp_rank1.log": {0}}) == {"exp_rank1.log"}


def test_what_only_a_doubtful_name_joins_is_taken_back() -> None:
    """Not what lines or other names join too; hosts by their new names."""
    names = NameEvidence()
    pid, host, local = ("pid", 412, 9), ("host", "pod-0", 9), ("local", ("pod-0", 1), 9)
    names.add("exp_rank9.log", 9, [pid, host, local, ("pid", 413, 9)])
    names.add("job.log", None, [pid, ("rank", None, 0), ("rank", None, 1)])
    names.rename_hosts(lambda name: "n1" if name == "pod-0" else name)
    assert names.find_doubtful([2], {}) == {"exp_rank9.log"}
    assert list(names.take_back()) == [("host", "n1", 9), ("local", ("n1", 1), 9), ("pid", 413, 9)]
