"""triage.diagnose.graph"""

from __future__ import annotations

import pytest

from tests.diagnose.factories import candidate, fact
from triage.catalog.model import CausalEdge
from triage.diagnose.candidates import Candidate
from triage.diagnose.graph import edge_holds, root_tier
from triage.evidence.inference import make_inferences
from triage.model.diagnosis import Role


@pytest.mark.parametrize(
    ("name", "role", "stated", "by_absence"),
    [
        ("a.one", "cause", 1, 3),
        ("a.one", "either", 2, 3),
        ("a.one", "symptom", None, None),
        ("a.one", "noise", None, None),
        ("data.worker-killed", "symptom", 3, 3),
        ("slurm.cancelled", "cause", 4, 4),
    ],
)
def test_the_tier_of_a_root_follows_from_its_role(
    name: str, role: Role, stated: int | None, by_absence: int | None
) -> None:
    """A line that states it is stronger than an inference; a stop from outside is the last choice."""
    one = candidate(name, role, [0])
    inferences = make_inferences("a-rule", [0], "x", fact("x"), basis="absence")
    assert root_tier(one) == stated
    assert root_tier(Candidate(one.signature, None, inferences)) == by_absence


@pytest.mark.parametrize(
    ("causing", "affected", "holds"),
    [([0], [0], False), ([0], [1], True), ([0, 1], [0], False), ([0, 1], [0, 1], True), ([0, 1], [], True)],
)
def test_an_effect_on_other_ranks_needs_another_rank(causing: list[int], affected: list[int], *, holds: bool) -> None:
    """Of two ranks that show both, each may have affected the other; one rank alone is no other rank."""
    cause, effect = candidate("a.one", "cause", causing), candidate("b.two", "symptom", affected)
    assert edge_holds(CausalEdge("b.two", "other-ranks"), cause, effect) == holds
