"""Find unhealthy GPUs and NPUs in the output of their tools, with the ranks that use them where logs show that."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterable

from triage.base.rank_ranges import format_ranks
from triage.evidence import health
from triage.evidence.settings import HEALTH
from triage.model import Deviation, Evidence, Origin
from triage.ranks.identity import JobMap

UNHEALTHY = "device-unhealthy"
_WHY = "programs on such a device may fail, hang or be slow: drain the node, reset or replace the device"


def find_unhealthy_devices(facts: Iterable[Evidence], job: JobMap) -> list[Deviation]:
    """One deviation for each kind of fault in each dump."""
    return [
        _make_deviation(fact, job.complete(fact.source, fact.origin), faults, job)
        for fact in sorted(facts, key=lambda fact: fact.source)
        for faults in _group_faults(fact)
    ]


def _group_faults(fact: Evidence) -> Iterable[list[health.DeviceFault]]:
    """The faults of a dump; devices with the same fault are together."""
    rows = (row.split(" ") for row in fact.excerpt.split("\n") if row.startswith(HEALTH))
    lines = {name: line for name, _, line in rows}
    groups: dict[tuple[str, str], list[health.DeviceFault]] = defaultdict(list)
    for name, line in lines.items():
        fault = health.unpack_fault(fact.fields[name], int(line))
        groups[fault.kind, fault.text].append(fault)
    return groups.values()


def _make_deviation(fact: Evidence, origin: Origin, faults: list[health.DeviceFault], job: JobMap) -> Deviation:
    first = faults[0]
    users = {rank for one in faults if one.bus and (rank := job.rank_of_gpu(origin.host, one.bus)) is not None}
    if origin.host:
        where = f"on {origin.host}"
    else:
        where = f"of rank {origin.rank}" if origin.rank is not None else f"in {fact.source.rpartition('/')[2]}"
    used = f", used by {format_ranks(users)}" if users else ""
    devices = ", ".join(filter(None, map(_name_device, faults)))
    return Deviation(
        rule=UNHEALTHY,
        severity=first.severity,
        names=(f"{first.kind.lower()}-health",),
        text=f"{f'{first.kind} {devices}'.rstrip()} {where}{used}: {first.text}",
        why=_WHY,
        ranks=tuple(sorted(users)),
        hosts=(origin.host,) if origin.host else (),
        evidence=(_locate(fact, first, origin),),
    )


def _name_device(fault: health.DeviceFault) -> str:
    if fault.number is None:
        return fault.bus
    return f"{fault.number} ({fault.bus})" if fault.bus else str(fault.number)


def _locate(fact: Evidence, fault: health.DeviceFault, origin: Origin) -> Evidence:
    line = fault.line
    return dataclasses.replace(
        fact, text=fault.text, origin=origin, line=line, end_line=line, fields={}, excerpt=fault.text
    )
