"""How far each rank came in each process group, as its watchdogs print it: one account for all rules.

ProcessGroupNCCL and ProcessGroupHCCL print (a) `WorkNCCL(SeqNum=…, OpType=…, …) ran for … milliseconds`, the call in
which a rank gave up waiting (before torch 1.12 without SeqNum, before 2.1 with TensorShape in place of NumelIn), and
(b) from torch 2.3 the last work that a rank enqueued and completed, also where another rank asks for a dump. Line (a)
seldom names its group, line (b) does: both belong together where they have the same number.

A script of `triage repro` prints for each rank (c) `waits in all_reduce 1024 float32 of default_pg, call #3`.

Numbers count within one group, collectives and transfers between two ranks apart, but (b) prints the last of either.
The rank in `[PG … Rank r]` and `[Rank r]` is that in the group; the writer of the line is the rank. Torch 2.3 prints
uninitialised numbers: what is beyond 2^40 is not known.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property

from triage.base.lazy_dataclass import dataclass
from triage.base.lazy_re import lazy_re
from triage.model.evidence import Evidence

_GROUP = lazy_re(
    r"\[PG (?:ID )?(?P<number>\d{1,9})(?: PG GUID (?P<guid>[^\s()\]]{1,200}))?"
    r"(?: ?\((?P<description>[^)\n]{0,200})\))? Rank (?P<local>\d{1,7})\]"
)
_WORK = lazy_re(
    r"Work[NH]CCL\((?:SeqNum=(?P<seq>\d{1,20}), ?)?OpType=(?P<op>\w{1,60})"
    r"(?:, ?TensorShape=\[(?P<shape>[^\]\n]{0,200})\])?"
    r"(?:, ?NumelIn=(?P<numel>\d{1,20}))?(?:, ?NumelOut=(?P<numel_out>\d{1,20}))?[^)\n]{0,80}"
    r"Timeout\(ms\)=(?P<timeout>\d{1,15})\)(?: ran for (?P<ran>\d{1,15}) milliseconds)?"
)
_RANK = lazy_re(r"\[Rank (\d{1,7})\] (?:Watchdog c|C)aught")
_STATUS = lazy_re(
    r"(?:(?:at work sequence id: |at (?:[NH]CCL )?work: )(?P<at>\d{1,20})[^\n]{0,20}?)?"
    r"[Ll]ast enqueued (?:[NH]CCL )?work: (?P<enqueued>-?\d{1,20}), (?:last started work: [^\n,]{1,90}, )?"
    r"last completed (?:[NH]CCL )?work: (?P<completed>-?\d{1,20})"
)
# What torch finds when it compares the ranks of a group (TORCH_NCCL_DESYNC_DEBUG), by their ranks in that group.
_COMPARED = lazy_re(
    r"ranks? \[(?P<never>\d[\d, ]{0,2000})\] (?:is|are) the lagging rank"
    r"|\[(?P<behind>\d[\d, ]{0,2000})\] finished collective #(?P<seq>\d{1,20}), but didn't join"
)
_COMPARED_CALL = lazy_re(r"- \[(?P<local>\d{1,7})\] Timeout at collective: (?P<op>\w{1,60}), #(?P<seq>\d{1,20})")
_REPLAYED = lazy_re(
    r"waits in (?P<op>\w{1,60}) (?P<numel>\d{1,20}) (?P<type>\w{1,20}) of (?P<group>[^\n]{1,200}), "
    r"(?:call #(?P<seq>\d{1,20})|with rank (?P<partner>\d{1,7}))$"
)
_REPEATING = ("inference", "ending")  # kinds of facts that repeat lines of others
_HINTS = ("ast enqueued", "CCL(", "Timeout at collective", "the lagging rank", "finished collective #", "waits in ")
_NO_DESCRIPTION = "undefined"
_UNNAMED = "that the lines do not name"
_DEFAULT_DESCRIPTION, _DEFAULT_NUMBER = "default_pg", "0"
_LARGEST = 1 << 40
_LONGEST_TEXT = 4000
# Transfers between two ranks, and groups of calls that may hold such transfers: their numbers are counted apart.
_TRANSFERS = lazy_re(r"(?i)send|recv|receive|^coalesced$")
# Calls in which ranks may give or get tensors of different sizes.
_UNEVEN = lazy_re(r"(?i)alltoall|all_to_all|send|recv|receive|coalesced|^gather$|^scatter$|gatherv|scatterv")
_SAME_SECOND = 2.0  # lines have whole seconds


@dataclass(frozen=True, slots=True)
class Group:
    """A process group. `key` is equal on all its ranks, and empty where the lines do not name the group."""

    key: str = ""
    name: str = ""
    is_default: bool = False

    @property
    def label(self) -> str:
        """How a sentence calls it."""
        if self.is_default and self.name == _DEFAULT_NUMBER:
            return "the default group"
        if self.name == _UNNAMED:
            return f"a group {_UNNAMED}"
        return f"group {self.name or self.key}" if self.key else "the process group"


@dataclass(frozen=True, slots=True)
class OpenCall:
    """A call that did not end on a rank. Sizes are numbers of elements, times milliseconds.

    `has_timed_out`: a line says so; else it is only known that more was enqueued than completed.
    """

    seq: int | None
    op: str = ""
    sizes: tuple[str, ...] = ()
    timeout: int | None = None
    ran: int | None = None
    has_timed_out: bool = True
    data_type: str = ""

    @property
    def is_transfer(self) -> bool:
        """Whether it may be a transfer between two ranks, so that its number is none of a collective."""
        return _TRANSFERS.search(self.op) is not None

    @property
    def shape(self) -> tuple[object, ...]:
        """What is equal on all ranks of a collective: its number, operation and sizes."""
        return self.seq, self.op, self.sizes

    @property
    def comparable_sizes(self) -> tuple[str, ...]:
        """The sizes, where all ranks must give the same."""
        return () if _UNEVEN.search(self.op) else self.sizes

    def __str__(self) -> str:
        number = f" #{self.seq}" if self.seq is not None else ""
        return f"{self.op or 'collective'}{number}"


@dataclass(frozen=True, slots=True)
class GroupProgress:
    """How far one rank came in one group, as numbers of work (-1: nothing yet; None: not known).

    `local_rank` is its rank within the group. `call` is the first that did not end; `partner` the rank at the other end
    of a transfer, if lines state it.
    """

    rank: int
    group: Group
    fact: Evidence
    local_rank: int | None = None
    enqueued: int | None = None
    completed: int | None = None
    call: OpenCall | None = None
    partner: int | None = None

    @property
    def op(self) -> str:
        """The operation of the call, "" where no line says it."""
        return self.call.op if self.call else ""


@dataclass(frozen=True)
class Progress:
    """All that the watchdogs of a job print: `entries` are ascending by rank, those of one rank as it wrote them.

    `compared`: rank to the last call that it had started in a group of all ranks, as torch's own comparison says (-1:
    none), and the line. `members` are those of groups of which lines state all.
    """

    entries: Sequence[GroupProgress] = ()
    compared: Mapping[int, tuple[int, Evidence]] = field(default_factory=dict)
    by_rank: Mapping[int, Sequence[GroupProgress]] = field(default_factory=dict)
    members: Mapping[Group, frozenset[int]] = field(default_factory=dict)

    @cached_property
    def by_group(self) -> dict[Group, dict[int, GroupProgress]]:
        """Group to the progress of its ranks."""
        groups: dict[Group, dict[int, GroupProgress]] = defaultdict(dict)
        for entry in self.entries:
            groups[entry.group].setdefault(entry.rank, entry)
        return dict(sorted(groups.items(), key=lambda item: item[0].key))

    @cached_property
    def first_open(self) -> dict[int, tuple[GroupProgress, ...]]:
        """Rank to its first call that did not end: what it called later may only stand behind that one.

        Several, where the lines do not show which of its groups it called first.
        """
        chosen = ((rank, _find_first_open(entries)) for rank, entries in self.by_rank.items())
        return {rank: entries for rank, entries in chosen if entries}


def group_of(text: str) -> Group:
    """Return the process group that a line names, else one without a key."""
    match = _GROUP.search(text[:_LONGEST_TEXT]) if "[PG " in text else None
    if match is None:
        return Group()
    description = match["description"] if match["description"] not in (None, _NO_DESCRIPTION) else ""
    number = match["guid"] or match["number"]
    key = f"{number}({description})" if description else number
    is_default = description == _DEFAULT_DESCRIPTION or _DEFAULT_NUMBER in (match["number"], match["guid"])
    return Group(key, description or number, is_default)


def read_progress(facts: Iterable[Evidence]) -> Progress:
    """Return what the lines say; a fact without a rank says nothing."""
    lines: dict[int, list[Evidence]] = defaultdict(list)
    for fact in facts:
        rank = fact.origin.rank
        if rank is not None and fact.kind not in _REPEATING and any(hint in fact.text for hint in _HINTS):
            lines[rank].append(fact)
    read = {rank: _read_rank(rank, _without_repeats(lines[rank])) for rank in sorted(lines)}
    entries = [entry for one in read.values() for entry in one]
    compared = _read_compared(entries, lines)
    entries = _add_compared(entries, compared)
    for settle in (_part_unequal_groups, _join_unnamed, _drop_mixed_counts):
        entries = settle(entries)
    by_rank: dict[int, list[GroupProgress]] = defaultdict(list)
    for entry in entries:
        by_rank[entry.rank].append(entry)
    return Progress(entries, compared, dict(by_rank))


def _without_repeats(facts: Sequence[Evidence]) -> list[Evidence]:
    """Return the lines of a rank in their order; the end of a process names no rank where files are merged."""
    own = [fact for fact in facts if fact.kind != "terminate"]
    return sorted(own or facts, key=_place)


def _place(fact: Evidence) -> tuple[str, int]:
    return fact.source, fact.offset


def _read_rank(rank: int, facts: Sequence[Evidence]) -> list[GroupProgress]:
    """Return the progress of one rank in each of its groups."""
    calls, states = _read_calls(rank, facts), _read_states(rank, facts)
    named = [_name_group(call, states) for call in calls]
    # The first lines of a watchdog do not name the group, later ones repeat the call with it.
    has_name = {(one.call.seq, one.call.op) for one in named if one.group.key and one.call}
    merged: dict[Group, GroupProgress] = {}
    for one in named:
        if one.group.key or (one.call and (one.call.seq, one.call.op) not in has_name):
            merged.setdefault(one.group, one)
    for state in states:
        known = merged.get(state.group)
        if known is None:
            merged[state.group] = state
        elif known.enqueued is None and state.enqueued is not None:
            local = known.local_rank if known.local_rank is not None else state.local_rank
            call = known.call or state.call
            merged[state.group] = replace(
                known, local_rank=local, call=call, enqueued=state.enqueued, completed=state.completed
            )
    return [_add_pending_call(one) for one in (*merged.values(), *_find_second_group(merged.get(Group()), named))]


def _find_second_group(first: GroupProgress | None, named: Iterable[GroupProgress]) -> list[GroupProgress]:
    """Return the call without a group that has the number of the first one, and another operation or size: one group
    has one call of a number, so the lines are of several groups.
    """
    if first is None or first.call is None or first.call.seq is None:
        return []
    seq, shape = first.call.seq, (first.call.op, first.call.sizes)
    others = (one for one in named if not one.group.key and one.call is not None and one.call.seq == seq)
    return [one for one in others if one.call and (one.call.op, one.call.sizes) != shape][:1]


def _read_calls(rank: int, facts: Iterable[Evidence]) -> list[GroupProgress]:
    """Return the calls in which the rank gave up waiting, as it wrote them."""
    calls = []
    for fact in facts:
        text = fact.text[:_LONGEST_TEXT]
        work = _WORK.search(text)
        if work is None:
            if compared := _COMPARED_CALL.search(text):
                call = OpenCall(int(compared["seq"]), compared["op"])
                calls.append(GroupProgress(rank, group_of(text), fact, int(compared["local"]), call=call))
            elif replayed := _REPLAYED.search(text):
                calls.append(_read_replayed(rank, replayed, fact))
            continue
        group, stated = _GROUP.search(text), _RANK.search(text)
        local = int(group["local"]) if group else int(stated[1]) if stated else None
        sizes = (work["shape"],) if work["shape"] is not None else (work["numel"], work["numel_out"])
        call = OpenCall(
            int(work["seq"]) if work["seq"] else None,
            work["op"],
            tuple(size for size in sizes if size is not None),
            int(work["timeout"]),
            int(work["ran"]) if work["ran"] else None,
        )
        calls.append(GroupProgress(rank, group_of(text), fact, local, call=call))
    return calls


def _read_replayed(rank: int, match: re.Match[str], fact: Evidence) -> GroupProgress:
    """Return the call in which a rank of a script of `triage repro` waits."""
    name = match["group"]
    group = Group(name, name, is_default=name == _DEFAULT_DESCRIPTION)
    seq = int(match["seq"]) if match["seq"] else None
    call = OpenCall(seq, match["op"], (match["numel"],), has_timed_out=False, data_type=match["type"])
    partner = int(match["partner"]) if match["partner"] else None
    return GroupProgress(rank, group, fact, call=call, partner=partner)


def _read_states(rank: int, facts: Iterable[Evidence]) -> list[GroupProgress]:
    """Return the numbers that the rank wrote of what it enqueued and completed."""
    states = []
    for fact in facts:
        text = fact.text[:_LONGEST_TEXT]
        status = _STATUS.search(text) if "ast enqueued" in text else None
        if status is None:
            continue
        enqueued, completed = int(status["enqueued"]), int(status["completed"])
        if max(abs(enqueued), abs(completed)) > _LARGEST:
            continue
        group = _GROUP.search(text)
        local = int(group["local"]) if group else None
        at = int(status["at"] or -1)
        call = OpenCall(at) if completed < at <= enqueued else None
        states.append(GroupProgress(rank, group_of(text), fact, local, enqueued, completed, call))
    return states


def _name_group(entry: GroupProgress, states: Sequence[GroupProgress]) -> GroupProgress:
    """Return the call with the group of the one state that has its number, or that has it between its numbers."""
    if entry.group.key or entry.call is None or entry.call.seq is None:
        return entry
    seq = entry.call.seq
    exact = {one.group: one for one in states if one.call and one.call.seq == seq}
    around = {one.group: one for one in states if (one.completed or 0) < seq <= (one.enqueued or 0)}
    for matches in (exact, around):
        if len(matches) == 1:
            state = next(iter(matches.values()))
            return replace(entry, group=state.group, local_rank=state.local_rank)
    return entry


def _add_pending_call(entry: GroupProgress) -> GroupProgress:
    """Return the entry with the call after the last completed one, where more was enqueued."""
    if entry.call is not None or entry.enqueued is None or entry.completed is None:
        return entry
    if entry.completed >= entry.enqueued:
        return entry
    return replace(entry, call=OpenCall(max(entry.completed, 0) + 1, has_timed_out=False))


def _join_unnamed(entries: Sequence[GroupProgress]) -> list[GroupProgress]:
    """Return the entries; a call of a group without a name is of the one named group in which others wait in that call.

    Else such calls are of all ranks where each writer has its own rank in them, and only one such group. Else they are
    of smaller groups, and nothing shows of which: then each is a group of its own.
    """
    entries = _join_named(entries)
    unnamed = [entry for entry in entries if not entry.group.key]
    is_one = len({entry.rank for entry in unnamed}) == len(unnamed)
    of_all = is_one and all(entry.local_rank in (None, entry.rank) for entry in unnamed)
    if of_all:
        default = next((one.group for one in entries if one.group.is_default), Group(is_default=True))
        return [replace(one, group=default) if not one.group.key else one for one in entries]
    return [entry if entry.group.key else _make_own_group(entry) for entry in entries]


def _join_named(entries: Sequence[GroupProgress]) -> list[GroupProgress]:
    """Return the entries; the line that names the group of a call may be cut."""
    groups: dict[tuple[object, ...], set[Group]] = defaultdict(set)
    members = {(entry.group, entry.local_rank) for entry in entries if entry.group.key}
    for entry in entries:
        if entry.group.key and entry.call and entry.call.seq is not None and not entry.call.is_transfer:
            groups[entry.call.shape].add(entry.group)
    joined = []
    for entry in entries:
        named = groups.get(entry.call.shape, ()) if entry.call and not entry.group.key else ()
        is_one = len(named) == 1 and all((group, entry.local_rank) not in members for group in named)
        joined.append(replace(entry, group=next(iter(named))) if is_one else entry)
    return joined


def _read_compared(
    entries: Sequence[GroupProgress], lines: Mapping[int, Sequence[Evidence]]
) -> dict[int, tuple[int, Evidence]]:
    """Return what torch's own comparison says, by rank.

    Only that of a rank whose groups all have all ranks counts: the lines name neither the group nor its members.
    """
    small = {entry.rank for entry in entries if not (entry.group.is_default or not entry.group.key)}
    compared: dict[int, tuple[int, Evidence]] = {}
    for writer in sorted(lines.keys() - small):
        for fact in lines[writer]:
            for match in _COMPARED.finditer(fact.text[:_LONGEST_TEXT]):
                for rank in map(int, (match["never"] or match["behind"]).split(",")):
                    compared.setdefault(rank, (int(match["seq"] or -1), fact))
    return compared


def _add_compared(
    entries: Sequence[GroupProgress], compared: Mapping[int, tuple[int, Evidence]]
) -> list[GroupProgress]:
    """Return the entries, with those of compared ranks of which no line of their own is left in the group."""
    group = next((entry.group for entry in entries if entry.group.is_default), Group())
    own = {entry.rank for entry in entries if entry.group == group}
    added = [GroupProgress(rank, group, compared[rank][1], rank, *(compared[rank][0],) * 2) for rank in compared]
    return sorted([*entries, *(one for one in added if one.rank not in own)], key=lambda entry: entry.rank)


def _part_unequal_groups(entries: Sequence[GroupProgress]) -> list[GroupProgress]:
    """Return the entries; where two ranks have one rank in a group, its number is that of several groups.

    Torch 2.3 prints the number that a process gave it, so that all groups of tensor parallelism may have the same.
    """
    writers: dict[tuple[Group, int], set[int]] = defaultdict(set)
    for entry in entries:
        if entry.local_rank is not None and entry.group.key:
            writers[entry.group, entry.local_rank].add(entry.rank)
    several = {group for (group, _), ranks in writers.items() if len(ranks) > 1}
    return [_make_own_group(entry) if entry.group in several else entry for entry in entries]


def _make_own_group(entry: GroupProgress) -> GroupProgress:
    return replace(entry, group=Group(f"{entry.group.key} of rank {entry.rank}", entry.group.name or _UNNAMED))


def _drop_mixed_counts(entries: Sequence[GroupProgress]) -> list[GroupProgress]:
    """Return the entries without the numbers of groups that count transfers too: those of ranks do not compare."""
    mixed = {entry.group for entry in entries if _is_mixed(entry)}
    return [replace(one, enqueued=None, completed=None) if one.group in mixed else one for one in entries]


def _is_mixed(entry: GroupProgress) -> bool:
    call, seq = entry.call, entry.call.seq if entry.call else None
    if call is None or seq is None or entry.enqueued is None or entry.completed is None:
        return False
    return call.is_transfer or seq > entry.enqueued or seq <= entry.completed


def _find_first_open(entries: Sequence[GroupProgress]) -> tuple[GroupProgress, ...]:
    """Return the entries whose call began first; all of them, where the lines have no times.

    Each group has its own watchdog, which looks every now and then: the order of its lines shows nothing.
    """
    pending = [entry for entry in entries if entry.call is not None]
    timed_out = [entry for entry in pending if entry.call and entry.call.has_timed_out] or pending
    begins = [begin for entry in timed_out if (begin := _began(entry)) is not None]
    if len(begins) < max(2, len(timed_out)):
        return tuple(timed_out)
    return tuple(one for one, begin in zip(timed_out, begins, strict=True) if begin < min(begins) + _SAME_SECOND)


def _began(entry: GroupProgress) -> float | None:
    ran, when = entry.call.ran if entry.call else None, entry.fact.origin.time
    return when - ran / 1000 if ran is not None and when is not None else None
