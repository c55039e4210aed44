"""The last report of NCCL's RAS subsystem, with the ranks of the job for its processes.

A report numbers the ranks of each communicator. The communicator of all processes has the ranks of the job; else the
logs give the rank of a process, or on a single node its GPU does.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import field

from triage.base.lazy_dataclass import dataclass
from triage.diagnose.context import RuleContext
from triage.model import Evidence, RasDetail
from triage.model.ras import RasCommunicator, RasPart, RasProcess, RasSplit

_LARGEST_WORLD = 1 << 17  # of a larger one the ranks that are not listed are not counted up


@dataclass(frozen=True)
class RasReport:
    """The last report. `ranks`: process to its rank. `is_frozen`: an earlier report had the same counts; `has_moved`:
    it had others.
    """

    fact: Evidence
    detail: RasDetail
    ranks: Mapping[object, int] = field(default_factory=dict)
    is_frozen: bool = False
    has_moved: bool = False

    def is_of_all(self, one: RasCommunicator) -> bool:
        """Whether a communicator has all processes of the job, so that its ranks are those of the job."""
        return _is_of_all(self.detail, one)

    def rank_of(self, member: RasProcess, one: RasCommunicator | None = None) -> int | None:
        """Return the rank of the job of a process, listed in a communicator or by itself."""
        if one is not None and self.is_of_all(one):
            return member.rank
        return self.ranks.get(member.key) if member.pid is not None else None

    def ranks_of(self, one: RasCommunicator, split: RasSplit, part: RasPart) -> frozenset[int]:
        """Return the ranks of a part, as far as they are known; also of the one part that is not listed."""
        named = {self.rank_of(member, one) for member in part.members}
        hidden = [each for each in split.parts if len(each.members) < each.size]
        is_whole = sum(each.size for each in split.parts) == one.size <= _LARGEST_WORLD
        if self.is_of_all(one) and hidden == [part] and is_whole:
            listed = {member.rank for each in split.parts for member in each.members}
            named |= set(range(one.size)) - listed
        return frozenset(rank for rank in named if rank is not None)


def read_last_report(context: RuleContext) -> RasReport | None:
    """Return the last report of the job; None without one."""
    facts = [fact for fact in context.facts if isinstance(fact.detail, RasDetail)]
    facts.sort(key=lambda fact: (fact.origin.time or 0.0, fact.source, fact.offset))
    if not facts:
        return None
    details = [fact.detail for fact in facts if isinstance(fact.detail, RasDetail)]
    last = details[-1]
    counts, earlier = _counts(last), [_counts(one) for one in details[:-1]]
    common = [(counts[key], one[key]) for one in earlier for key in one.keys() & counts.keys()]
    has_moved = any(now != before for now, before in common)
    is_frozen = not has_moved and (bool(common) or facts[-1].count > 1)
    return RasReport(facts[-1], last, _place_processes(context, last), is_frozen, has_moved)


def _is_of_all(detail: RasDetail, one: RasCommunicator) -> bool:
    """Whether a communicator has all GPUs; NCCL lists the largest first, where the summary of the job is missing."""
    largest = [each for each in detail.communicators if each.name.startswith("#0-")]
    return 0 < one.size == detail.gpus if detail.gpus else largest == [one] and one.size > 0


def _counts(detail: RasDetail) -> dict[tuple[str, str], frozenset[tuple[str, int]]]:
    """Return (communicator, operation) to the counts and how many ranks have them."""
    return {
        (one.hash, split.subject): frozenset((part.value, part.size) for part in split.parts)
        for one in detail.communicators
        for split in one.splits
        if split.is_count
    }


def _place_processes(context: RuleContext, detail: RasDetail) -> dict[object, int]:
    """Return the key of each process to its rank; a process to which two ranks are given has none."""
    ranks: dict[object, set[int]] = defaultdict(set)
    for one in detail.communicators:
        if _is_of_all(detail, one):
            for member in one.members:
                if member.rank is not None:
                    ranks[member.key].add(member.rank)
    listed = {member.key: member for member in _list_processes(detail)}
    for key, member in listed.items():
        if key not in ranks:
            ranks[key] |= _find_rank(context, detail, member)
    return {key: next(iter(each)) for key, each in ranks.items() if len(each) == 1}


def _list_processes(detail: RasDetail) -> Iterator[RasProcess]:
    yield from (*detail.dead, *detail.silent)
    for one in detail.communicators:
        yield from one.members


def _find_rank(context: RuleContext, detail: RasDetail, member: RasProcess) -> set[int]:
    """Return the rank that the logs give to a process, else the GPU where one node has one process for each."""
    known = context.pids.get(member.pid, ()) if member.pid is not None else ()
    if len(known) == 1:
        return set(known)
    is_plain = detail.nodes == 1 and detail.processes == detail.gpus and member.gpu.isdecimal()
    return {int(member.gpu)} if is_plain and int(member.gpu) < detail.gpus else set()
