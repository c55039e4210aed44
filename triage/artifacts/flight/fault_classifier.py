"""Stalls → faults: which rule matches, which ranks are at fault, and the sentence that says so."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from triage.artifacts.flight.call_phrases import (
    find_first_row,
    format_callers,
    format_last_call,
    list_call_sites,
)
from triage.artifacts.flight.divergence import (
    RULE_OF_KIND,
    PartialCall,
    Shift,
    classify_shift,
    find_partial_call,
    find_shift,
    was_visited_by,
)
from triage.artifacts.flight.first_calls import may_lack_calls
from triage.artifacts.flight.model import (
    STARTED,
    CallSite,
    Fault,
    Recording,
    Rule,
    call_site_of,
    format_operation,
    format_waiting,
    location_of,
    operation_name,
)
from triage.artifacts.flight.stalls import Stall
from triage.artifacts.flight.usual_order import UsualOrder
from triage.base.rank_ranges import format_ranks
from triage.evidence.inference import may_end_early


def classify_stall(
    recording: Recording, stall: Stall, idle: frozenset[int], *, is_explained: bool, is_cause: bool
) -> Fault | None:
    """Return the fault of one group, or None where the dumps do not suffice to name one.

    `idle` are the missing ranks that stand in no other call; `is_explained`: another stall causes this one; `is_cause`:
    this one causes another.
    """
    if stall.kind in RULE_OF_KIND:
        return _differing(recording, stall)
    if stall.kind == "missing":
        idle -= stall.blocked
        if not idle:
            return _waits_for_others(recording, stall) if is_explained else None
        return (
            _extra_call(recording, stall)
            if not is_explained and _is_extra(recording, stall, idle)
            else _absent(recording, stall, idle)
        )
    if stall.kind == "no-dump":
        return _without_dump(recording, stall)
    if stall.kind == "possible-member":
        return _possible_member(recording, stall)
    if stall.kind == "partial":
        return _partly_finished(recording, stall, is_cause=is_cause)
    return _all_entered(recording, stall)


def _make_fault(
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
    """Return the fault of a stall; the other ranks in the call wait."""
    at_fault = tuple(sorted(ranks))
    return Fault(
        rule,
        at_fault,
        tuple(sorted((stall.standing | stall.unfinished) - set(at_fault))),
        stall.grid.group.label,
        stall.seq,
        operation_name(recording.ops[int(recording.table.op[find_first_row(stall)])]),
        text,
        since,
        tuple(call_sites or list_call_sites(recording, stall)),
        uncertainty=uncertainty,
    )


def _is_extra(recording: Recording, stall: Stall, idle: frozenset[int]) -> bool:
    """Whether ranks wait for as many or more that wait nowhere: then they made a call that the others never make.

    Of as many, all must be past it: they have finished a later call of the ranks that wait.
    """
    if idle != stall.missing or len(stall.standing) > len(stall.absent):
        return False
    if len(stall.standing) < len(stall.absent):
        return True
    later = {call for rank in stall.standing for call in _list_calls(recording, rank, stall.cell(rank) + 1)}
    return all(
        any(is_done and call in later for call, is_done in _list_calls(recording, rank).items())
        for rank in stall.absent
    )


def _list_calls(recording: Recording, rank: int, start: int = 0) -> dict[tuple[int, int], bool]:
    """Return group and number of the collectives of a rank, from a row on, and whether they are finished."""
    table, dump = recording.table, recording.dumps[rank]
    rows = (row for row in range(max(start, dump.start), dump.end) if not table.is_p2p[row])
    return {(int(table.group[row]), int(table.seq[row])): bool(table.done[row]) for row in rows}


def _waits_for_others(recording: Recording, stall: Stall) -> Fault:
    """A call whose missing ranks all stand in other calls."""
    call = format_operation(recording, find_first_row(stall)) + location_of(recording, find_first_row(stall))
    text = f"{format_waiting(stall.standing)} in {call} for {format_ranks(stall.missing)}, held in another call"
    return _make_fault(recording, stall, "never-joined", stall.missing, text)


def _absent(recording: Recording, stall: Stall, idle: frozenset[int]) -> Fault:
    skipped = find_partial_call(recording, stall.grid, idle, stall.standing, stall.column - 1) if stall.column else None
    if skipped:
        return _conditional(recording, stall, skipped, idle)
    moved = find_shift(recording, stall.grid, min(idle), min(stall.standing), stall.column)
    if moved:
        return _shifted(recording, stall, moved, idle)
    last_seq = max(int(stall.grid.end[stall.grid.row(rank)]) for rank in idle)
    lags = bool(stall.column) and last_seq < int(stall.grid.seqs[stall.column - 1])
    row = find_first_row(stall)
    text = (
        f"{format_ranks(idle)}{f' stopped at #{last_seq} and' if lags and last_seq >= 0 else ''} "
        f"{'has' if len(idle) == 1 else 'have'} not entered {format_operation(recording, row)}, "
        f"where {format_waiting(stall.standing)}{location_of(recording, row)}{format_last_call(recording, idle)}"
    )
    if stall.without_dump:
        text += f"; no dump shows what {format_ranks(stall.without_dump)} did"
    return _make_fault(recording, stall, "lagging-rank" if lags else "never-joined", idle, text)


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
    return _make_fault(recording, stall, rule, odd, text, since=int(grid.seqs[column]))


def _extra_call(recording: Recording, stall: Stall) -> Fault | None:
    """Few ranks wait in a call that the others did not make before they finished.

    In a call that no rank has made before, the others may as well be on their way to it: in sends and receives, which
    Gloo does not record. Then nobody is at fault.
    """
    partial = find_partial_call(recording, stall.grid, stall.standing, stall.absent, stall.column)
    uncertainty = f"{format_ranks(stall.absent)} may all stand outside of recorded calls"
    if len(stall.absent) == len(stall.standing):
        uncertainty = f"{format_ranks(stall.absent)} may have skipped it"
    if partial:
        # The others may only be on their way there, unless they made another call in its place.
        is_alone = partial.column == stall.column
        if is_alone and _is_gloo(recording, find_first_row(stall)):
            return None
        return _conditional(recording, stall, partial, stall.standing, uncertainty if is_alone else "")
    moved = find_shift(recording, stall.grid, min(stall.standing), min(stall.absent), stall.column)
    if moved:
        return _shifted(recording, stall, moved, stall.standing)
    row = find_first_row(stall)
    text = (
        f"{format_ranks(stall.standing)} called {format_operation(recording, row)}{location_of(recording, row)}; "
        f"{format_ranks(stall.absent)} did not and had finished all calls{format_last_call(recording, stall.absent)}"
    )
    return _make_fault(recording, stall, "extra-collective", stall.standing, text, uncertainty=uncertainty)


def _conditional(
    recording: Recording, stall: Stall, partial: PartialCall, odd: frozenset[int], uncertainty: str = ""
) -> Fault:
    """A call that only some ranks ever make."""
    grid = stall.grid
    row = int(grid.cell[grid.row(partial.rank), partial.column])
    call = format_operation(recording, row) + location_of(recording, row)
    if partial.by_odd and uncertainty:
        has = "has" if len(stall.absent) == 1 else "have"
        text = f"only {format_ranks(odd)} called {call}; {format_ranks(stall.absent)} {has} made no recorded call since"
    elif partial.by_odd:
        text = f"only {format_ranks(odd)} called {call}; no other rank ever makes that call"
    else:
        text = f"{format_ranks(odd)} skipped {call}, which all other ranks made"
    sites = list_call_sites(recording, stall)
    if partial.column < stall.column:
        text += _mismatched_until(stall, odd)
        sites = [call_site_of(recording, row, sorted(odd) if partial.by_odd else (partial.rank,)), *sites]
    else:
        text += _other_call(recording, stall, odd)
    return _make_fault(
        recording,
        stall,
        "rank-conditional",
        odd,
        text,
        since=int(grid.seqs[partial.column]),
        call_sites=sites,
        uncertainty=uncertainty,
    )


def _other_call(recording: Recording, stall: Stall, odd: frozenset[int]) -> str:
    """What the other ranks called instead in the stalled column, as the end of a sentence."""
    others = sorted(set(stall.grid.ranks) - odd)
    row = stall.cell(others[0]) if others else -1
    if row < 0:
        return ""
    name = operation_name(recording.ops[int(recording.table.op[row])])
    return f"; {format_ranks(set(others) & stall.entered)} called {name}{location_of(recording, row)}"


def _differing(recording: Recording, stall: Stall) -> Fault:
    """Calls with one sequence number that are not the same call."""
    others = stall.entered - stall.odd
    if stall.tied:
        return _tied(recording, stall)
    partial = find_partial_call(recording, stall.grid, stall.odd, others, stall.column)
    if partial:
        return _conditional(recording, stall, partial, stall.odd)
    rule, reason = _difference(recording, stall, others)
    text = (
        f"{format_callers(recording, stall, stall.odd)}, {format_callers(recording, stall, others)} "
        f"as #{stall.seq} of {stall.grid.group.label}"
    )
    return _make_fault(recording, stall, rule, stall.odd, f"{text}; {reason}" if reason else text)


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
    """Two halves: one of them is only blamed where it alone does what nobody else ever did."""
    grid = stall.grid
    signature = {"calls-differ": grid.op, "sizes-differ": grid.size}.get(stall.kind, grid.dtype)
    sides: dict[int, set[int]] = {}
    for rank in stall.entered:
        sides.setdefault(int(signature[grid.row(rank), stall.column]), set()).add(rank)
    halves = [frozenset(side) for side in sides.values()]
    if len(halves) == 2:
        partial = find_partial_call(recording, grid, halves[0], halves[1], stall.column)
        if partial:
            odd = halves[0] if partial.by_odd else halves[1]
            return _conditional(recording, stall, PartialCall(partial.rank, partial.column, True), odd)
    unusual = UsualOrder(recording).find_unusual({rank: stall.cell(rank) for rank in stall.entered})
    calls = ", ".join(format_callers(recording, stall, half) for half in sorted(halves, key=min))
    text = f"{calls} as #{stall.seq} of {grid.group.label}"
    rule = RULE_OF_KIND[stall.kind]
    if unusual in halves:
        has_others = len(recording.dumps) > len(stall.entered)
        has_others &= not any(recording.dumps[rank].has_wrapped for rank in unusual)
        text += f"; no other rank ever makes the call of {format_ranks(unusual)} there"
        uncertainty = "" if has_others else "the other side may be wrong"
        return _make_fault(recording, stall, rule, unusual, text, uncertainty=uncertainty)
    text += "; the dumps do not show which of them is right"
    return _make_fault(recording, stall, rule, stall.entered, text, uncertainty="either side may be wrong")


def _without_dump(recording: Recording, stall: Stall) -> Fault | None:
    """All ranks with a dump wait, and some rank has none."""
    if len(stall.without_dump) > max(1, len(stall.standing)):
        return None
    row = find_first_row(stall)
    moment = " of that moment" if stall.without_dump & set(recording.dumps) else ""
    text = (
        f"{format_waiting(stall.standing)} in {format_operation(recording, row)}{location_of(recording, row)}; "
        f"{format_ranks(stall.without_dump)} left no dump{moment}, all others wait"
    )
    its = "its dump" if len(stall.without_dump) == 1 else "their dumps"
    uncertainty = f"{its} may be missing because nobody collected {'it' if len(stall.without_dump) == 1 else 'them'}"
    return _make_fault(recording, stall, "never-joined", stall.without_dump, text, uncertainty=uncertainty)


def _possible_member(recording: Recording, stall: Stall) -> Fault | None:
    """The dumps do not list the group's members, this is its first call, and some ranks wait in no call."""
    if len(stall.absent) > len(stall.standing):
        return None
    row = find_first_row(stall)
    text = (
        f"{format_waiting(stall.standing)} in {format_operation(recording, row)}{location_of(recording, row)}, "
        f"the first call of the group; the dumps do not list its members, but {format_ranks(stall.absent)} "
        f"{'waits' if len(stall.absent) == 1 else 'wait'} in no call{format_last_call(recording, stall.absent)}"
    )
    verb = "may not belong" if len(stall.absent) == 1 else "may not all belong"
    uncertainty = f"{format_ranks(stall.absent)} {verb} to the group"
    return _make_fault(recording, stall, "never-joined", stall.absent, text, uncertainty=uncertainty)


def _partly_finished(recording: Recording, stall: Stall, *, is_cause: bool) -> Fault | None:
    """Some ranks finished a call that others entered and did not finish: their device, or only an earlier dump.

    In a broadcast or reduce those may wait for each other, because they name different roots.
    """
    row, odd = find_first_row(stall), stall.odd
    timed_out = any(recording.table.retired[stall.cell(rank)] for rank in odd)
    if not is_cause and not timed_out:
        return None
    call = format_operation(recording, row) + location_of(recording, row)
    finished = stall.entered - stall.unfinished
    others = format_ranks(finished) if finished else "the other ranks"
    what = "its device or watchdog" if len(odd) == 1 else "their devices or watchdogs"
    text = f"{others} finished {call}, {format_ranks(odd)} entered it and did not finish: {what} stopped"
    its = "the dump" if len(odd) == 1 else "the dumps"
    reasons = [] if timed_out else [f"{its} of {format_ranks(odd)} may have been written a moment earlier"]
    if len(odd) > 1 and may_end_early(operation_name(recording.ops[int(recording.table.op[row])])):
        text += f", or {format_ranks(odd)} name different roots"
        reasons.append("dumps do not record the root of this operation")
    return _make_fault(recording, stall, "stuck-in-collective", odd, text, uncertainty="; ".join(reasons))


def _all_entered(recording: Recording, stall: Stall) -> Fault | None:
    """All members made the same call: the program is right, a device or the network is not.

    A rank alone waits for members that the dumps do not list.
    """
    lists_members = stall.grid.group.has_stated_members or stall.column
    if len(stall.entered) == 1 and not lists_members:
        return None
    row = find_first_row(stall)
    call, odd = format_operation(recording, row) + location_of(recording, row), format_ranks(stall.odd)
    if stall.kind == "not-started":
        started = format_ranks(stall.entered - stall.odd)
        text = f"{call} has started on {started} but not on {odd}: an unrecorded operation keeps that device busy"
        doubt = "a full ring buffer may have dropped an earlier call in which it waits"
        return _make_fault(
            recording, stall, "lagging-rank", stall.odd, text, uncertainty=doubt if may_lack_calls(recording) else ""
        )
    everybody = f"{format_ranks(stall.entered)} all wait in {call} with the same sizes and no rank is missing"
    reasons = [] if lists_members else ["a member that the dumps do not list may be missing"]
    if _has_started(recording, stall):
        text = f"{everybody}: the transfer hangs, not the program"
    else:
        text = f"{everybody}; the dumps do not show whether it has started on every device"
        reasons.append("a device may be busy with an operation that is not recorded")
    text += "" if lists_members else "; the dumps do not list the group members"
    if any(not recording.dtypes[int(recording.table.dtype[stall.cell(rank)])] for rank in stall.odd):
        reasons.append("the types may differ, which these dumps do not record")
    return _make_fault(recording, stall, "stuck-in-collective", stall.odd, text, uncertainty="; or ".join(reasons))


def _has_started(recording: Recording, stall: Stall) -> bool:
    """Whether the call runs on all ranks. A call of Gloo needs no device and runs at once."""
    rows = [stall.cell(rank) for rank in stall.odd]
    return _is_gloo(recording, rows[0]) or all(recording.table.state[row] == STARTED for row in rows)


def _is_gloo(recording: Recording, row: int) -> bool:
    return recording.ops[int(recording.table.op[row])].startswith("gloo:")
