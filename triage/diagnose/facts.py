"""Evidence made ready for reasoning: writers completed, doubles folded, crashes without a prefix given to the rank that
died so.
"""

from __future__ import annotations

import dataclasses
import operator
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from triage.base.lazy_re import lazy_re
from triage.diagnose.clocks import late
from triage.diagnose.memory_kills import by_memory_kill
from triage.model.evidence import Evidence, Origin
from triage.ranks.identity import JobMap
from triage.ranks.stamps import ISO, seconds

# Wrappers and echoes: what they wrap is the failure, they are none.
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
# What a crash says, by the signal that the process must then have died of.
_CANCELLED = lazy_re(rf"CANCELLED AT {ISO}")
_SIGNAL_OF_KIND = {"terminate": "SIGABRT"}
_place = operator.attrgetter("source", "offset", "kind", "text")


def settle(evidence: Sequence[Evidence], job: JobMap) -> list[Evidence]:
    """The facts of the job in a fixed order, each once for each rank that stated it."""
    return fold(place(evidence, job)[0])


def place(
    evidence: Sequence[Evidence], job: JobMap, without: frozenset[str] = frozenset()
) -> tuple[list[Evidence], frozenset[str]]:
    """The facts in a fixed order, each with all that is known of its writer, and the names of the rules that knew
    something.
    """
    facts = sorted(evidence, key=_place)
    spoken = set()
    for rule in PLACING:
        name = rule.__name__.replace("_", "-")
        if name not in without:
            placed = rule(facts, job)
            if len(placed) != len(facts) or any(map(operator.is_not, placed, facts)):
                spoken.add(name)
            facts = placed
    return facts, frozenset(spoken)


def by_process_index(evidence: list[Evidence], job: JobMap) -> list[Evidence]:
    """torch.multiprocessing.spawn names the process by its index, which is its local rank."""
    return [
        dataclasses.replace(fact, origin=dataclasses.replace(fact.origin, local_rank=int(fact.fields["process"])))
        if fact.fields.get("process", "").isdigit() and fact.origin.local_rank is None and fact.origin.rank is None
        else fact
        for fact in evidence
    ]


def by_maps(facts: list[Evidence], job: JobMap) -> list[Evidence]:
    """Pids, local ranks, hosts and file names join a line to its rank, where all files agree."""
    return [_moved(fact, job.on_one_clock(job.complete(fact.source, fact.origin))) for fact in facts]


def _moved(fact: Evidence, origin: Origin) -> Evidence:
    return fact if origin is fact.origin else dataclasses.replace(fact, origin=origin)


def by_pci_address(facts: list[Evidence], job: JobMap) -> list[Evidence]:
    """A kernel line that names a GPU by its PCI address is about the rank that uses it."""
    return [_at_bus(fact, job) if "busid" in fact.fields else fact for fact in facts]


def _at_bus(fact: Evidence, job: JobMap) -> Evidence:
    if fact.origin.rank is not None or "busid" not in fact.fields:
        return fact
    rank = job.rank_at(fact.origin.host, fact.fields["busid"])
    return fact if rank is None else dataclasses.replace(fact, origin=dataclasses.replace(fact.origin, rank=rank))


def by_stated_time(facts: list[Evidence], job: JobMap) -> list[Evidence]:
    """Slurm's lines carry no stamp, but say when they cancelled the job."""
    return [_at_stated_time(fact) if fact.kind == "scheduler" and fact.origin.time is None else fact for fact in facts]


def _at_stated_time(fact: Evidence) -> Evidence:
    stated = _CANCELLED.search(fact.text)
    when = seconds(stated, 1970) if stated else None
    return fact if when is None else dataclasses.replace(fact, origin=dataclasses.replace(fact.origin, time=when))


def stopped_by_agent(facts: list[Evidence], job: JobMap) -> list[Evidence]:
    """The exit of a process that the launcher was seen to stop is the launcher's doing."""
    stopped = {fact.fields.get("pid") for fact in facts if fact.kind == "exit" and fact.fields.get("by") == "agent"}
    if not stopped:
        return facts
    return [
        dataclasses.replace(fact, fields={**fact.fields, "by": "agent"})
        if fact.kind == "exit"
        and fact.fields.get("signal") in ("SIGTERM", "SIGKILL")
        and fact.fields.get("pid") in stopped
        and "by" not in fact.fields
        else fact
        for fact in facts
    ]


def by_exit_status(facts: list[Evidence], job: JobMap) -> list[Evidence]:
    """A crash or an exception that no prefix places belongs to the one rank that died that way, if there is just one."""
    died: dict[str, set[Origin]] = defaultdict(set)
    for fact in facts:
        if fact.kind == "exit" and fact.origin.rank is not None and fact.fields.get("by") != "agent":
            key = fact.fields.get("signal") or ("exit" if fact.fields.get("exitcode") not in ("0", None) else "")
            died[key].add(Origin(rank=fact.origin.rank, local_rank=fact.origin.local_rank, host=fact.origin.host))
    if not died:
        return facts
    return [
        _of_the_dead(fact, died) if fact.origin.rank is None and fact.origin.local_rank is None else fact
        for fact in facts
    ]


def _of_the_dead(fact: Evidence, died: Mapping[str, set[Origin]]) -> Evidence:
    owners = died.get(_death_of(fact), set())
    if len({owner.rank for owner in owners}) != 1:
        return fact
    owner = min(owners, key=lambda origin: origin.host or "")
    return dataclasses.replace(
        fact,
        origin=dataclasses.replace(
            fact.origin, rank=owner.rank, local_rank=owner.local_rank, host=fact.origin.host or owner.host
        ),
        fields={**fact.fields, "placed": "by the exit status"},
    )


def as_often_as_ranks(facts: list[Evidence], job: JobMap) -> list[Evidence]:
    """One exception, printed without a prefix as often as ranks ended with an exit code: it is theirs, each rank's
    once.
    """
    bare = [
        fact
        for fact in facts
        if fact.kind == "exception" and fact.origin.rank is None and fact.origin.local_rank is None
    ]
    bare = [fact for fact in bare if fact.fields.get("chain") == "final" and fact.fields.get("type") not in ECHOES]
    owners = _by_themselves(facts)
    if not bare or len({fact.text for fact in bare}) != 1 or sum(fact.count for fact in bare) != len(owners):
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
    gone = {id(fact) for fact in bare}
    return [fact for fact in facts if id(fact) not in gone] + placed


def last_of_all(facts: list[Evidence], job: JobMap) -> list[Evidence]:
    """One rank ended with an exit code and none by a signal: of the exceptions that one file holds without a prefix,
    the last is its.
    """
    owners = _by_themselves(facts)
    if len(owners) != 1 or any(fact.kind == "exit" and fact.fields.get("signal") for fact in facts):
        return facts
    final = [
        fact for fact in facts if fact.kind == "exception" and fact.fields.get("chain") == "final" and not is_echo(fact)
    ]
    if not final or len({fact.source for fact in final}) > 1 or any(fact.origin.rank is not None for fact in final):
        return facts
    last, owner = max(final, key=lambda fact: fact.offset), next(iter(owners.values()))
    origin = dataclasses.replace(
        last.origin, rank=owner.rank, local_rank=owner.local_rank, host=last.origin.host or owner.host
    )
    own = dataclasses.replace(last, origin=origin, fields={**last.fields, "placed": "by the exit status"})
    return [own if fact is last else fact for fact in facts]


def _by_themselves(facts: Iterable[Evidence]) -> dict[int, Origin]:
    """The ranks that ended with an exit code other than 0."""
    return {
        fact.origin.rank: fact.origin
        for fact in facts
        if fact.kind == "exit"
        and fact.origin.rank is not None
        and not fact.fields.get("signal")
        and fact.fields.get("exitcode") not in ("0", None)
    }


def is_echo(fact: Evidence) -> bool:
    """An exception that only wraps or repeats another."""
    return fact.fields.get("type") in ECHOES


def _death_of(fact: Evidence) -> str:
    if fact.kind == "fatal-python":
        return fact.fields.get("signal", "-")
    if fact.kind == "message" and fact.component == "glibc":
        return "SIGABRT"
    return _SIGNAL_OF_KIND.get(fact.kind, "-")


PLACING: tuple[Callable[[list[Evidence], JobMap], list[Evidence]], ...] = (
    by_process_index,
    by_maps,
    by_pci_address,
    by_stated_time,
    stopped_by_agent,
    by_exit_status,
    by_memory_kill,
    as_often_as_ranks,
    last_of_all,
)


def fold(facts: Iterable[Evidence]) -> list[Evidence]:
    """One fact for each (writer, text): seen twice in one file it counts twice, seen in two files (console and log)
    once.
    """
    first: dict[tuple[object, ...], Evidence] = {}
    again: dict[tuple[object, ...], list[Evidence]] = {}
    for fact in facts:
        origin = fact.origin
        writer = (
            origin.rank
            if origin.rank is not None
            else (origin.host, origin.local_rank, origin.pid if fact.kind == "exit" else None)
        )
        key = (writer, origin.attempt, fact.kind, fact.text, fact.fields.get("chain") if fact.fields else None)
        if first.setdefault(key, fact) is not fact:
            again.setdefault(key, [first[key]]).append(fact)
    folded = {**first, **{key: _as_one(same) for key, same in again.items()}} if again else first
    return sorted(folded.values(), key=_place)  # quick where it is in order already, as placed facts mostly are


def _as_one(facts: list[Evidence]) -> Evidence:
    """The best of the same fact in several places, with what the others know."""
    by_source: dict[tuple[str, bool], list[Evidence]] = {}
    for fact in facts:
        by_source.setdefault((fact.source, "recorded" in fact.fields), []).append(
            fact
        )  # the launcher quotes what the rank has printed itself
    first = min((same[0] for same in by_source.values()), key=_best)
    fields = {name: value for same in by_source.values() for fact in same for name, value in fact.fields.items()}
    fields = {**fields, **first.fields}
    time, earlier = min(
        ((fact.origin.time, late(fact)) for fact in facts if fact.origin.time is not None), default=(None, False)
    )
    if not earlier:
        fields.pop("stamp", None)
    return dataclasses.replace(
        first,
        count=max(sum(fact.count for fact in same) for same in by_source.values()),
        fields=fields,
        origin=dataclasses.replace(first.origin, time=time),
    )


def _best(fact: Evidence) -> tuple[bool, bool, int, str, int]:
    """Of the same fact in several files the one to show: first-hand, with a time, in the shortest path, first by name."""
    return ("recorded" in fact.fields, fact.origin.time is None, fact.source.count("/"), fact.source, fact.offset)
