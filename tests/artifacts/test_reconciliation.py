"""What dumps and stacks conclude together."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from triage.artifacts.reconciliation import reconcile
from triage.evidence.inference import BLOCKED, make_inferences
from triage.model import Basis, Evidence, FlightDetail, Origin


def dump(rank: int, *, waits: bool) -> Evidence:
    return Evidence("flight", "flight-recorder", "x", Origin(rank=rank), "dump", 0, detail=FlightDetail(waits=waits))


def conclude(
    kind: str, rule: str, ranks: Iterable[int], basis: Basis = "measured", uncertainty: str = ""
) -> list[Evidence]:
    fact = Evidence(kind, "x", "x", Origin(), "file", 0)
    return make_inferences(rule, ranks, "x", fact, basis=basis, uncertainty=uncertainty)


def named(facts: Iterable[Evidence]) -> set[tuple[str, int | None]]:
    """Return rule and rank of the conclusions that stand, without those that only say who waits."""
    return {(one.fields["rule"], one.origin.rank) for one in facts if one.fields.get("rule") not in (None, BLOCKED)}


DUMPS = [dump(rank, waits=True) for rank in range(4)]


@pytest.mark.parametrize(
    ("dumps", "uncertainty", "stands"),
    [
        ([*DUMPS, *conclude("flight", "divergent-call", [3])], "other groups", False),
        ([*DUMPS, *conclude("flight", "divergent-call", [1, 3])], "other groups", True),  # they agree on it
        ([*DUMPS, *conclude("flight", "divergent-call", [3], "absence")], "other groups", True),
        ([*DUMPS, *conclude("flight", "divergent-call", [3])], "", True),
        ([*DUMPS[2:], *conclude("flight", "divergent-call", [3])], "other groups", True),  # no dump of rank 1
        (DUMPS, "other groups", True),
    ],
)
def test_certain_dumps_win_over_uncertain_stacks(dumps: list[Evidence], uncertainty: str, *, stands: bool) -> None:
    """Stacks that allow another story say nothing of a rank whose dump shows that another one is at fault."""
    stacks = conclude("stack", "divergent-call", [1], uncertainty=uncertainty)
    assert (("divergent-call", 1) in named(reconcile(dumps, stacks))) == stands


@pytest.mark.parametrize(("stacks", "stand"), [([1], True), ([1, 2], False), ([1, 9], True)])
def test_a_conclusion_of_stacks_stands_or_falls_as_a_whole(stacks: list[int], *, stand: bool) -> None:
    """The dumps blame rank 1 alone: stacks that name rank 2 beside it say nothing; rank 9 has no dump."""
    dumps = [*DUMPS, *conclude("flight", "divergent-call", [1])]
    others = conclude("stack", "divergent-call", stacks, uncertainty="other groups")
    assert reconcile(dumps, others) == [*dumps, *(others if stand else [])]


@pytest.mark.parametrize(
    ("basis", "blocked", "stands"),
    [
        ("absence", (0, 1, 2, 3), False),
        ("absence", (0, 1, 2), True),  # rank 3 stands outside of calls
        ("measured", (0, 1, 2, 3), True),
    ],
)
def test_ranks_in_calls_that_no_dump_records(basis: Basis, blocked: tuple[int, ...], *, stands: bool) -> None:
    """A rank alone in a call made none too many where the stacks show the others in calls that Gloo does not record."""
    dumps = [*(dump(rank, waits=not rank) for rank in range(4)), *conclude("flight", "extra-collective", [0], basis)]
    assert bool(named(reconcile(dumps, conclude("stack", BLOCKED, blocked)))) == stands
