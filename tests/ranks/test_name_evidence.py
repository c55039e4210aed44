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
