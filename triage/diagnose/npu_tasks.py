"""What HCCL writes of tasks and links that did not end: who waits for whom, in which call of which group.

HCCL's handler of task exceptions writes one failed task as several lines of plog: the base information (tag), the
parameters of a notify (remote rank), the group with the member's number, and the call (index, count, data type). Error
EI0002 has the same in one message. A link that was not connected is a row of the box LINK_ERROR_INFO, the parameters of
`createLink`, or a result of HCCL's own probe; inside a host, a device whose memory could not be opened. Numbers are
those of members of a group, not ranks.

Format: hicann/hcomm src/legacy/ascend910 (task_exception_handler.cc, hccl_socket_manager.cc, transport_manager.cc,
detect_connect_anomalies.cc); hicann/hccl docs/en/user_guide/fault_diagnosis.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import field, replace

from triage.base.lazy_dataclass import dataclass
from triage.base.lazy_re import lazy_re
from triage.diagnose.context import RuleContext
from triage.model.evidence import Evidence

_TASK_HINTS = ("Task run failed, ", "FFTS+ run failed, ")
"""What stands before each part of a failed task."""
_TIMEOUT_CODE = "EI0002"
_FIRST_PART = lazy_re(r"[,.] ?(?:base|op) information")
_TAG = lazy_re(r"\btag\[([^\]\n]{1,400})\]")
_OPERATION = lazy_re(r"^(?:Hcom|worldComm|world)?([A-Za-z]{2,40})_")
_ENDS = lazy_re(r"^worldCommSendRecv_(\d{1,7})_(\d{1,7})_")
_GROUP = lazy_re(r"\bgroup:\[([^\]\n]{1,300})\]")
_MEMBER = lazy_re(r"\brankSize\[(\d{1,7})\], ?rankId\[(\d{1,7})\]")
_PEER = lazy_re(r"(?:remote rank:? ?|[Ww]aiting peer rank:? ?)\[?(?:(\d{1,7})\b|local\])")
_CALL = lazy_re(r"\bindex\[(\d{1,19})\](?:[^\n]{0,20}?\bcount\[(\d{1,19})\])?")
_DATA_TYPE = lazy_re(r"\bdataType\[(\w{1,40})\]")
_ENTRY = lazy_re(
    r"Entry-HcclCommInit\w{0,60}:ranks\[(\d{1,7})\], rank\[(\d{1,7})\][^\n]{0,200}?\bidentifier\[([^\]\n]{1,300})\]"
)
_LINK = lazy_re(
    r"crea(?:te|k)Link para:[^\n]{0,160}?remoteUserrank\[(?P<peer>\d{1,7})\]"
    r"(?:-remote_?[iI]p_?[aA]ddr\[(?P<address>[^/\]\n]{1,64})(?:/(?P<device>\d{1,4}))?\])?(?:[^\n]{0,200}?\btag\[(?P<tag>[^\]\n]{1,400}))?"
)
_ROW = lazy_re(
    r"\|\s{1,9}[\dA-Fa-f.:]{2,64}\((?P<peer>\d{1,7})\)\s{0,9}\|(?:[^\n|]{0,40}\|)?"  # older releases state no port
    r"\s{0,9}[\dA-Fa-f.:]{2,64}\((?P<own>\d{1,7})\)\s{0,9}\|"
)
_PROBE = lazy_re(
    r"srcRank \(server (?P<source>[^,\s]{1,64}), device ID (?P<source_device>\d{1,4})\) fails to connect to "
    r"dstRank \(server (?P<target>[^,\s]{1,64}), device ID (?P<target_devices>[\d,]{1,200})\)"
)
_PEER_ACCESS = lazy_re(r"connected p2p timeout[^\n]{0,80}?\bremote physic id:(\d{1,4})")
_LINK_HINT = "Link para:"
_ROW_HINTS = ("| time out |", "| no connect |")
_LONGEST_TEXT = 4000
_LEAST_IN_ORDER = 2  # devices of a host whose ranks show the order of all ranks there


@dataclass(frozen=True, slots=True)
class FailedTask:
    """A task of a collective that did not end on a rank.

    `group` is the communicator, `member` the rank's number in it, `size` its size, and `peer` the number of the member
    whose signal did not come; -1 and empty: not stated. `is_local`: the signal was one of the rank's own device.
    """

    rank: int
    fact: Evidence
    tag: str = ""
    group: str = ""
    member: int = -1
    size: int = -1
    peer: int = -1
    index: int = -1
    count: int = -1
    data_type: str = ""
    is_local: bool = False

    @property
    def operation(self) -> str:
        """Name of the collective, as the tag begins; empty where it does not say it."""
        match = _OPERATION.match(self.tag)
        return match[1] if match else ""

    @property
    def transfer_end(self) -> int:
        """The member at the other end of a transfer, whose tag names both ends; -1 of other calls."""
        ends = _ENDS.match(self.tag) if self.member >= 0 else None
        return -1 if ends is None else int(ends[2] if self.member == int(ends[1]) else ends[1])

    @property
    def awaited(self) -> int:
        """The member for which it waits, as stated, or as the tag of a transfer says."""
        return self.peer if self.peer >= 0 else self.transfer_end


@dataclass(frozen=True)
class Members:
    """The ranks of the members of communicators, by (communicator, number), and the sizes of communicators."""

    ranks: Mapping[tuple[str, int], int] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)

    def find_group(self, tag: str) -> str:
        """Return the communicator whose name stands in a tag; empty: none that is known."""
        return max((name for name in self.sizes if name in tag), key=len, default="")


@dataclass(frozen=True, slots=True)
class Wait:
    """A rank that waits for another one."""

    rank: int
    awaited: int
    fact: Evidence


@dataclass(frozen=True, slots=True)
class NpuReports:
    """What all ranks wrote: the first failed task of each rank, all waits whose ends are known, and the members."""

    tasks: Mapping[int, FailedTask]
    waits: Sequence[Wait]
    members: Members


def read_npu_reports(context: RuleContext) -> NpuReports:
    """Return the failed tasks and the waits of a job."""
    parts = [fact for hint in _TASK_HINTS for fact in context.facts_with(hint) if _has_rank(fact)]
    parts += [fact for fact in context.facts_with(_TIMEOUT_CODE) if _has_rank(fact) and _states_tag(fact)]
    tasks = list(_read_tasks(parts))
    members = _read_members(context, tasks)
    tasks = [replace(one, group=one.group or members.find_group(one.tag)) for one in tasks]
    first: dict[int, FailedTask] = {}
    for one in tasks:
        first.setdefault(one.rank, one)
    reporters = _count_reporters(tasks)
    waits = [_wait_of_task(context, members, reporters, one) for one in tasks if one.awaited >= 0]
    waits += [*_read_links(context, members), *_read_probes(context), *_read_peer_access(context)]
    return NpuReports(first, tuple(one for one in waits if one is not None and one.rank != one.awaited), members)


def _states_tag(fact: Evidence) -> bool:
    return _TAG.search(fact.text[:_LONGEST_TEXT]) is not None


def _has_rank(fact: Evidence) -> bool:
    return fact.origin.rank is not None and fact.kind not in ("inference", "ending")


def _read_tasks(facts: Iterable[Evidence]) -> Iterator[FailedTask]:
    """Yield the tasks, each from its lines, in the order of each source."""
    by_source: dict[tuple[str, int], list[Evidence]] = defaultdict(list)
    for fact in facts:
        by_source[(fact.source, fact.origin.rank or 0)].append(fact)
    for (_, rank), lines in sorted(by_source.items()):
        task: FailedTask | None = None
        for fact in sorted(lines, key=lambda one: one.offset):
            if task is None or _FIRST_PART.search(fact.text[:_LONGEST_TEXT]):
                if task is not None:
                    yield task
                task = FailedTask(rank, fact)
            task = _add_part(task, fact.text[:_LONGEST_TEXT])
        if task is not None:
            yield task


def _add_part(task: FailedTask, text: str) -> FailedTask:
    """Return the task with what one of its lines says."""
    tag, group, member = _TAG.search(text), _GROUP.search(text), _MEMBER.search(text)
    peer, call, data_type = _PEER.search(text), _CALL.search(text), _DATA_TYPE.search(text)
    return replace(
        task,
        tag=task.tag or (tag[1] if tag else ""),
        group=task.group or (group[1] if group else ""),
        size=int(member[1]) if member else task.size,
        member=int(member[2]) if member else task.member,
        peer=int(peer[1]) if peer and peer[1] else task.peer,
        is_local=task.is_local or (peer is not None and not peer[1]),
        index=int(call[1]) if call else task.index,
        count=int(call[2]) if call and call[2] else task.count,
        data_type=task.data_type or (data_type[1] if data_type else ""),
    )


def _read_members(context: RuleContext, tasks: Iterable[FailedTask]) -> Members:
    """Return who the members of communicators are, as their entries and their failed tasks say."""
    ranks: dict[tuple[str, int], int] = {}
    sizes: dict[str, int] = {}
    for fact in context.facts_with("Entry-Hccl"):
        entry = _ENTRY.search(fact.text)
        if entry is not None and fact.origin.rank is not None and fact.kind != "ending":
            ranks[(entry[3], int(entry[2]))], sizes[entry[3]] = fact.origin.rank, int(entry[1])
    for task in tasks:
        if task.group and task.member >= 0:
            ranks[(task.group, task.member)], sizes[task.group] = task.rank, task.size
    return Members(ranks, sizes)


def _count_reporters(tasks: Iterable[FailedTask]) -> dict[str, Set[int]]:
    """Return by tag, without what stands before the communicator, the ranks with a failed task."""
    reporters: dict[str, set[int]] = defaultdict(set)
    for task in tasks:
        reporters[_name_of_unknown_group(task.tag)].add(task.rank)
    return dict(reporters)


def _name_of_unknown_group(tag: str) -> str:
    return tag.partition("_")[2]


def _resolve(context: RuleContext, members: Members, group: str, number: int) -> int | None:
    """Return the rank of a member of a communicator that is known; those of the one of all ranks are ranks."""
    rank = members.ranks.get((group, number))
    if rank is None and group and members.sizes.get(group) == context.world_size:
        return number
    return rank


def _wait_of_task(
    context: RuleContext, members: Members, reporters: Mapping[str, Set[int]], task: FailedTask
) -> Wait | None:
    """Return the wait of a task. A communicator that is not known is that of all ranks if most of them report it."""
    awaited = _resolve(context, members, task.group, task.awaited)
    if awaited is None and not task.group:
        sharing = reporters[_name_of_unknown_group(task.tag)]
        if 2 * len(sharing) > len(context.all_ranks) and _completes_ranks(context, task.awaited):
            awaited = task.awaited
    return Wait(task.rank, awaited, task.fact) if awaited is not None else None


def _completes_ranks(context: RuleContext, rank: int) -> bool:
    """Whether a rank is one of the job: known, or the only one that the known ones lack between 0 and the last."""
    known = context.all_ranks | {rank}
    return rank in context.all_ranks or (context.world_size is None and len(known) == max(known) + 1)


def _read_links(context: RuleContext, members: Members) -> list[Wait]:
    """Return the links that ranks could not set up: those of the parameters, else those of the box."""
    links = [
        (fact, _find_link_end(context, members, fact)) for fact in context.facts_with(_LINK_HINT) if _has_rank(fact)
    ]
    waits = [Wait(fact.origin.rank or 0, rank, fact) for fact, rank in links if rank is not None]
    return waits or _read_rows(context)


def _find_link_end(context: RuleContext, members: Members, fact: Evidence) -> int | None:
    """Return the rank at the other end of a link: by its number in the group of the tag, else by its device."""
    match = _LINK.search(fact.text[:_LONGEST_TEXT])
    if match is None:
        return None
    rank = _resolve(context, members, members.find_group(match["tag"] or ""), int(match["peer"]))
    if rank is None and match["device"]:
        return find_rank_at(context, match["address"], int(match["device"]))
    return rank


def find_linked_rank(context: RuleContext, fact: Evidence) -> int | None:
    """Return the rank at the other end of the link that the writer of a fact names next."""
    links = context.once(_links_by_source).get(fact.source, ())
    following = next((one for one in links if one.offset > fact.offset), None)
    if following is None:
        return None
    return _find_link_end(context, context.once(_read_entered_members), following)


def _links_by_source(context: RuleContext) -> dict[str, list[Evidence]]:
    links: dict[str, list[Evidence]] = defaultdict(list)
    for fact in sorted(context.facts_with(_LINK_HINT), key=lambda one: one.offset):
        if fact.kind != "ending":
            links[fact.source].append(fact)
    return dict(links)


def _read_entered_members(context: RuleContext) -> Members:
    return _read_members(context, ())


def _read_rows(context: RuleContext) -> list[Wait]:
    """Return the rows of the boxes, where the numbers of all writers are their ranks: else the group is not known."""
    rows = [
        (fact, row)
        for hint in _ROW_HINTS
        for fact in context.facts_with(hint)
        if _has_rank(fact)
        for row in _ROW.finditer(fact.text[:_LONGEST_TEXT])
    ]
    if any(fact.origin.rank != int(row["own"]) for fact, row in rows):
        return []
    return [
        Wait(int(row["own"]), int(row["peer"]), fact) for fact, row in rows if int(row["peer"]) in context.all_ranks
    ]


def _read_probes(context: RuleContext) -> list[Wait]:
    """Return the links that HCCL's probe found dead; any rank reports those of others too."""
    waits = []
    for fact in context.facts_with("fails to connect to dstRank"):
        match = _PROBE.search(fact.text[:_LONGEST_TEXT]) if fact.kind != "ending" else None
        if match is None:
            continue
        rank = find_rank_at(context, match["source"], int(match["source_device"]))
        for device in match["target_devices"].split(","):
            awaited = find_rank_at(context, match["target"], int(device)) if device else None
            if rank is not None and awaited is not None:
                waits.append(Wait(rank, awaited, fact))
    return waits


def _read_peer_access(context: RuleContext) -> list[Wait]:
    """Return the devices of their own hosts whose memory ranks could not open."""
    waits = []
    for fact in context.facts_with("connected p2p timeout"):
        match = _PEER_ACCESS.search(fact.text[:_LONGEST_TEXT]) if _has_rank(fact) else None
        if match is None or fact.origin.rank is None:
            continue
        rank = fact.origin.rank
        hosts = {host for (host, _), ranks in context.local.items() if rank in ranks}
        awaited = {find_rank_at(context, host, int(match[1])) for host in hosts}
        waits += [Wait(rank, other, fact) for other in awaited if other is not None]
    return waits


def find_rank_at(context: RuleContext, address: str, device: int) -> int | None:
    """Return the one rank on a device of the host with this name or address; where all files are of one host, there.

    A rank without a file is that of the device if it fits between the ranks of the other devices there.
    """
    hosts = {address, *context.addresses.get(address, ())}
    ranks = {rank for host in hosts for rank in context.local.get((host, device), ())}
    if not ranks and context.one_host:
        ranks = {rank for (_, local), here in context.local.items() if local == device for rank in here}
    ranks = ranks or _infer_silent_ranks(context, hosts, device)
    return next(iter(ranks)) if len(ranks) == 1 else None


def _infer_silent_ranks(context: RuleContext, hosts: Set[str], device: int) -> set[int]:
    """Return the rank without a trace on a device, where all other devices of the host have ranks in their order."""
    known = {(local, rank) for (host, local), ranks in context.local.items() if host in hosts for rank in ranks}
    firsts = {rank - local for local, rank in known}
    if len(known) < _LEAST_IN_ORDER or len(firsts) != 1:
        return set()
    return {firsts.pop() + device} & (context.all_ranks - context.ranks)
