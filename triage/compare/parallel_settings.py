"""Settings that differ along the same line as a quantity that diverged: between the same nodes or the same ranks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from triage.compare.differing_sides import group_nodes, join_texts
from triage.compare.divergence import compare_end_steps
from triage.compare.first_difference import FirstDifference
from triage.compare.observed_values import ObservedValues, group_by_quantity
from triage.model import Deviation
from triage.ranks.identity import short_host

_MOST_TEXTS = 3
T = TypeVar("T", int, str)


def follows_difference(deviation: Deviation, difference: FirstDifference) -> bool:
    """Whether the ranks (or hosts) that deviate are exactly one side of the difference."""
    if deviation.rule not in ("env-mismatch", "determinism-incomplete"):
        return False
    ranks = [{value.rank for value in group if value.rank is not None} for group in difference.comparison.groups]
    hosts = [set(names) for names in group_nodes(difference.comparison)]
    odd_hosts = {short_host(host) for host in deviation.hosts}
    return _is_one_side(set(deviation.ranks), ranks) or _is_one_side(odd_hosts, hosts)


def _is_one_side(odd: set[T], sides: Sequence[set[T]]) -> bool:
    """Whether the odd ones are one side, or all but one, as far as the sides are known."""
    everyone = {one for side in sides for one in side}
    known = odd & everyone
    return bool(known) and known != everyone and any(known in (side, everyone - side) for side in sides)


def is_of_program(deviation: Deviation) -> bool:
    """Whether it is about switches that programs print, which can only make values differ."""
    return deviation.rule == "determinism-incomplete" and any(not name.isupper() for name in deviation.names)


def remark_fixed_differences(differences: Sequence[FirstDifference], values: ObservedValues) -> dict[str, str]:
    """A clause for each quantity that diverged, on what was printed before training and differs on the same line."""
    if not differences or not values.may_have_fixed:
        return {}
    starts = values.read_starts(len(values.finders))
    clauses: dict[str, str] = {}
    for key, same in group_by_quantity(starts, "fixed").items():
        for comparison in compare_end_steps(same)[1].values():
            for one in differences:
                if one.key != key and set(comparison.writers) == set(one.comparison.writers):
                    texts = join_texts([group[0].text for group in comparison.groups[:_MOST_TEXTS]])
                    clauses[one.key] = clauses.get(one.key, "") + f"; {key} differs in the same way ({texts})"
    return clauses
