"""Name the sides of a difference in plain words: nodes where the values follow the nodes, otherwise ranks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from triage.base.rank_ranges import format_ranks
from triage.compare.first_difference import FirstDifference
from triage.compare.quantities import RankValue
from triage.compare.step_comparison import StepComparison, format_difference
from triage.ranks.identity import short_host

_MOST_NAMED = 4


def node_of(value: RankValue) -> str | None:
    """The node of a value's writer, as far as the job map knows it."""
    return short_host(value.origin.host) if value.origin.host is not None else None


def group_nodes(comparison: StepComparison) -> list[list[str]]:
    """The nodes of each group of equal values; empty unless every group is made of whole nodes."""
    groups_of: dict[str | None, set[int]] = defaultdict(set)
    for number, group in enumerate(comparison.groups):
        for value in group:
            groups_of[node_of(value)].add(number)
    if None in groups_of or len(groups_of) < 2 or any(len(numbers) > 1 for numbers in groups_of.values()):
        return []
    return [sorted({node_of(value) or "" for value in group}) for group in comparison.groups]


def format_difference_of_values(difference: FirstDifference) -> str:
    """The sentence of a report: the quantity, who differs from whom since when, and the values."""
    nodes = group_nodes(difference.comparison)
    return _format_nodes(difference, nodes) if nodes else _format_ranks(difference)


def _format_nodes(difference: FirstDifference, nodes: Sequence[Sequence[str]]) -> str:
    """`grad_norm: node1 and node2 agreed until step 120, differ since step 121 (0.912 and 0.934)`."""
    comparison = difference.comparison
    values = join_texts([group[0].text for group in comparison.groups[:_MOST_NAMED]])
    since = f" since step {difference.step}" if difference.step is not None else ""
    if comparison.outcome == "odd":
        odd = sorted(name for names in nodes[1:] for name in names)
        ranks = _format_known_ranks(comparison.odd)
        verb = "differs" if len(odd) == 1 else "differ"
        other = _name_nodes(nodes[0])
        text = f"{_name_nodes(odd)}{ranks} {verb} from {other}{since}: {_format_values(comparison)}"
        before = f"; all agreed until step {difference.equal_step}" if difference.equal_step is not None else ""
        return f"{difference.key}: {text}{before}"
    names = _name_nodes(sorted(name for part in nodes for name in part))
    before = f" agreed until step {difference.equal_step}," if difference.equal_step is not None else ""
    sides = "; ".join(f"{_name_nodes(part)} agree" for part in nodes if len(part) > 1)
    return f"{difference.key}: {names}{before} differ{since} ({values})" + (f"; {sides}" if sides else "")


def _format_values(comparison: StepComparison) -> str:
    usual, other = comparison.groups[0][0], comparison.odd[0]
    return f"{other.text}, the others {usual.text}{format_difference(usual, other)}"


def _format_ranks(difference: FirstDifference) -> str:
    comparison = difference.comparison
    usual, other, odd = comparison.groups[0][0], comparison.groups[1][0], comparison.odd
    other = odd[0] if odd else other
    at = f" at step {difference.step}" if difference.step is not None else ""
    sides = f"{_name_writers(odd or (other,))} {'have' if len(odd) > 1 else 'has'} {other.text}"
    sides += f", {'the others' if odd else _name_writers((usual,))} {usual.text}{format_difference(usual, other)}"
    before = f"; equal at step {difference.equal_step}" if difference.equal_step is not None else ""
    return f"{difference.key} differs between ranks that must agree{at}: {sides}{before}"


def _format_known_ranks(values: Iterable[RankValue]) -> str:
    ranks = [value.rank for value in values if value.rank is not None]
    return f" ({format_ranks(ranks)})" if ranks else ""


def _name_writers(values: Sequence[RankValue]) -> str:
    ranks = [value.rank for value in values if value.rank is not None]
    if ranks:
        return format_ranks(ranks)
    return join_texts([_name_process(value) for value in values])


def _name_process(value: RankValue) -> str:
    place = node_of(value) or value.source.rpartition("/")[2]
    local = value.origin.local_rank
    return place if local is None else f"local rank {local} of {place}"


def _name_nodes(names: Sequence[str]) -> str:
    more = [f"{len(names) - _MOST_NAMED} more nodes"] if len(names) > _MOST_NAMED else []
    return join_texts([*names[:_MOST_NAMED], *more])


def join_texts(texts: Sequence[str]) -> str:
    """`a, b and c`."""
    return " and ".join(filter(None, [", ".join(texts[:-1]), *texts[-1:]]))
