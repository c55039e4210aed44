"""Faults → facts of the job: one conclusion for each rank at fault, standing in the dump that shows it, and how far
every rank had come.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from triage.artifacts.flight.model import Analysis, Dump, Fault, Recording
from triage.artifacts.flight.places import at, name_of, say, wait
from triage.evidence.inference import inferred
from triage.model.evidence import Evidence, Origin

COMPONENT = "flight-recorder"
_FRAMES = 6


def facts(recording: Recording, analysis: Analysis) -> Iterator[Evidence]:
    """What the dumps of one job say. Only roots are conclusions; what follows from them is told in their text."""
    for dump in recording.dumps.values():
        yield _progress(recording, dump)
    for fault in analysis.faults:
        if not fault.explained_by:
            yield from _conclusion(recording, fault, _victims(analysis, fault))
    if not analysis.faults:
        yield undecided(next(iter(recording.dumps.values())).source, _all_done(recording))


def undecided(source: str, text: str) -> Evidence:
    """No fault, and no proof that there was none: how the job ended is left open, unless a log tells."""
    return Evidence("flight", COMPONENT, text, Origin(), source, 0, fields={"end": "open"})


def unreadable(sources: Sequence[str]) -> Evidence:
    """There were dumps, and nothing could be learned from them."""
    count = "the dump" if len(sources) == 1 else f"none of the {len(sources)} dumps"
    return undecided(sources[0], f"{count} {'cannot' if len(sources) == 1 else 'can'} be read")


def _all_done(recording: Recording) -> str:
    table = recording.table
    ranks = [dump.rank for dump in recording.dumps.values() if dump.entries]
    if not ranks:
        return f"the dumps of {say(recording.dumps)} hold no call"
    open_ = [
        row for row in (~table.done).nonzero()[0].tolist()
        if not (table.done & (table.group == table.group[row]) & (table.seq == table.seq[row])).any()
    ]  # fmt: skip
    if open_:
        return f"{wait({int(table.rank[row]) for row in open_})} in a call, and the dumps do not tell for whom"
    row = int(table.created.argmax())
    last = f"{name_of(recording.ops[int(table.op[row])])} #{int(table.seq[row])} of {recording.groups[int(table.group[row])].label}"
    return (
        f"{say(ranks)} {'has' if len(ranks) == 1 else 'have'} got through all calls that the dumps hold, the last of them {last}; "
        "what a rank did afterwards, outside of recorded collectives, no dump tells"
    )


def _progress(recording: Recording, dump: Dump) -> Evidence:
    text, waits = f"the dump of rank {dump.rank} holds no call", {}
    if dump.entries:
        table, row = recording.table, dump.end - 1
        name, state = name_of(recording.ops[int(table.op[row])]), "done" if table.done[row] else "not done"
        group = recording.groups[int(table.group[row])].label
        where = at(recording.stacks[int(table.stack[row])])
        text = f"last call of rank {dump.rank}: {name} #{int(table.seq[row])} of {group}{where}, {state}"
        waits = {} if table.done[row] else {"waits": "yes"}
    fields = {"version": dump.version, "entries": str(dump.entries), **waits}
    return Evidence("flight", COMPONENT, text, Origin(rank=dump.rank), dump.source, 0, fields=fields)


def _conclusion(recording: Recording, fault: Fault, victims: str) -> list[Evidence]:
    basis = _basis(recording, fault)
    told = {"group": fault.group, "seq": str(fault.seq), "op": fault.op, "waiting": ",".join(map(str, fault.waiting))}
    if fault.since is not None:
        told["since"] = str(fault.since)
    ground = "measured" if fault.sure else "silence"
    found = inferred(fault.rule, fault.ranks, fault.text + victims, basis, ground=ground, component=COMPONENT, **told)  # type: ignore[arg-type]
    return [_at_home(recording, fact) for fact in found]


def _basis(recording: Recording, fault: Fault) -> Evidence:
    """Where the conclusion stands: the dump of the first rank at fault that has one, else of one that waits."""
    rank = next((rank for rank in (*fault.ranks, *fault.waiting) if rank in recording.dumps), None)
    source = recording.dumps[rank].source if rank is not None else ""
    return Evidence(
        "flight", COMPONENT, fault.text, Origin(time=_time(recording, fault)), source, 0, excerpt=_excerpt(fault)
    )


def _at_home(recording: Recording, fact: Evidence) -> Evidence:
    dump = recording.dumps.get(fact.origin.rank) if fact.origin.rank is not None else None
    return replace(fact, source=dump.source) if dump else fact


def _time(recording: Recording, fault: Fault) -> float | None:
    """When the wait began: the newest call of the ranks that wait (or are at fault, where none waits), in seconds."""
    ranks = [rank for rank in fault.waiting or fault.ranks if rank in recording.dumps]
    times = [recording.dumps[rank].last_time for rank in ranks]
    newest = max(times, default=0)
    return newest / 1e9 if newest > 0 else None


def _excerpt(fault: Fault) -> str:
    """The calls side by side, each with the frames of the program that led to it."""
    lines = []
    for place in fault.places:
        lines.append(f"{say(place.ranks)}: {place.call}")
        lines += [f"    {frame.file}:{frame.line} in {frame.name}" for frame in place.stack[:_FRAMES]]
    return "\n".join(lines)


def _victims(analysis: Analysis, root: Fault) -> str:
    number = analysis.faults.index(root)
    follow = [fault for fault in analysis.faults if number in fault.explained_by]
    if not follow:
        return ""
    first = follow[0]
    more = f" and in {len(follow) - 1} more groups" if len(follow) > 1 else ""
    return f"; because of that {wait(first.waiting)} in {first.op} #{first.seq} of {first.group}{more}"
