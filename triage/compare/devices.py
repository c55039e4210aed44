"""GPUs and NPUs that a dump of their tool calls unwell, with the rank that uses them where the logs tell which that is."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterable

from triage.compare.words import say_ranks
from triage.evidence import health
from triage.evidence.settings import HEALTH
from triage.model.environment import Deviation
from triage.model.evidence import Evidence, Origin
from triage.ranks.identity import JobMap

UNHEALTHY = "device-unhealthy"
_WHY = "what runs on such a device may fail, hang or be slow: drain the node, reset or replace the device"


def unhealthy(facts: Iterable[Evidence], job: JobMap) -> list[Deviation]:
    """One deviation for each thing that ails devices of one dump."""
    return [
        _deviation(fact, job.complete(fact.source, fact.origin), same, job)
        for fact in sorted(facts, key=lambda fact: fact.source)
        for same in _alike(fact)
    ]


def _alike(fact: Evidence) -> Iterable[list[health.Trouble]]:
    lines = {
        name: line for row in fact.excerpt.split("\n") if row.startswith(HEALTH) for name, _, line in [row.split(" ")]
    }
    found: dict[tuple[str, str], list[health.Trouble]] = defaultdict(list)
    for name, line in lines.items():
        trouble = health.unpacked(fact.fields[name], int(line))
        found[trouble.kind, trouble.text].append(trouble)
    return found.values()


def _deviation(fact: Evidence, origin: Origin, same: list[health.Trouble], job: JobMap) -> Deviation:
    first = same[0]
    users = {rank for one in same if one.bus and (rank := job.rank_at(origin.host, one.bus)) is not None}
    where = (
        f" on {origin.host}"
        if origin.host
        else f" of rank {origin.rank}"
        if origin.rank is not None
        else f" in {fact.source.rpartition('/')[2]}"
    )
    used = f", used by {say_ranks(sorted(users))}" if users else ""
    named = " ".join([first.kind, ", ".join(filter(None, map(_named, same)))]).rstrip()
    text = f"{named}{where}{used}: {first.text}"
    return Deviation(
        rule=UNHEALTHY,
        severity=first.severity,
        names=(f"{first.kind.lower()}-health",),
        text=text,
        why=_WHY,
        ranks=tuple(sorted(users)),
        hosts=(origin.host,) if origin.host else (),
        evidence=(_place(fact, first, origin),),
    )


def _named(one: health.Trouble) -> str:
    return one.bus if one.number is None else f"{one.number} ({one.bus})" if one.bus else str(one.number)


def _place(fact: Evidence, one: health.Trouble, origin: Origin) -> Evidence:
    return dataclasses.replace(
        fact, text=one.text, origin=origin, line=one.line, end_line=one.line, fields={}, excerpt=one.text
    )
