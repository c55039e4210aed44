"""Rules about what the kernel, the scheduler and the GPUs say: who killed a process, which fault of a GPU was the
first, what is no fault.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable

from triage.base.lazy_re import lazy_re
from triage.diagnose.candidates import Candidate
from triage.diagnose.graph import Case, name
from triage.diagnose.memory_kills import may_be_rank, process, was_killed
from triage.diagnose.say import say_ranks
from triage.diagnose.scene import LONG, Scene
from triage.model.evidence import Evidence
from triage.ranks.identity import short

# Faults of one GPU that the kernel reports within so many seconds are one burst.
_BURST = 300.0
_NONFATAL = lazy_re(r"\bNonfatal\b")
_CAUSED_BY = lazy_re(r"caused by previous Xid (\d+)")
_INNER = lazy_re(r"\b[A-Z][A-Z0-9]9999\b")
_MOST = 4096  # hosts of one range
_HOSTS = lazy_re(r"([^\[\],]+)(?:\[([\d,-]{1,999})\])?")
_CODE = lazy_re(r"\bE[A-Z0-9]\d{4}\b")


def failed_node(case: Case) -> None:
    """Where the scheduler names the node that it lost, the failure began there, and all other ranks were stopped
    because of it.
    """
    for lost in case.candidates:
        if lost.tells != "node-lost":
            continue
        nodes = {node for fact in lost.facts for node in _nodes(fact.fields.get("node") or fact.fields.get("down", ""))}
        ranks = {rank for rank, hosts in case.scene.hosts.items() if nodes.intersection(hosts)}
        told = f"{' and '.join(sorted(nodes)[:4])} failed"
        if ranks:
            unknown = case.scene.everybody - case.scene.hosts.keys()
            why = f"{told}, where {say_ranks(ranks)} ran; the others were stopped because of it" + (
                f" (no file says where {say_ranks(unknown)} ran)" if unknown else ""
            )
        else:
            why = (
                f"{told}; no file says which ranks ran there"
                if nodes
                else "no line names the node that failed; a node in the line reports it"
            )
        case.suspect(lost, ranks, why)


def _nodes(text: str) -> set[str]:
    """The hosts of one of Slurm's lists, by their short names: `node7`, `node[2-4,8],login1`."""
    names: set[str] = set()
    for prefix, numbers in _HOSTS.findall(text):
        for part in numbers.split(","):
            low, _, high = part.partition("-")
            if not low.isdecimal():
                names.add(short(prefix))
                continue
            last = min(int(high), int(low) + _MOST) if high.isdecimal() else int(low)
            names.update(short(f"{prefix}{number:0{len(low)}}") for number in range(int(low), last + 1))
    return names


def kill_confirmed(case: Case) -> None:
    """A SIGKILL is unconfirmed until the kernel, a cgroup, the scheduler or a container says why; whoever does decides
    the cause.
    """
    for killed in case.candidates:
        if killed.tells != "killed":
            continue
        said = [case.by_id[cause] for cause in killed.explained_by if cause in case.by_id]
        said = [cause for cause in said if any(fact.kind in ("kernel", "scheduler") for fact in cause.facts)]
        for witness in said:
            _place(case, witness, killed)
            if witness.ranks or not any(map(process, witness.facts)):
                speakers = sorted({fact.component for fact in witness.facts if fact.kind in ("kernel", "scheduler")})
                witness.why.append(
                    f"{' and '.join(speakers)} says why {say_ranks(killed.ranks)} {_was(killed.ranks)} killed"
                )
        if not said and not killed.explained_by:
            killed.why.append(
                "nothing in the files says who sent SIGKILL: the logs of kernel, scheduler and container would"
            )


def _place(case: Case, witness: Candidate, killed: Candidate) -> None:
    """A witness that names no rank and no process speaks of those that were killed on its host."""
    if witness.ranks or witness.suspects is not None or any(fact.fields.get("pid") for fact in witness.facts):
        return
    ranks = {
        fact.origin.rank
        for fact in killed.facts
        if fact.origin.rank is not None and (not witness.hosts or fact.origin.host in (None, *witness.hosts))
    }
    if ranks:
        case.suspect(witness, ranks, f"it names no process; {say_ranks(ranks)} {_was(ranks)} killed there")


def nameless_kill(case: Case) -> None:
    """The kernel killed a process for memory, with a pid that is of no rank in the files: it may be one of those that
    died by SIGKILL on that
    host, or that ran there."""
    for candidate in case.candidates:
        killed = {
            (fact.origin.host or "", *found): fact
            for fact in candidate.facts
            if fact.origin.rank is None and (found := process(fact))
        }
        for host, pid, program in sorted(killed):
            one = f"the kernel{f' of {host}' if host else ''} killed process {pid} ({program}), a pid that is of no rank in the files"
            there = {rank for rank, hosts in case.scene.hosts.items() if host in hosts}
            dead = {fact.origin.rank for fact in case.scene.exits if fact.origin.rank is not None and was_killed(fact)}
            dead = {rank for rank in dead if not host or rank in there or rank not in case.scene.hosts}
            if not may_be_rank(program) or not (dead or there):
                candidate.why.append(one)
            else:
                what = "died by SIGKILL" if dead else "ran"
                candidate.why.append(
                    f"{one}: it may be {'one of ' if len(dead or there) > 1 else ''}{say_ranks(dead or there)}, which {what} there"
                )


def _was(ranks: Collection[int]) -> str:
    return "was" if len(ranks) == 1 else "were"


def first_of_burst(case: Case) -> None:
    """Of the faults that the kernel reports of one GPU in a burst, the first explains the others; the driver may say so
    itself.
    """
    faults = [
        candidate
        for candidate in case.candidates
        if candidate.signature and any("xid" in fact.fields for fact in candidate.facts)
    ]
    for later in faults:
        said = {number for fact in later.facts for number in _CAUSED_BY.findall(fact.text)}
        for first in faults:
            if first is later:
                continue
            if said & {fact.fields.get("xid", "") for fact in first.facts}:
                case.link(first, later, f"the driver itself says that Xid {' '.join(sorted(said))} caused it")
            elif first.role in ("cause", "either") and later.role != "cause" and _leads(first.facts, later.facts):
                case.link(first, later, f"{name(first)} was the first fault of that GPU in the burst")


def _leads(first: Iterable[Evidence], later: Iterable[Evidence]) -> bool:
    """On every GPU of `later`, did a fault of `first` come before, in the same log and within a burst?"""
    begun = {place: fact for fact in sorted(first, key=lambda fact: -fact.offset) if (place := _gpu(fact))}
    then = [(begun.get(place), fact) for fact in later if (place := _gpu(fact))]
    return bool(then) and all(
        before is not None and before.offset < fact.offset and _near(before, fact) for before, fact in then
    )


def _gpu(fact: Evidence) -> tuple[str, str] | None:
    return (fact.source, fact.fields["busid"]) if "busid" in fact.fields else None


def _near(one: Evidence, other: Evidence) -> bool:
    return one.origin.time is None or other.origin.time is None or other.origin.time - one.origin.time <= _BURST


def nonfatal(case: Case) -> None:
    """A fault that the driver calls Nonfatal is a warning: anything else comes before it."""
    for candidate in case.candidates:
        if candidate.signature and all(_NONFATAL.search(fact.text) for fact in candidate.facts):
            candidate.lowered = "the driver calls it Nonfatal: a warning, not a cause"


def first_cuda_error(case: Case) -> None:
    """CUDA errors surface late and elsewhere: of several ranks that report the same one, the first counts."""
    for candidate in case.candidates:
        if (
            candidate.signature is None
            or candidate.signature.domain != "cuda"
            or len(candidate.shown_by) < 2
            or candidate.suspects is not None
        ):
            continue
        first = _first_ranks(case, candidate)
        if first:
            case.suspect(
                candidate,
                first,
                f"{say_ranks(first)} reported it first; a CUDA error surfaces late, and then on others as well",
            )


def _first_ranks(case: Case, candidate: Candidate) -> set[int]:
    """The ranks that report clearly before all others; empty if there are none, or their times cannot be compared."""
    times: dict[int, Span] = {}
    clocks = set()
    for fact in candidate.facts:
        span = case.scene.clocks.span(fact)
        if span is not None and fact.origin.rank is not None:
            clocks.add(span[0])
            mine = (span[2], span[1], fact.origin.host or "")
            times[fact.origin.rank] = min(times.get(fact.origin.rank, mine), mine)
    if len(clocks) != 1 or set(times) != set(candidate.shown_by):
        return set()
    if all(latest == math.inf for latest, _, _ in times.values()):
        return _silent_first(case.scene, candidate.shown_by)
    first = min(times.values())
    early = {rank for rank, span in times.items() if not _clearly(case, first, span)}
    rest = [span for rank, span in times.items() if rank not in early]
    last = max(times[rank] for rank in early)
    return early if rest and all(_clearly(case, last, span) for span in rest) else set()


def _silent_first(scene: Scene, ranks: Collection[int]) -> set[int]:
    """The lines have no time of their own: ranks that report their steps, and wrote their last line long before all
    others.
    """
    last = {rank: scene.last_time[rank] for rank in ranks if rank in scene.last_time and rank in scene.last_step}
    if len(last) < len(ranks) or len({clock for clock, _ in last.values()}) != 1:
        return set()
    first = min(when for _, when in last.values())
    early = {rank: when for rank, (_, when) in last.items() if when <= first + LONG}
    rest = [when for rank, (_, when) in last.items() if rank not in early]
    return set(early) if rest and min(rest) > max(early.values()) + LONG else set()


Span = tuple[float, float, str]
"""The latest and the earliest time at which a rank can have reported, and its host."""


def _clearly(case: Case, one: Span, other: Span) -> bool:
    """Is the first before the second, as far as the clocks can tell?"""
    return one[0] < other[1] - case.scene.clocks.doubt(one[2], other[2])


def inner_error(case: Case) -> None:
    """CANN's codes that end in 9999 say only that something failed inside: they carry no cause."""
    for candidate in (one for one in case.candidates if one.signature is None):
        codes = {code for fact in candidate.facts for code in _CODE.findall(fact.text)}
        if codes and all(_INNER.fullmatch(code) for code in codes):
            candidate.lowered = f"{', '.join(sorted(codes))} says only that something failed inside"


def all_ranks(case: Case) -> None:
    """The same error on all ranks at once is one of the program or the configuration (of hardware: of what they share),
    not of a rank.
    """
    everybody = case.scene.everybody
    for candidate in case.candidates:
        if (
            candidate.suspects is not None
            or candidate.role == "symptom"
            or candidate.inferred
            or len(candidate.shown_by) < 2
        ):
            continue
        if len(candidate.shown_by) > 2 and set(candidate.shown_by) >= everybody:
            common = (
                "a fault of something that they share"
                if _of_a_machine(candidate)
                else "a program or configuration error"
            )
            candidate.why.append(
                f"all ranks ({say_ranks(candidate.shown_by)}) show it: {common} rather than a bad rank"
            )
        elif everybody:
            candidate.why.append(f"{say_ranks(candidate.shown_by)} show it, of {len(everybody)}")


def _of_a_machine(candidate: Candidate) -> bool:
    return candidate.signature is not None and candidate.signature.domain in ("gpu", "fabric", "host", "slurm")
