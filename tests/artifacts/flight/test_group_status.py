"""How far each rank is in each group, by pg_status."""

from __future__ import annotations

from triage.artifacts.flight.group_status import StatusOfRank, join_status
from triage.artifacts.flight.model import Group, GroupStatus

GROUP = Group("5", "dp", (0, 1, 2), True)
IDLE = {"1": (4, 4, 4), "2": (9, 9, 9)}


def test_rank_without_an_entry_has_the_usual_number() -> None:
    """A rank that has no entry of a group has its status by the pg_id that all other ranks use, if they agree."""
    first, third = StatusOfRank(0, {"1": (7, 7, 6)}, {"1": 0}), StatusOfRank(2, IDLE, {})
    agreed = join_status([GROUP], [first, StatusOfRank(1, {"1": (6, 6, 6)}, {"1": 0}), third])
    assert agreed == {(0, 0): GroupStatus(7, 7, 6), (1, 0): GroupStatus(6, 6, 6), (2, 0): GroupStatus(4, 4, 4)}
    doubtful = join_status([GROUP], [first, StatusOfRank(1, {"2": (6, 6, 6)}, {"2": 0}), third])
    assert doubtful == {(0, 0): GroupStatus(7, 7, 6), (1, 0): GroupStatus(6, 6, 6)}
