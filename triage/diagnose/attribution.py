"""Which rank wrote a fact, where its line does not say so; and one fact where several files have the same."""

from __future__ import annotations

import dataclasses
import operator
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from triage.base.lazy_dataclass import replace
from triage.base.lazy_re import lazy_re
from triage.diagnose.endings import is_among
from triage.diagnose.evicted_pods import on_evicted_pod
from triage.diagnose.launcher_reports import is_launcher_report
from triage.diagnose.memory_kills import by_memory_kill
from triage.diagnose.pdsh_ends import without_program_ends
from triage.diagnose.srun_ends import killed_with_step, tasks_of_srun
from triage.diagnose.stated_places import by_stated_rank, by_stated_tag, own_text, with_origin
from triage.evidence.exception_chains import WRAPPER_TYPES
from triage.model import (
    CrashDetail,
    Detail,
    Evidence,
    ExceptionDetail,
    ExitDetail,
    InferenceDetail,
    KernelDetail,
    Origin,
    RankBasis,
)
from triage.ranks.identity import JobMap, short_host
from triage.ranks.places import place_each
from triage.ranks.timestamps import ISO

_CANCELLED = lazy_re(rf"CANCELLED AT {ISO}")
_EXIT_CODE = "exit code"
# One process reports the end of another: kinds of facts, and how a pid is named in them.
_REPORTS = frozenset(("exception", "message", "ending"))
_STATED_PID = lazy_re(
    r"\b(?:pid|PID|Pid|process id)(?: ?[:=] ?| |\[)(\d{2,7})\b"
    r"|\b(?:[Ss]ub)?[Pp]rocess (\d{3,7})\b(?! (?:of|out|(?:has|uses) \d))"
)
_SEGFAULT = lazy_re(r"\]: segfault at [0-9a-f]+ ip |\bgeneral protection fault ip:")
_BEFORE_ABORT = lazy_re(
    r"^Memory access fault by GPU node|^HW Exception by GPU node|\bQueue 0x[0-9a-f]+ [Aa]borting with error"
    r"|: Assertion `[^\n]{1,400}' failed\.|^pure virtual method called"
)
_LONGEST_MESSAGE = 1000
_STATED_ADDRESS = lazy_re(r"\b(?:ip|IP address)[=:] ?(\d{1,3}(?:\.\d{1,3}){3})\b")
_MOST_RANKS = 1 << 17
_place = operator.attrgetter("source", "offset", "kind", "text")


def attribute(
    evidence: Sequence[Evidence], job: JobMap, without: frozenset[str] = frozenset()
) -> tuple[list[Evidence], frozenset[str]]:
    """Return the facts in a fixed order, with all that is known of their ranks, and the rules that found something."""
    facts = sorted(evidence, key=_place)
    fired_rules = set()
    for rule in PLACING:
        name = rule.__name__.replace("_", "-")
        if name not in without:
            changed = rule(facts, job)
            if len(changed) != len(facts) or any(map(operator.is_not, changed, facts)):
                fired_rules.add(name)
            facts = changed
    return facts, frozenset(fired_rules)


def by_process_index(facts: list[Evidence], job: JobMap) -> list[Evidence]:
    """torch.multiprocessing.spawn names the process by its index, which is its local rank."""
    return [
        with_origin(fact, local_rank=fact.detail.spawn_index)
        if isinstance(fact.detail, ExceptionDetail) and fact.detail.spawn_index is not None and _has_no_rank(fact)
        else fact
        for fact in facts
    ]


def by_maps(facts: list[Evidence], job: JobMap) -> list[Evidence]:
    """A line is of the rank that its own tag names, such as `[Rank 7] loss is NaN`; else pids, local ranks, hosts and
    file names join it to its rank, where all files agree. A conclusion that names no rank is of none, whatever file it
    rests on.
    """
    facts = by_stated_tag(facts, job)
    placed = place_each(
        job.place, ((fact.source, _with_stated_host(fact, job)) for fact in facts if not _names_no_rank(fact))
    )
    places: list[tuple[Origin, RankBasis]] = [
        (fact.origin, "") if _names_no_rank(fact) else next(placed) for fact in facts
    ]
    origins = [job.with_corrected_time(origin) for origin, _ in places]
    return [
        fact if origin is fact.origin else replace(fact, origin=origin, rank_basis=fact.rank_basis or basis)
        for fact, origin, (_, basis) in zip(facts, origins, places, strict=True)
    ]


def _names_no_rank(fact: Evidence) -> bool:
    return isinstance(fact.detail, InferenceDetail) and fact.origin.rank is None


def _with_stated_host(fact: Evidence, job: JobMap) -> Origin:
    """Return the origin of a fact; where its text names its rank, with the host of that rank, not of the source."""
    origin = fact.origin
    if fact.rank_basis != "stated" or origin.rank is None or origin.host is not None:
        return origin
    return replace(origin, host=job.host_of(origin.rank))


def by_stated_process(facts: list[Evidence], job: JobMap) -> list[Evidence]:
    """A line without a rank that names the pid of one process of the job, as Ray's of a dead actor, is about it; a line
    of the kernel that names a GPU by its PCI address is about the rank that uses it.
    """
    facts = [_of_stated_pid(fact, job) if _has_no_rank(fact) and fact.kind in _REPORTS else fact for fact in facts]
    return [_at_pci_address(fact, job) for fact in facts]


def _of_stated_pid(fact: Evidence, job: JobMap) -> Evidence:
    pids = {int(match[1] or match[2]) for match in _STATED_PID.finditer(own_text(fact))} - {fact.origin.pid}
    address = _STATED_ADDRESS.search(own_text(fact))
    host = address[1] if address is not None else fact.origin.host
    ranks = {rank for pid in pids for rank in job.ranks_of_pid(host, pid)}
    return replace(with_origin(fact, rank=ranks.pop()), rank_basis="pid") if len(ranks) == 1 else fact


def _at_pci_address(fact: Evidence, job: JobMap) -> Evidence:
    if not isinstance(fact.detail, KernelDetail) or fact.origin.rank is not None:
        return fact
    rank = job.rank_of_gpu(fact.origin.host, fact.detail.pci_address)
    return fact if rank is None else replace(with_origin(fact, rank=rank), rank_basis="device")


def stopped_by_launcher(facts: list[Evidence], job: JobMap) -> list[Evidence]:
    """A process that the launcher stopped, by another of its lines, did not fail by itself, and neither did tasks that
    died by a signal after srun had ended the step.
    """
    return killed_with_step(_stopped_by_agent(without_program_ends(facts)))


def _stopped_by_agent(facts: list[Evidence]) -> list[Evidence]:
    stopped: dict[int, set[str | None]] = defaultdict(set)
    for fact in facts:
        if isinstance(fact.detail, ExitDetail) and fact.detail.stopped_by_agent and fact.origin.pid is not None:
            stopped[fact.origin.pid].add(fact.origin.host)
    return [
        replace(
            fact,
            fields={**fact.fields, "by": "agent"},
            detail=replace(fact.detail, stopped_by_agent=True),
        )
        if isinstance(fact.detail, ExitDetail)
        and _is_on_one_of(fact.origin.host, stopped.get(fact.origin.pid or 0, set()))
        and fact.detail.signal in ("SIGTERM", "SIGKILL")
        and not fact.detail.stopped_by_agent
        else fact
        for fact in facts
    ]


def _is_on_one_of(host: str | None, hosts: Collection[str | None]) -> bool:
    """Whether a process may have run on one of these hosts: pids of containers are the same on many."""
    return any(host is None or other is None or _is_same_host(host, other) for other in hosts)


def by_exit_status(facts: list[Evidence], job: JobMap) -> list[Evidence]:
    """A crash without a rank belongs to the rank that died by its signal, if there is just one; so does a process with
    an unknown pid that the kernel killed for memory, which may also be the only rank of its host.
    """
    return by_memory_kill(_crashes_of_dead_ranks(facts), job)


def _crashes_of_dead_ranks(facts: list[Evidence]) -> list[Evidence]:
    died: dict[str, set[Origin]] = defaultdict(set)
    for fact in facts:
        end, origin = fact.detail, fact.origin
        if isinstance(end, ExitDetail) and origin.rank is not None and not end.stopped_by_agent:
            key = end.signal or (_EXIT_CODE if end.exit_code else "")
            died[key].add(Origin(rank=origin.rank, local_rank=origin.local_rank, host=origin.host))
    if not died:
        return facts
    placed = [_of_dead_rank(fact, died) if _has_no_rank(fact) else fact for fact in facts]
    crashes = [own for fact, own in zip(facts, placed, strict=True) if own is not fact]
    return [_around_a_crash(fact, crashes) if fact.kind == "ending" and _has_no_rank(fact) else fact for fact in placed]


def _around_a_crash(ending: Evidence, crashes: Sequence[Evidence]) -> Evidence:
    """Return last lines as those of the rank whose crash stands among them."""
    owner = next((crash.origin for crash in crashes if is_among(crash, ending)), None)
    return ending if owner is None else _attributed(ending, owner)


def _of_dead_rank(fact: Evidence, died: Mapping[str, set[Origin]]) -> Evidence:
    owners = died.get(_signal_of(fact), set())
    if len({owner.rank for owner in owners}) != 1:
        return fact
    if fact.kind == "kernel" and not any(_is_same_host(fact.origin.host, owner.host) for owner in owners):
        return fact
    return _attributed(fact, min(owners, key=lambda origin: origin.host or ""))


def _is_same_host(host: str | None, other: str | None) -> bool:
    """Whether both are known and equal: the kernel of a machine says nothing of ranks on others."""
    return host is not None and other is not None and short_host(host) == short_host(other)


def _attributed(fact: Evidence, owner: Origin) -> Evidence:
    """Return the fact as one of this rank, which ended the way that the fact says."""
    own = with_origin(fact, rank=owner.rank, local_rank=owner.local_rank, host=fact.origin.host or owner.host)
    return replace(own, rank_basis="exit status")


def by_ended_ranks(facts: list[Evidence], job: JobMap) -> list[Evidence]:
    """An exception without a rank, printed as often as ranks ended with an exit code, is that of each of them; so is
    one printed as often as the world has ranks, which all failed. Where one rank ended so and none by a signal, the
    last exception of the only file is its own.
    """
    return _last_of_only_rank(_on_every_rank(_as_often_as_ranks(facts), job))


def by_last_exception(facts: list[Evidence], job: JobMap) -> list[Evidence]:
    """The exception of a chain that is the failure is of the rank that its last one is of."""
    lasts: dict[tuple[str, int], list[Evidence]] = defaultdict(list)
    inner = {(fact.source, fact.end) for fact in facts if _is_inner_failure(fact) and _has_no_rank(fact)}
    for fact in facts if inner else ():
        detail = fact.detail
        is_last = isinstance(detail, ExceptionDetail) and detail.chain == "final" and not _has_no_rank(fact)
        if is_last and (fact.source, fact.end) in inner:
            lasts[fact.source, fact.end].append(fact)
    if not lasts:
        return facts
    return [own for fact in facts for own in _with_origins(fact, lasts.get((fact.source, fact.end), ()))]


def _is_inner_failure(fact: Evidence) -> bool:
    return isinstance(fact.detail, ExceptionDetail) and fact.detail.chain != "final" and not fact.detail.secondary


def _with_origins(fact: Evidence, lasts: Sequence[Evidence]) -> list[Evidence]:
    if not lasts or not _is_inner_failure(fact) or not _has_no_rank(fact):
        return [fact]
    return [replace(fact, origin=last.origin, count=1, rank_basis=last.rank_basis) for last in lasts]


def _as_often_as_ranks(facts: list[Evidence]) -> list[Evidence]:
    unplaced = [fact for fact in facts if is_final_exception(fact) and _has_no_rank(fact)]
    unplaced = [fact for fact in unplaced if not _is_caught(fact)] or unplaced
    owners = _without_own_exception(_ended_with_code(facts), facts)
    if not unplaced or len({fact.text for fact in unplaced}) != 1:
        return facts
    if sum(fact.count for fact in unplaced) != len(owners):
        return facts
    hosts = {fact.origin.host for fact in unplaced}
    host = next(iter(hosts)) if len(hosts) == len(owners) == 1 else None
    first = replace(unplaced[0], count=1, origin=replace(unplaced[0].origin, host=host))
    gone = set(map(id, unplaced))
    return [fact for fact in facts if id(fact) not in gone] + [
        _attributed(first, owner) for _, owner in sorted(owners.items())
    ]


def _is_caught(fact: Evidence) -> bool:
    return isinstance(fact.detail, ExceptionDetail) and fact.detail.caught


def _on_every_rank(facts: list[Evidence], job: JobMap) -> list[Evidence]:
    """Return the facts with a traceback that stands there as often as the world has ranks as that of every rank.

    Each of them must have failed or been stopped: a rank that ended well printed none. A traceback that a logger
    printed before has a time, and is not the same.
    """
    unplaced = [fact for fact in facts if is_final_exception(fact) and _has_no_rank(fact)]
    size = job.world_size() or 0
    if size > _MOST_RANKS or sum(fact.count for fact in unplaced) != size:
        return facts
    if len({(fact.excerpt, fact.inherits_time, fact.source, fact.origin.host) for fact in unplaced}) != 1:
        return facts
    ended = {fact.origin.rank for fact in facts if isinstance(fact.detail, ExitDetail) and _is_failed(fact.detail)}
    if not set(range(size)) <= ended:
        return facts
    first = replace(unplaced[0], count=1, rank_basis="every rank")
    gone = set(map(id, unplaced))
    return [fact for fact in facts if id(fact) not in gone] + [with_origin(first, rank=rank) for rank in range(size)]


def _is_failed(end: ExitDetail) -> bool:
    return bool(end.signal or end.exit_code)


def _without_own_exception(owners: Mapping[int, Origin], facts: Iterable[Evidence]) -> dict[int, Origin]:
    """Return the ranks of which no exception is known, so that one without a rank may be theirs."""
    known = {fact.origin.rank for fact in facts if is_final_exception(fact)}
    return {rank: origin for rank, origin in owners.items() if rank not in known}


def _last_of_only_rank(facts: list[Evidence]) -> list[Evidence]:
    owners = _ended_with_code(facts)
    if len(owners) != 1 or any(isinstance(fact.detail, ExitDetail) and fact.detail.signal for fact in facts):
        return facts
    final = [fact for fact in facts if is_final_exception(fact)]
    if not final or len({fact.source for fact in final}) > 1 or any(fact.origin.rank is not None for fact in final):
        return facts
    last = max(final, key=lambda fact: fact.offset)
    own = _attributed(last, next(iter(owners.values())))
    return [own if fact is last else fact for fact in facts]


def _ended_with_code(facts: Iterable[Evidence]) -> dict[int, Origin]:
    """Return the ranks that ended with an exit code other than 0, and by no signal."""
    return {
        fact.origin.rank: fact.origin
        for fact in facts
        if isinstance(fact.detail, ExitDetail)
        and fact.origin.rank is not None
        and not fact.detail.signal
        and fact.detail.exit_code
    }


def is_final_exception(fact: Evidence) -> bool:
    """Whether the fact is the last exception of its traceback, and does not only wrap another."""
    detail = fact.detail
    is_final = isinstance(detail, ExceptionDetail) and detail.chain == "final" and detail.type not in WRAPPER_TYPES
    return is_final and not is_launcher_report(fact)


def _has_no_rank(fact: Evidence) -> bool:
    return fact.origin.rank is None and fact.origin.local_rank is None


def _signal_of(fact: Evidence) -> str:
    """Return the signal by which a process that writes this must have died; `-` where it is not known."""
    if fact.kind == "fatal-python" and isinstance(fact.detail, CrashDetail):
        return fact.detail.signal or "-"
    if fact.kind == "kernel" and _SEGFAULT.search(fact.text):
        return "SIGSEGV"
    if fact.kind == "terminate" or (fact.kind == "message" and (fact.component == "glibc" or _is_abort(fact))):
        return "SIGABRT"
    return "-"


def _is_abort(fact: Evidence) -> bool:
    """Whether a message is the last that a runtime or an assertion of C prints before it aborts its process."""
    return _BEFORE_ABORT.search(fact.text[:_LONGEST_MESSAGE]) is not None


# The ladder: what a line says of its writer comes first, then what maps join, then what the text is about.
PLACING: tuple[Callable[[list[Evidence], JobMap], list[Evidence]], ...] = (
    tasks_of_srun,
    by_process_index,
    by_maps,
    on_evicted_pod,
    by_stated_rank,
    by_stated_process,
    stopped_by_launcher,
    by_exit_status,
    by_ended_ranks,
    by_last_exception,
)


def merge_copies(facts: Iterable[Evidence]) -> list[Evidence]:
    """Return one fact for each (rank, text). Twice in one file it counts twice; in two files (console and log) once."""
    first: dict[tuple[object, ...], Evidence] = {}
    copies: dict[tuple[object, ...], list[Evidence]] = {}
    for fact in facts:
        origin = fact.origin
        writer = (
            origin.rank
            if origin.rank is not None
            else (origin.host, origin.local_rank, origin.pid if fact.kind == "exit" else None)
        )
        key = (writer, origin.attempt, fact.kind, fact.text, fact.fields.get("chain") if fact.fields else None)
        if first.setdefault(key, fact) is not fact:
            copies.setdefault(key, [first[key]]).append(fact)
    merged = {**first, **{key: _merge(same) for key, same in copies.items()}} if copies else first
    return sorted(merged.values(), key=_place)  # quick where it is in order already, as attributed facts mostly are


def _merge(copies: list[Evidence]) -> Evidence:
    """Return the best of the copies of one fact, with what the others know."""
    by_file: dict[tuple[str, bool], list[Evidence]] = {}
    for fact in copies:  # what the launcher quotes, the rank has printed itself
        by_file.setdefault((fact.source, _is_quoted(fact)), []).append(fact)
    best = min((same[0] for same in by_file.values()), key=_rank_copy)
    ordered = [best, *reversed([fact for same in by_file.values() for fact in same])]
    time, inherited = min(
        ((fact.origin.time, fact.inherits_time) for fact in copies if fact.origin.time is not None),
        default=(None, False),
    )
    return replace(
        best,
        count=max(sum(fact.count for fact in same) for same in by_file.values()),
        fields={name: value for fact in reversed(ordered) for name, value in fact.fields.items()},
        origin=replace(best.origin, time=time),
        detail=_merge_details([fact.detail for fact in ordered if fact.detail is not None]),
        inherits_time=inherited,
        rank_basis=next((fact.rank_basis for fact in ordered if fact.rank_basis), ""),
    )


def _merge_details(details: Sequence[Detail]) -> Detail | None:
    """Return the first detail, with what the others know where it has nothing."""
    if not details:
        return None
    known = {}
    for part in dataclasses.fields(details[0]):
        values = [getattr(detail, part.name) for detail in details if type(detail) is type(details[0])]
        known[part.name] = next((value for value in values if value), values[0])
    return replace(details[0], **known)


def _is_quoted(fact: Evidence) -> bool:
    return isinstance(fact.detail, ExceptionDetail) and fact.detail.quoted_by_launcher


def _rank_copy(fact: Evidence) -> tuple[bool, bool, int, str, int]:
    """Order copies, the one to show first: first-hand, with a time, in the shortest path, first by name."""
    return (_is_quoted(fact), fact.origin.time is None, fact.source.count("/"), fact.source, fact.offset)
