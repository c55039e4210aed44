"""Stalls of sends and receives → faults."""

from __future__ import annotations

from collections.abc import Iterable

from triage.artifacts.flight.call_phrases import describe_call, format_last_call
from triage.artifacts.flight.model import (
    STARTED,
    Fault,
    Recording,
    Rule,
    call_site_of,
    format_waiting,
    location_of,
    operation_name,
)
from triage.artifacts.flight.p2p import P2pStall
from triage.base.rank_ranges import format_ranks


def classify_p2p_stall(recording: Recording, stall: P2pStall) -> Fault:
    """Return the fault between two ranks."""
    source, target = f"rank {stall.pair.source}", f"rank {stall.pair.target}"
    where = location_of(recording, stall.row)
    if stall.kind == "no-receive":
        text = f"{source} sends to {target}{where}, but {target} has posted no receive"
        return make_p2p_fault(
            recording, stall, "never-joined", stall.missing, text + format_last_call(recording, stall.missing)
        )
    if stall.kind == "no-send":
        text = f"{target} waits to receive from {source}{where}, but {source} has sent nothing more"
        return make_p2p_fault(
            recording, stall, "never-joined", stall.missing, text + format_last_call(recording, stall.missing)
        )
    if stall.kind == "no-dump":
        action = f"sends to {target}" if stall.pair.send >= 0 else f"waits to receive from {source}"
        (partner,) = stall.missing
        text = f"rank {min(stall.standing)} {action}{where}, and rank {partner} left no dump of that moment"
        uncertainty = "its dump may be missing because nobody collected it"
        return make_p2p_fault(recording, stall, "never-joined", stall.missing, text, uncertainty)
    if stall.kind == "queued":
        between = f"in the transfer from {source} to {target}{where}"
        text = f"{format_waiting(stall.standing)} {between} for {format_ranks(stall.missing)}, held in another call"
        return make_p2p_fault(recording, stall, "never-joined", stall.missing, text)
    if stall.kind == "sizes-differ":
        sent, received = describe_call(recording, stall.pair.send), describe_call(recording, stall.pair.recv)
        text = f"{source}: {sent}; {target}: {received}; the sizes differ"
        return make_p2p_fault(recording, stall, "shape-mismatch", stall.odd, text)
    text = f"the transfer from {source} to {target}{where} hangs, although both ranks called it with the same size"
    started = all(recording.table.state[row] == STARTED for row in (stall.pair.send, stall.pair.recv))
    uncertainty = "" if started else "a device may be busy with an operation that is not recorded"
    return make_p2p_fault(recording, stall, "stuck-in-collective", stall.odd, text, uncertainty)


def make_p2p_fault(
    recording: Recording, stall: P2pStall, rule: Rule, ranks: Iterable[int], text: str, uncertainty: str = ""
) -> Fault:
    """Return the fault of a stall."""
    table, at_fault = recording.table, tuple(sorted(ranks))
    rows = [row for row in (stall.pair.send, stall.pair.recv) if row >= 0]
    return Fault(
        rule,
        at_fault,
        tuple(sorted(stall.standing - set(at_fault))),
        recording.groups[stall.pair.group].label,
        int(table.p2p[stall.row]),
        operation_name(recording.ops[int(table.op[stall.row])]),
        text,
        call_sites=tuple(call_site_of(recording, row, (int(table.rank[row]),)) for row in rows),
        uncertainty=uncertainty,
    )
