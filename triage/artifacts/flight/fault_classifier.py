"""Stalls → faults: which rule matches, which ranks are at fault, and the sentence that says so."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from triage.artifacts.flight.divergence import (
    RULE_OF_KIND,
    PartialCall,
    Shift,
    classify_shift,
    find_partial_call,
    find_shift,
    was_visited_by,
)
from triage.artifacts.flight.model import (
    CallSite,
    Fault,
    Recording,
    Rule,
    call_site_of,
    format_location,
    format_operation,
    format_waiting,
    location_of,
    operation_name,
)
from triage.artifacts.flight.p2p import P2pStall
from triage.artifacts.flight.stalls import Stall
from triage.base.rank_ranges import format_ranks

_MAX_CALL_SITES = 4


def classify_stall(recording: Recording, stall: Stall, idle: frozenset[int], *, explained: bool) -> Fault | None:
    """Return the fault of one group, or None where the dumps do not suffice to name one.

    `idle` are the absent ranks that wait in no other group; `explained` says whether another stall causes this one.
    """
    if stall.kind in RULE_OF_KIND:
        return _differing(recording, stall)
    if stall.kind == "absent":
        return _extra_call(recording, stall) if _is_extra(stall, idle, explained) else _absent(recording, stall)
    if stall.kind == "no-dump":
        return _without_dump(recording, stall)
    if stall.kind == "possible-member":
        return _possible_member(recording, stall)
    return _all_entered(recording, stall)


def _first_row(stall: Stall) -> int:
    """The row of the table with the stalled call of the first rank that waits."""
    return stall.cell(min(stall.waiting))


def _fault(
    recording: Recording,
    stall: Stall,
    rule: Rule,
    ranks: Iterable[int],
    text: str,
    *,
    since: int | None = None,
    call_sites: Sequence[CallSite] = (),
    uncertainty: str = "",
) -> Fault:
    at_fault = tuple(sorted(ranks))
    return Fault(
        rule,
        at_fault,
        tuple(sorted(stall.unfinished - set(at_fault))),
        stall.grid.group.label,
        stall.seq,
        operation_name(recording.ops[int(recording.table.op[_first_row(stall)])]),
        text,
        since,
        tuple(call_sites or _call_sites(recording, stall)),
        uncertainty=uncertainty,
    )


def _call_sites(recording: Recording, stall: Stall) -> list[CallSite]:
    """The different calls in this column with the ranks that made them, then the last calls of the absent ranks."""
    calls: dict[tuple[int, ...], list[int]] = {}
    table = recording.table
    for row, rank in enumerate(stall.grid.ranks):
        cell = int(stall.grid.cell[row, stall.column])
        if cell >= 0:
            key = (int(table.op[cell]), int(table.shape[cell]), int(table.dtype[cell]), int(table.stack[cell]))
            calls.setdefault(key, []).append(rank)
    ordered = sorted(calls.values(), key=lambda ranks: (not set(ranks) & stall.odd, len(ranks), ranks[0]))
    sites = [call_site_of(recording, stall.cell(ranks[0]), ranks) for ranks in ordered[:_MAX_CALL_SITES]]
    for rank in sorted(stall.absent)[:_MAX_CALL_SITES]:
        last = _last_row(recording, rank)
        if last is not None:
            site = call_site_of(recording, last, (rank,))
            sites.append(CallSite(site.ranks, f"last call: {site.call}", site.stack))
    return sites


def _last_row(recording: Recording, rank: int) -> int | None:
    dump = recording.dumps.get(rank)
    return dump.end - 1 if dump is not None and dump.entries else None


def _last_call(recording: Recording, ranks: Iterable[int]) -> str:
    """What the first of the ranks did last, as the end of a sentence."""
    rank = min(ranks)
    row = _last_row(recording, rank)
    if row is None:
        return f"; the dump of rank {rank} holds no call" if rank in recording.dumps else ""
    state = "done" if recording.table.done[row] else "not done"
    call = format_operation(recording, row) + location_of(recording, row)
    return f"; the last call of rank {rank} was {call} ({state})"


def _is_extra(stall: Stall, idle: frozenset[int], explained: bool) -> bool:
    """Whether few ranks wait for many that wait nowhere: then the few made a call that the others never make."""
    return not explained and len(stall.waiting) < len(stall.absent) and idle == stall.absent


def _absent(recording: Recording, stall: Stall) -> Fault:
    skipped = (
        find_partial_call(recording, stall.grid, stall.absent, stall.waiting, stall.column - 1)
        if stall.column
        else None
    )
    if skipped:
        return _conditional(recording, stall, skipped, stall.absent)
    moved = find_shift(recording, stall.grid, min(stall.absent), min(stall.waiting), stall.column)
    if moved:
        return _shifted(recording, stall, moved, stall.absent)
    last_seq = max(int(stall.grid.end[stall.grid.row(rank)]) for rank in stall.absent)
    lags = bool(stall.column) and last_seq < int(stall.grid.seqs[stall.column - 1])
    row = _first_row(stall)
    text = (
        f"{format_ranks(stall.absent)}{f' stopped at #{last_seq} and' if lags and last_seq >= 0 else ''} "
        f"{'has' if len(stall.absent) == 1 else 'have'} not entered {format_operation(recording, row)}, "
        f"where {format_waiting(stall.waiting)}{location_of(recording, row)}{_last_call(recording, stall.absent)}"
    )
    if stall.without_dump:
        text += f"; no dump shows what {format_ranks(stall.without_dump)} did"
    return _fault(recording, stall, "lagging-rank" if lags else "never-joined", stall.absent, text)


def _mismatched_until(stall: Stall, odd: frozenset[int]) -> str:
    """The end of a sentence about ranks whose calls no longer match those of the others."""
    calls = "its calls" if len(odd) == 1 else "their calls"
    return f"; from there on {calls} do not match those of the others, up to #{stall.seq}"


def _shifted(recording: Recording, stall: Stall, moved: tuple[Shift, int], odd: frozenset[int]) -> Fault:
    """The same places as the others, but one call off from some number on."""
    kind, column = moved
    grid = stall.grid
    row = int(grid.cell[grid.row(min(odd) if kind == "extra" else min(set(grid.ranks) - odd)), column])
    call = format_operation(recording, row) + location_of(recording, row)
    action = "made one extra call" if kind == "extra" else "skipped one call"
    text = f"{format_ranks(odd)} {action}, {call}{_mismatched_until(stall, odd)}"
    rule: Rule = "extra-collective" if kind == "extra" else "divergent-call"
    return _fault(recording, stall, rule, odd, text, since=int(grid.seqs[column]))


def _extra_call(recording: Recording, stall: Stall) -> Fault:
    """Few ranks wait in a call that the others did not make before they finished."""
    partial = find_partial_call(recording, stall.grid, stall.waiting, stall.absent, stall.column)
    if partial:
        return _conditional(recording, stall, partial, stall.waiting)
    moved = find_shift(recording, stall.grid, min(stall.waiting), min(stall.absent), stall.column)
    if moved:
        return _shifted(recording, stall, moved, stall.waiting)
    row = _first_row(stall)
    text = (
        f"{format_ranks(stall.waiting)} called {format_operation(recording, row)}{location_of(recording, row)}; "
        f"{format_ranks(stall.absent)} did not and had finished all calls{_last_call(recording, stall.absent)}"
    )
    return _fault(recording, stall, "extra-collective", stall.waiting, text)


def _conditional(recording: Recording, stall: Stall, partial: PartialCall, odd: frozenset[int]) -> Fault:
    """A call that only some ranks ever make."""
    grid = stall.grid
    row = int(grid.cell[grid.row(partial.rank), partial.column])
    call = format_operation(recording, row) + location_of(recording, row)
    if partial.by_odd:
        text = f"only {format_ranks(odd)} called {call}; no other rank ever makes that call"
    else:
        text = f"{format_ranks(odd)} skipped {call}, which all other ranks made"
    sites = _call_sites(recording, stall)
    if partial.column < stall.column:
        text += _mismatched_until(stall, odd)
        sites = [call_site_of(recording, row, sorted(odd) if partial.by_odd else (partial.rank,)), *sites]
    else:
        text += _other_call(recording, stall, odd)
    return _fault(
        recording, stall, "rank-conditional", odd, text, since=int(grid.seqs[partial.column]), call_sites=sites
    )


def _other_call(recording: Recording, stall: Stall, odd: frozenset[int]) -> str:
    """What the other ranks called instead in the stalled column, as the end of a sentence."""
    others = sorted(set(stall.grid.ranks) - odd)
    row = stall.cell(others[0]) if others else -1
    if row < 0:
        return ""
    name = operation_name(recording.ops[int(recording.table.op[row])])
    return f"; {format_ranks(set(others) & stall.waiting)} called {name}{location_of(recording, row)}"


def _differing(recording: Recording, stall: Stall) -> Fault:
    """Calls with one sequence number that are not the same call."""
    others = stall.waiting - stall.odd
    if stall.tied:
        return _tied(recording, stall)
    partial = find_partial_call(recording, stall.grid, stall.odd, others, stall.column)
    if partial:
        return _conditional(recording, stall, partial, stall.odd)
    rule, reason = _difference(recording, stall, others)
    text = (
        f"{_who_called(recording, stall, stall.odd)}, {_who_called(recording, stall, others)} "
        f"as #{stall.seq} of {stall.grid.group.label}"
    )
    return _fault(recording, stall, rule, stall.odd, f"{text}; {reason}" if reason else text)


_SHIFT_REASONS: dict[Shift, tuple[Rule, str]] = {
    "swapped": ("divergent-call", "the next two calls show that their order is swapped"),
    "extra": ("extra-collective", "from there on its calls are one behind: it made one extra call"),
    "missing": ("divergent-call", "from there on its calls are one ahead: it skipped one call"),
}


def _difference(recording: Recording, stall: Stall, others: frozenset[int]) -> tuple[Rule, str]:
    """Why the calls differ: the rule, and the reason as a clause ("" where only the difference is known)."""
    rule = RULE_OF_KIND[stall.kind]
    if not stall.unfinished:
        return rule, "the call finished all the same, with a wrong result"
    shift = classify_shift(stall, min(stall.odd), min(others))
    if shift in _SHIFT_REASONS:
        return _SHIFT_REASONS[shift]
    stack, here, there = recording.table.stack, stall.cell(min(stall.odd)), stall.cell(min(others))
    are_different_places = stack[here] != 0 and stack[there] != 0 and stack[here] != stack[there]
    if (
        are_different_places
        and was_visited_by(recording, here, others)
        and not was_visited_by(recording, there, stall.odd)
    ):
        return "extra-collective", "the others made that call earlier and have moved on"
    return rule, ""


def _tied(recording: Recording, stall: Stall) -> Fault:
    """Two halves: one of them is only blamed where it alone makes a call at some place."""
    grid = stall.grid
    signature = {"calls-differ": grid.op, "sizes-differ": grid.size}.get(stall.kind, grid.dtype)
    sides: dict[int, set[int]] = {}
    for rank in stall.waiting:
        sides.setdefault(int(signature[grid.row(rank), stall.column]), set()).add(rank)
    halves = [frozenset(side) for side in sides.values()]
    if len(halves) == 2:
        partial = find_partial_call(recording, grid, halves[0], halves[1], stall.column)
        if partial:
            odd = halves[0] if partial.by_odd else halves[1]
            return _conditional(recording, stall, PartialCall(partial.rank, partial.column, True), odd)
    calls = ", ".join(_who_called(recording, stall, half) for half in sorted(halves, key=min))
    text = f"{calls} as #{stall.seq} of {grid.group.label}; the dumps do not show which of them is right"
    return _fault(
        recording, stall, RULE_OF_KIND[stall.kind], stall.waiting, text, uncertainty="either side may be wrong"
    )


def _who_called(recording: Recording, stall: Stall, ranks: frozenset[int]) -> str:
    return f"{format_ranks(ranks)} called {_describe(recording, stall.cell(min(ranks)))}"


def _describe(recording: Recording, row: int) -> str:
    """`all_reduce [64] Float at train.py:22`."""
    site = call_site_of(recording, row, ())
    return f"{site.call}{format_location(site.stack)}"


def _without_dump(recording: Recording, stall: Stall) -> Fault | None:
    """All ranks with a dump wait, and some rank has none."""
    if len(stall.without_dump) > max(1, len(stall.waiting)):
        return None
    row = _first_row(stall)
    moment = " of that moment" if stall.without_dump & set(recording.dumps) else ""
    text = (
        f"{format_waiting(stall.waiting)} in {format_operation(recording, row)}{location_of(recording, row)}; "
        f"{format_ranks(stall.without_dump)} left no dump{moment}, all others wait"
    )
    its = "its dump" if len(stall.without_dump) == 1 else "their dumps"
    uncertainty = f"{its} may be missing because nobody collected {'it' if len(stall.without_dump) == 1 else 'them'}"
    return _fault(recording, stall, "never-joined", stall.without_dump, text, uncertainty=uncertainty)


def _possible_member(recording: Recording, stall: Stall) -> Fault | None:
    """The dumps do not list the group's members, this is its first call, and some ranks wait in no call."""
    if len(stall.absent) > len(stall.waiting):
        return None
    row = _first_row(stall)
    text = (
        f"{format_waiting(stall.waiting)} in {format_operation(recording, row)}{location_of(recording, row)}, "
        f"the first call of the group; the dumps do not list its members, but {format_ranks(stall.absent)} "
        f"{'waits' if len(stall.absent) == 1 else 'wait'} in no call{_last_call(recording, stall.absent)}"
    )
    verb = "may not belong" if len(stall.absent) == 1 else "may not all belong"
    uncertainty = f"{format_ranks(stall.absent)} {verb} to the group"
    return _fault(recording, stall, "never-joined", stall.absent, text, uncertainty=uncertainty)


def _all_entered(recording: Recording, stall: Stall) -> Fault:
    """All members made the same call: the program is right, a device or the network is not."""
    row = _first_row(stall)
    call, odd = format_operation(recording, row) + location_of(recording, row), format_ranks(stall.odd)
    if stall.kind == "not-started":
        started = format_ranks(stall.waiting - stall.odd)
        text = f"{call} has started on {started} but not on {odd}: an earlier operation keeps that device busy"
        return _fault(recording, stall, "lagging-rank", stall.odd, text)
    if stall.kind == "partial":
        text = f"all ranks entered {call} with the same sizes; some finished it, but not {odd}: the transfer failed"
        return _fault(recording, stall, "stuck-in-collective", stall.odd, text)
    lists_members = stall.grid.group.has_stated_members or stall.column
    text = (
        f"{format_ranks(stall.waiting)} all wait in {call} with the same sizes and no rank is missing: "
        f"the transfer hangs, not the program{'' if lists_members else '; the dumps do not list the group members'}"
    )
    uncertainty = "" if lists_members else "a member that the dumps do not list may be missing"
    return _fault(recording, stall, "stuck-in-collective", stall.odd, text, uncertainty=uncertainty)


def classify_ring(recording: Recording, stalls: Sequence[Stall], p2p_stalls: Sequence[P2pStall]) -> Fault:
    """Return the fault of stalls that wait for each other.

    The reason is another order of groups, a wrong group, or sends that all wait for a receive.
    """
    if not stalls:
        return _p2p_ring(recording, p2p_stalls)
    ordered = sorted(stalls, key=lambda stall: (len(stall.waiting), stall.grid.group.label))
    odd, usual = ordered[0], ordered[min(1, len(ordered) - 1)]
    tied = usual is not odd and len(usual.waiting) == len(odd.waiting)
    rule: Rule = (
        "p2p-mismatch" if p2p_stalls else "wrong-group" if _is_one_place(recording, odd, usual) else "group-order"
    )
    reason = "the same line was called with another group" if rule == "wrong-group" else "each waits for the other"
    everybody = {rank for stall in ordered for rank in stall.waiting}
    ranks = everybody if tied else odd.waiting
    return Fault(
        rule,
        tuple(sorted(ranks)),
        tuple(sorted(everybody - ranks)),
        odd.grid.group.label,
        odd.seq,
        operation_name(recording.ops[int(recording.table.op[_first_row(odd)])]),
        f"{'; '.join(_waits_for(recording, stall) for stall in ordered[:6])}: {reason}",
        call_sites=tuple(site for stall in ordered[:4] for site in _call_sites(recording, stall)[:1]),
        uncertainty="any of them may use the wrong order or group" if tied else "",
    )


def _is_one_place(recording: Recording, one: Stall, other: Stall) -> bool:
    """Whether both calls were made at one line of the program."""
    here, there = (int(recording.table.stack[_first_row(stall)]) for stall in (one, other))
    return here != 0 and recording.stacks[here] == recording.stacks[there]


def _waits_for(recording: Recording, stall: Stall) -> str:
    row = _first_row(stall)
    call = format_operation(recording, row) + location_of(recording, row)
    return f"{format_waiting(stall.waiting)} in {call} for {format_ranks(stall.absent)}"


def _p2p_ring(recording: Recording, stalls: Sequence[P2pStall]) -> Fault:
    ranks = sorted({rank for stall in stalls for rank in stall.waiting})
    waits = ", ".join(f"rank {min(stall.waiting)} for rank {min(stall.absent)}" for stall in stalls[:8])
    all_send = all(stall.kind == "no-receive" for stall in stalls)
    reason = "all send and none of them receives" if all_send else "wait for each other"
    return _p2p_fault(
        recording, stalls[0], "p2p-mismatch", ranks, f"{format_ranks(ranks)} {reason}, in a ring: {waits}"
    )


def classify_p2p_stall(recording: Recording, stall: P2pStall) -> Fault:
    """Return the fault between two ranks."""
    source, target = f"rank {stall.pair.source}", f"rank {stall.pair.target}"
    where = location_of(recording, stall.row)
    if stall.kind == "no-receive":
        text = f"{source} sends to {target}{where}, but {target} has posted no receive"
        return _p2p_fault(recording, stall, "never-joined", stall.absent, text + _last_call(recording, stall.absent))
    if stall.kind == "no-send":
        text = f"{target} waits to receive from {source}{where}, but {source} has sent nothing more"
        return _p2p_fault(recording, stall, "never-joined", stall.absent, text + _last_call(recording, stall.absent))
    if stall.kind == "wrong-target":
        text = f"{source} sends to {target}{where}, but rank {stall.instead} is the one that waits to receive from it"
        return _p2p_fault(recording, stall, "p2p-mismatch", stall.odd, text)
    if stall.kind == "wrong-source":
        text = f"{target} waits to receive from {source}{where}, but rank {stall.instead} is the one that sends to it"
        return _p2p_fault(recording, stall, "p2p-mismatch", stall.odd, text)
    if stall.kind == "sizes-differ":
        sent, received = _describe(recording, stall.pair.send), _describe(recording, stall.pair.recv)
        text = f"{source}: {sent}; {target}: {received}; the sizes differ"
        return _p2p_fault(recording, stall, "shape-mismatch", stall.odd, text)
    text = f"the transfer from {source} to {target}{where} hangs, although both ranks called it with the same size"
    return _p2p_fault(recording, stall, "stuck-in-collective", stall.odd, text)


def _p2p_fault(recording: Recording, stall: P2pStall, rule: Rule, ranks: Iterable[int], text: str) -> Fault:
    table, at_fault = recording.table, tuple(sorted(ranks))
    rows = [row for row in (stall.pair.send, stall.pair.recv) if row >= 0]
    return Fault(
        rule,
        at_fault,
        tuple(sorted(stall.waiting - set(at_fault))),
        recording.groups[stall.pair.group].label,
        int(table.p2p[stall.row]),
        operation_name(recording.ops[int(table.op[stall.row])]),
        text,
        call_sites=tuple(call_site_of(recording, row, (int(table.rank[row]),)) for row in rows),
    )
