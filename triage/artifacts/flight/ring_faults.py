"""Calls that wait for each other → one fault: which of them is the odd one, and why."""

from __future__ import annotations

from collections.abc import Sequence

from triage.artifacts.flight.call_counts import find_odd_count
from triage.artifacts.flight.call_phrases import list_call_sites
from triage.artifacts.flight.model import (
    CallSite,
    Fault,
    Recording,
    Rule,
    call_site_of,
    format_operation,
    format_waiting,
    location_of,
    number_of,
    operation_name,
)
from triage.artifacts.flight.p2p import P2pStall
from triage.artifacts.flight.stalls import Stall
from triage.artifacts.flight.usual_order import UsualOrder
from triage.base.rank_ranges import format_ranks

_MOST_WAITS = 8
_REASONS = {
    "wrong-group": "the same line was called with another group",
    "divergent-call": "in one group, some made a call more than the others",
}


def classify_ring(recording: Recording, nodes: Sequence[Stall | P2pStall]) -> Fault:
    """Return the fault of stalls that wait for each other.

    The reason is another order of groups, a wrong group, or sends and receives in a ring. At fault are the ranks whose
    call nobody else ever made at this point, else the fewest ranks; where neither decides, all of them.
    """
    ring = frozenset().union(*(node.standing for node in nodes))
    odd_count = find_odd_count(recording, [node for node in nodes if isinstance(node, Stall)])
    ranks, uncertainty = (odd_count.ranks, "") if odd_count else _find_odd_ranks(recording, nodes)
    ordered = sorted(nodes, key=lambda node: (not node.standing & ranks, len(node.standing), _row(node)))
    odd, usual = ordered[0], next(node for node in ordered if node.missing & ordered[0].standing)
    rule = "divergent-call" if odd_count and odd_count.left_out else _choose_rule(recording, odd, usual)
    reason = _REASONS.get(rule, "each waits for the other")
    if all(isinstance(node, P2pStall) and node.kind == "no-receive" for node in ordered):
        reason = "all send and none of them receives"
    if odd_count:
        reason = f"{reason}; {odd_count.text}"
    row = next(row for rank, row in sorted(_rows(odd).items()) if rank in ranks)
    row = _row(odd_count.left_out) if odd_count and odd_count.left_out else row
    return Fault(
        rule,
        tuple(sorted(ranks)),
        tuple(sorted(ring - ranks)),
        recording.groups[int(recording.table.group[row])].label,
        number_of(recording, row),
        operation_name(recording.ops[int(recording.table.op[row])]),
        f"{'; '.join(_waits_for(recording, node) for node in ordered[:_MOST_WAITS])}: {reason}",
        call_sites=tuple(_call_site(recording, node) for node in ordered[:4]),
        uncertainty=uncertainty,
    )


def _find_odd_ranks(recording: Recording, nodes: Sequence[Stall | P2pStall]) -> tuple[frozenset[int], str]:
    """The ranks whose call is unusual, else the fewest that hold up others; and what else may be, "" if nothing."""
    calls = {rank: row for node in nodes for rank, row in _rows(node).items()}
    unusual = UsualOrder(recording).find_unusual(calls)
    holders = {node.missing & other.standing for node in nodes for other in nodes} - {frozenset()}
    if unusual in holders:
        is_short = any(recording.dumps[rank].has_wrapped for rank in unusual)
        return unusual, "the dump does not show what the ranks called earlier" if is_short else ""
    fewest = min(map(len, holders))
    smallest = [ranks for ranks in holders if len(ranks) == fewest]
    either = "" if len(smallest) == 1 else "any of them may have the wrong order, group or partner"
    return frozenset().union(*smallest), either


def _choose_rule(recording: Recording, odd: Stall | P2pStall, usual: Stall | P2pStall) -> Rule:
    if isinstance(odd, P2pStall) or isinstance(usual, P2pStall):
        return "p2p-mismatch"
    if odd.grid.number == usual.grid.number:
        return "divergent-call"
    return "wrong-group" if _is_one_place(recording, odd, usual) else "group-order"


def _is_one_place(recording: Recording, one: Stall, other: Stall) -> bool:
    """Whether both calls were made at one line of the program."""
    here, there = (int(recording.table.stack[_row(stall)]) for stall in (one, other))
    return here != 0 and recording.stacks[here] == recording.stacks[there]


def _rows(node: Stall | P2pStall) -> dict[int, int]:
    """The call of each standing rank, as rows of the table."""
    if isinstance(node, Stall):
        return {rank: node.cell(rank) for rank in sorted(node.standing)}
    sides = ((node.pair.source, node.pair.send), (node.pair.target, node.pair.recv))
    return {rank: row for rank, row in sides if rank in node.standing and row >= 0}


def _row(node: Stall | P2pStall) -> int:
    return min(_rows(node).items())[1]


def _call_site(recording: Recording, node: Stall | P2pStall) -> CallSite:
    if isinstance(node, Stall):
        return list_call_sites(recording, node)[0]
    return call_site_of(recording, _row(node), node.standing)


def _waits_for(recording: Recording, node: Stall | P2pStall) -> str:
    row = _row(node)
    call = format_operation(recording, row) + location_of(recording, row)
    return f"{format_waiting(node.standing)} in {call} for {format_ranks(node.missing)}"
