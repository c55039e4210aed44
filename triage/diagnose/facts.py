"""Evidence made ready for reasoning: writers completed, doubles folded, crashes without a prefix given to the rank that died so."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterable, Sequence

from triage.model import Evidence, Origin
from triage.ranks.identity import JobMap

# Wrappers and echoes: what they wrap is the failure, they are none.
# What a crash says, by the signal that the process must then have died of.
ECHOES = frozenset(
    (
        "KeyboardInterrupt",
        "SignalException",
        "ChildFailedError",
        "ProcessRaisedException",
        "ProcessExitedException",
        "SystemExit",
        "WorkerGroupFailureException",
    )
)
_SIGNAL_OF_KIND = {"terminate": "SIGABRT"}


def settle(evidence: Sequence[Evidence], job: JobMap) -> list[Evidence]:
    """The facts of the job in a fixed order, each once for each rank that stated it."""
    ranks = _spawned(sorted(evidence, key=lambda fact: (fact.source, fact.offset, fact.kind, fact.text)))
    completed = [dataclasses.replace(fact, origin=job.on_one_clock(job.complete(fact.source, fact.origin))) for fact in ranks]
    completed = [_by_bus(fact, job) for fact in completed]
    completed = _stopped_by_agent(completed)
    completed = _without_prefix(completed)
    return _fold(_all_at_once(completed))


def _spawned(evidence: Sequence[Evidence]) -> list[Evidence]:
    """torch.multiprocessing.spawn names the process by its index, which is its local rank."""
    return [
        dataclasses.replace(fact, origin=dataclasses.replace(fact.origin, local_rank=int(fact.fields["process"])))
        if fact.fields.get("process", "").isdigit() and fact.origin.local_rank is None and fact.origin.rank is None
        else fact
        for fact in evidence
    ]


def _by_bus(fact: Evidence, job: JobMap) -> Evidence:
    """A kernel line that names a GPU by its PCI address is about the rank that uses it."""
    if fact.origin.rank is not None or "busid" not in fact.fields:
        return fact
    rank = job.rank_at(fact.origin.host, fact.fields["busid"])
    return fact if rank is None else dataclasses.replace(fact, origin=dataclasses.replace(fact.origin, rank=rank))


def _stopped_by_agent(facts: list[Evidence]) -> list[Evidence]:
    """The exit of a process that the launcher was seen to stop is the launcher's doing."""
    stopped = {fact.fields.get("pid") for fact in facts if fact.kind == "exit" and fact.fields.get("by") == "agent"}
    return [
        dataclasses.replace(fact, fields={**fact.fields, "by": "agent"})
        if fact.kind == "exit"
        and fact.fields.get("signal") in ("SIGTERM", "SIGKILL")
        and fact.fields.get("pid") in stopped
        and "by" not in fact.fields
        else fact
        for fact in facts
    ]


def _without_prefix(facts: list[Evidence]) -> list[Evidence]:
    """A crash or an exception that no prefix places belongs to the one rank that died that way, if there is just one."""
    died: dict[str, set[Origin]] = defaultdict(set)
    for fact in facts:
        if fact.kind == "exit" and fact.origin.rank is not None and fact.fields.get("by") != "agent":
            key = fact.fields.get("signal") or ("exit" if fact.fields.get("exitcode") not in ("0", None) else "")
            died[key].add(Origin(rank=fact.origin.rank, local_rank=fact.origin.local_rank, host=fact.origin.host))
    placed = []
    for fact in facts:
        owners = died.get(_death_of(fact), set())
        if fact.origin.rank is None and fact.origin.local_rank is None and len({owner.rank for owner in owners}) == 1:
            owner = min(owners, key=lambda origin: origin.host or "")
            fact = dataclasses.replace(
                fact,
                origin=dataclasses.replace(fact.origin, rank=owner.rank, local_rank=owner.local_rank, host=fact.origin.host or owner.host),
                fields={**fact.fields, "placed": "by the exit status"},
            )
        placed.append(fact)
    return placed


def _all_at_once(facts: list[Evidence]) -> list[Evidence]:
    """One exception, printed without a prefix as often as ranks ended with an exit code: it is theirs, each rank's once."""
    bare = [fact for fact in facts if fact.kind == "exception" and fact.origin.rank is None and fact.origin.local_rank is None]
    bare = [fact for fact in bare if fact.fields.get("chain") == "final" and fact.fields.get("type") not in ECHOES]
    owners = {
        fact.origin.rank: fact.origin
        for fact in facts
        if fact.kind == "exit"
        and fact.origin.rank is not None
        and not fact.fields.get("signal")
        and fact.fields.get("exitcode") not in ("0", None)
    }
    if len({fact.text for fact in bare}) != 1 or sum(fact.count for fact in bare) != len(owners):
        return facts
    first = bare[0]
    placed = [
        dataclasses.replace(
            first,
            count=1,
            origin=dataclasses.replace(first.origin, rank=rank, local_rank=owner.local_rank, host=owner.host),
            fields={**first.fields, "placed": "by the exit status"},
        )
        for rank, owner in sorted(owners.items())
    ]
    return [fact for fact in facts if fact not in bare] + placed


def _death_of(fact: Evidence) -> str:
    if fact.kind == "fatal-python":
        return fact.fields.get("signal", "-")
    if fact.kind == "message" and fact.component == "glibc":
        return "SIGABRT"
    return _SIGNAL_OF_KIND.get(fact.kind, "-")


def _fold(facts: Iterable[Evidence]) -> list[Evidence]:
    """One fact for each (writer, text): seen twice in one file it counts twice, seen in two files (console and log) once."""
    groups: dict[tuple[object, ...], dict[tuple[str, bool], list[Evidence]]] = {}
    for fact in facts:
        origin = fact.origin
        writer = origin.rank if origin.rank is not None else (origin.host, origin.local_rank, origin.pid if fact.kind == "exit" else None)
        place = (fact.source, "recorded" in fact.fields)  # the launcher quotes what the rank has printed itself
        groups.setdefault((writer, origin.attempt, fact.kind, fact.text, fact.fields.get("chain")), {}).setdefault(place, []).append(fact)
    folded = []
    for by_source in groups.values():
        first = min((same[0] for same in by_source.values()), key=_best)
        fields = {name: value for same in by_source.values() for fact in same for name, value in fact.fields.items()}
        times = [fact.origin.time for same in by_source.values() for fact in same if fact.origin.time is not None]
        folded.append(
            dataclasses.replace(
                first,
                count=max(sum(fact.count for fact in same) for same in by_source.values()),
                fields={**fields, **first.fields},
                origin=dataclasses.replace(first.origin, time=min(times, default=None)),
            )
        )
    return sorted(folded, key=lambda fact: (fact.source, fact.offset, fact.kind, fact.text))


def _best(fact: Evidence) -> tuple[bool, bool, int, str, int]:
    """Of the same fact in several files the one to show: first-hand, with a time, in the shortest path, first by name."""
    return ("recorded" in fact.fields, fact.origin.time is None, fact.source.count("/"), fact.source, fact.offset)
