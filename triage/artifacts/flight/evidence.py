"""Faults → evidence: one inference for each rank at fault, and the progress of every rank."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from triage.artifacts.flight.first_calls import find_first_calls
from triage.artifacts.flight.model import (
    Analysis,
    Dump,
    Fault,
    Recording,
    format_operation,
    format_waiting,
    location_of,
)
from triage.base.rank_ranges import format_ranks
from triage.evidence.inference import make_inferences
from triage.model import Evidence, FlightDetail, Origin

COMPONENT = "flight-recorder"
_MAX_FRAMES = 6


def extract_evidence(recording: Recording, analysis: Analysis) -> Iterator[Evidence]:
    """Yield the evidence in the dumps of one job.

    Faults that follow from others only appear in the text of these. An uncertain root counts where no root is certain.
    """
    first_calls = find_first_calls(recording)
    for dump in recording.dumps.values():
        yield _progress(recording, dump, first_calls.get(dump.rank, ()))
    roots = [fault for fault in analysis.faults if not fault.explained_by]
    for fault in [fault for fault in roots if fault.is_certain] or roots:
        yield from _inferences(recording, fault, _consequences(analysis, fault))
    if not analysis.faults:
        yield _undecided(next(iter(recording.dumps.values())).source, _summarise_progress(recording))


def unreadable_dumps(sources: Sequence[str]) -> Evidence:
    """Return the evidence of dumps that exist but cannot be read."""
    return _undecided(
        sources[0], "the dump cannot be read" if len(sources) == 1 else f"none of the {len(sources)} dumps can be read"
    )


def _undecided(source: str, text: str) -> Evidence:
    """No fault, and no proof that there was none: only a log can show how the job ended."""
    return Evidence(
        "flight", COMPONENT, text, Origin(), source, 0, fields={"end": "open"}, detail=FlightDetail(undecided=True)
    )


def _summarise_progress(recording: Recording) -> str:
    """What the dumps show where no fault is found."""
    table = recording.table
    ranks = [dump.rank for dump in recording.dumps.values() if dump.entries]
    if not ranks:
        return f"the dumps of {format_ranks(recording.dumps)} hold no call"
    waiting = {
        int(table.rank[row])
        for row in (~table.done).nonzero()[0].tolist()
        if not (table.done & (table.group == table.group[row]) & (table.seq == table.seq[row])).any()
    }
    if waiting:
        return f"{format_waiting(waiting)} in a call, but the dumps do not show for which rank"
    has = "has" if len(ranks) == 1 else "have"
    return (
        f"{format_ranks(ranks)} {has} finished all calls in the dumps, "
        f"the last of them {format_operation(recording, int(table.created.argmax()))}; "
        "the dumps do not show what a rank did outside of recorded collectives"
    )


def _progress(recording: Recording, dump: Dump, first_calls: tuple[int, ...]) -> Evidence:
    """The last call of a rank, and the first open one."""
    text, waits = f"the dump of rank {dump.rank} holds no call", False
    if dump.entries:
        row = dump.end - 1
        waits = not recording.table.done[row]
        call = format_operation(recording, row) + location_of(recording, row)
        text = f"last call of rank {dump.rank}: {call}, {'not done' if waits else 'done'}"
    fields = {"version": dump.version, "entries": str(dump.entries), **({"waits": "yes"} if waits else {})}
    first = format_operation(recording, first_calls[0]) if first_calls else ""
    origin, detail = Origin(rank=dump.rank), FlightDetail(waits=waits, call=first)
    return Evidence("flight", COMPONENT, text, origin, dump.source, 0, fields=fields, detail=detail)


def _inferences(recording: Recording, fault: Fault, consequences: str) -> list[Evidence]:
    fields = {
        "group": fault.group,
        "seq": str(fault.seq),
        "op": fault.op,
        "waiting": ",".join(map(str, fault.waiting)),
        **({"since": str(fault.since)} if fault.since is not None else {}),
    }
    inferences = make_inferences(
        fault.rule,
        fault.ranks,
        fault.text + consequences + ("" if fault.is_certain else f"; not certain: {fault.uncertainty}"),
        _evidence_of(recording, fault),
        basis="measured" if fault.is_certain else "absence",
        uncertainty="" if fault.is_certain else fault.uncertainty,
        component=COMPONENT,
        waiting=fault.waiting,
    )
    return [replace(fact, source=_source_of(recording, fact), fields={**fact.fields, **fields}) for fact in inferences]


def _evidence_of(recording: Recording, fault: Fault) -> Evidence:
    """What the inference rests on: the dump of the first rank at fault that has one, else of one that waits."""
    rank = next((rank for rank in (*fault.ranks, *fault.waiting) if rank in recording.dumps), None)
    source = recording.dumps[rank].source if rank is not None else ""
    origin = Origin(time=_start_of_wait(recording, fault))
    return Evidence("flight", COMPONENT, fault.text, origin, source, 0, excerpt=_excerpt(fault))


def _source_of(recording: Recording, fact: Evidence) -> str:
    """The dump of the rank that the fact names, where it has one."""
    dump = recording.dumps.get(fact.origin.rank) if fact.origin.rank is not None else None
    return dump.source if dump else fact.source


def _start_of_wait(recording: Recording, fault: Fault) -> float | None:
    """When the newest call of the ranks that wait (or are at fault, where none waits) began, in seconds."""
    ranks = [rank for rank in fault.waiting or fault.ranks if rank in recording.dumps]
    newest = max((recording.dumps[rank].last_time for rank in ranks), default=0)
    return newest / 1e9 if newest > 0 else None


def _excerpt(fault: Fault) -> str:
    """The calls side by side, each with the frames of the program that led to it."""
    lines = []
    for site in fault.call_sites:
        lines.append(f"{format_ranks(site.ranks)}: {site.call}")
        lines += [f"    {frame.file}:{frame.line} in {frame.name}" for frame in site.stack[:_MAX_FRAMES]]
    return "\n".join(lines)


def _consequences(analysis: Analysis, root: Fault) -> str:
    """What follows from a fault, as the end of a sentence."""
    number = analysis.faults.index(root)
    effects = [fault for fault in analysis.faults if number in fault.explained_by]
    if not effects:
        return ""
    first, others = effects[0], len(effects) - 1
    more = f" and in {others} more {'group' if others == 1 else 'groups'}" if others else ""
    return f"; because of that {format_waiting(first.waiting)} in {first.op} #{first.seq} of {first.group}{more}"
