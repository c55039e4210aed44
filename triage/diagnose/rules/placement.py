"""Rules about where ranks are and what they share: hosts, GPUs, the memory at a checkpoint."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Set
from dataclasses import replace

from triage.base.lazy_re import lazy_re
from triage.base.rank_ranges import format_ranks
from triage.diagnose.context import RuleContext, ranks_of
from triage.diagnose.memory_kills import killed_process, may_be_rank
from triage.diagnose.phrases import agree, join_names
from triage.evidence.inference import make_inferences
from triage.model import CrashDetail, EndingDetail, Evidence, ExceptionDetail, ExitDetail
from triage.ranks.identity import short_host
from triage.ranks.separate_groups import SeparateGroups, find_separate_groups

_GPU_USER = lazy_re(r"Process (\d{1,7}) has \d")
_LONGEST_TEXT = 4000
# Kernels log whole seconds, mostly local time: what is earlier by half an hour or more may be of another time zone.
_LATE, _ZONE = 2.0, 1700.0
_OOM = lazy_re(r"(?i)out of memory: kill|oom[-_ ]?kill|OOMKilled")
# What two writers of one file cause, and what a full target says.
_DAMAGED = lazy_re(
    r"unexpected pos \d+ vs|PytorchStreamWriter|PytorchStreamReader|central directory|File exists|Directory not empty"
    r"|No such file or directory|Stale file handle|invalid header or archive|SafetensorError|Text file busy"
    r"|UnpicklingError|invalid load key|pickle data was truncated|Ran out of input|MetadataIncompleteBuffer"
)
# What of it says that a file or directory is there, or is there no more.
_IN_THE_WAY = lazy_re(r"File exists|Directory not empty|No such file or directory|Stale file handle|Text file busy")
# A path under which programs save what they read again.
_OF_STATE = lazy_re(
    r"(?i)\.(?:pt|pth|ckpt|bin|safetensors|npz|npy|h5|pkl)$|checkpoint|ckpt|snapshot|step[_-]?\d|/(?:best|last)\b|model"
)
_LONGEST_ERROR = 2000
_NUMBER = lazy_re(r"(?<![\w.])\d{1,7}(?![\w.]*\d)")
_OF_PROCESSES = lazy_re(
    r"(?i)world|\bprocess|\branks?\b|\bworkers?\b|\bgpus?\b|\breplicas?\b|group|parallel|n_?proc|\bnodes?\b"
)
_FULL = lazy_re(r"No space left|quota exceeded")


def split_rendezvous(context: RuleContext) -> list[Evidence]:
    """Each rank is there several times: each host, or each process, formed a group of its own."""
    groups = context.once(_separate_groups)
    if groups is not None:
        error = context.once(_error_of_groups)
        if error is not None:
            return make_inferences("split-rendezvous", (), _describe_groups(groups), error, shown_by="error")
        shown = next((fact for fact in context.facts if fact.origin.rank is not None), None)
        if groups.are_apart and shown is not None and _have_own_files(context, groups.hosts):
            return make_inferences("split-rendezvous", (), _describe_groups(groups), shown)
    ranks_on: dict[str, set[int]] = {}
    for rank, hosts in context.hosts.items():
        for host in hosts:
            ranks_on.setdefault(host, set()).add(rank)
    size = context.world_size or 0
    whole = sorted(host for host, ranks in ranks_on.items() if len(ranks) == size > 1 and ranks == set(range(size)))
    shown = next((fact for fact in context.facts if fact.origin.rank is not None), None)
    if len(whole) < 2 or len(whole) != len(ranks_on) or shown is None or not _have_own_files(context, whole):
        return []
    hosts_text = join_names(whole[:4])
    text = f"{hosts_text} each have ranks 0-{size - 1} of a world of {size}: each host formed a group of its own"
    return make_inferences("split-rendezvous", range(size), text, shown)


def _separate_groups(context: RuleContext) -> SeparateGroups | None:
    if not context.memberships:
        return None
    failures: dict[str, list[int]] = {}
    for fact in (*context.facts, *context.handled):
        if isinstance(fact.detail, (ExceptionDetail, ExitDetail, EndingDetail, CrashDetail)):
            failures.setdefault(fact.source, []).append(fact.offset)
    hosts = {source: host for host, sources in context.files.items() for source in sources}
    stated = (
        (source, one if one.host else replace(one, host=hosts.get(source, ""))) for source, one in context.memberships
    )
    return find_separate_groups(stated, failures, context.host_names)


def _error_of_groups(context: RuleContext) -> Evidence | None:
    """Return an error that separate groups explain: it counts too few processes, or they write one path."""
    groups = context.once(_separate_groups)
    if groups is None:
        return None
    errors = [fact for fact in context.facts if isinstance(fact.detail, ExceptionDetail)]
    shared = [path for path, writers in sorted(context.writers.items()) if groups.count_processes(writers) > 1]
    shared = [] if groups.may_be_copies else shared
    for fact in errors:
        text = fact.text[:_LONGEST_ERROR]
        if _counts_too_few(text, groups) or (_IN_THE_WAY.search(text) and any(path in text for path in shared)):
            return fact
    return None


def _counts_too_few(text: str, groups: SeparateGroups) -> bool:
    """Whether an error compares the size of a group with the number of all processes."""
    numbers = {int(number) for number in _NUMBER.findall(text)}
    return _OF_PROCESSES.search(text) is not None and {groups.size, groups.processes} <= numbers


def _describe_groups(groups: SeparateGroups) -> str:
    hosts = join_names(groups.hosts[:4])
    if groups.size == 1:
        places = f" on {hosts}" if hosts else ""
        return f"each of {groups.processes} processes{places} is rank 0 of 1: every process formed a group of its own"
    places = f"{hosts} have" if hosts else "the files have"
    ranks = f"ranks 0-{groups.size - 1} of a world of {groups.size}"
    return f"{places} {groups.processes} processes that are {ranks}: they formed several groups"


def _have_own_files(context: RuleContext, hosts: Collection[str]) -> bool:
    """Whether each host has files that no other has: one file with two hosts for a rank has two names of one host."""
    sources = [
        {fact.source for fact in context.facts if fact.origin.host == host} | set(context.files.get(host, ()))
        for host in hosts
    ]
    return all(sources) and len(set().union(*sources)) == sum(map(len, sources))


def shared_device(context: RuleContext) -> list[Evidence]:
    """Two ranks are on one GPU: NCCL names the GPU of each, or a message about its memory lists the processes there."""
    return [*_by_named_devices(context), *_by_listed_processes(context)]


def _by_named_devices(context: RuleContext) -> list[Evidence]:
    times: dict[int, int] = {}
    for ranks in context.devices.values():
        for rank in ranks:
            times[rank] = times.get(rank, 0) + 1
    # In a smaller communicator ranks are counted anew: a number that stands for several devices is no global rank.
    certain = {name: {rank for rank in ranks if times[rank] == 1} for name, ranks in sorted(context.devices.items())}
    shared = {name: ranks for name, ranks in certain.items() if len(ranks) > 1}
    everyone = {rank for ranks in shared.values() for rank in ranks}
    shown = next((fact for fact in context.facts if fact.origin.rank in everyone), None) if shared else None
    if shown is None:
        return []
    device, here = next(iter(shared.items()))
    return make_inferences("shared-device", everyone, f"{format_ranks(here)} use the same GPU, {device}", shown)


def killed_while_saving(context: RuleContext) -> list[Evidence]:
    """Rank 0 was killed for memory, or a process on its host was, and its last lines are about saving: the gathered
    model did not fit.
    """
    memory = [fact for fact in context.facts if fact.kind in ("kernel", "scheduler") and _OOM.search(fact.text)]
    saving = {rank for rank, action in context.doing.items() if action == "saving"} - context.finished
    killed = [fact for fact in context.evidence_of("killed") if fact.origin.rank in saving] if memory else []
    ranks: Set[int] = ranks_of(killed)
    if not ranks and (shown := _kill_where_one_saved(context, memory, saving)) is not None:
        killed, ranks = [shown], saving
    if 0 not in ranks:
        return []
    was, it = agree(ranks, "was", "were"), agree(ranks, "its", "their")
    text = f"{format_ranks(ranks)} {was} killed for memory while saving, as {it} last lines show"
    return make_inferences("killed-while-saving", ranks, text, killed[0])


def _kill_where_one_saved(context: RuleContext, memory: Iterable[Evidence], saving: Set[int]) -> Evidence | None:
    """Return the kernel's line about a process, of no other rank, on the host of the only rank that was saving."""
    rank = next(iter(saving)) if len(saving) == 1 else -1
    here = {short_host(host) for host in context.hosts.get(rank, ())}
    for fact in memory:
        process, host = killed_process(fact), short_host(fact.origin.host) if fact.origin.host else ""
        is_here = host in here if host and here else context.one_host
        if process is not None and may_be_rank(process[1]) and fact.origin.rank in (None, rank) and is_here:
            return fact if _may_follow(context, fact, rank) else None
    return None


def _may_follow(context: RuleContext, kill: Evidence, rank: int) -> bool:
    """Whether a kill may come behind the last line of a rank, as far as one clock shows."""
    reading, last = context.clocks.read(kill), context.last_time.get(rank)
    return reading is None or last is None or reading[0] != last[0] or not 0 < last[1] - reading[1] - _LATE < _ZONE


def same_path_written(context: RuleContext) -> list[Evidence]:
    """A file is damaged or in the way of another, and the last lines of several ranks say that they write its path."""
    shared = {path: ranks for path, ranks in sorted(context.writes.items()) if len(ranks) > 1}
    if not shared or any(_FULL.search(fact.text) for fact in context.facts):
        return []
    for path, ranks in shared.items():
        errors = [fact for fact in context.facts if fact.origin.rank in ranks and _DAMAGED.search(fact.text)]
        in_the_way = [fact for fact in errors if _IN_THE_WAY.search(fact.text)]
        losers = ranks_of(fact for fact in in_the_way if path in fact.text)
        damaged = next((fact for fact in errors if path in fact.text), None)
        if damaged is None and _OF_STATE.search(path):
            damaged = next((fact for fact in errors if fact not in in_the_way), None)
        if damaged is not None:
            text = f"{format_ranks(ranks)} write {path}, as their last lines show"
            text += f"; it is in the way of {format_ranks(losers)}" if losers else ""
            return make_inferences("same-path-written", losers or ranks, text, damaged, shown_by="error", path=path)
    return []


def _by_listed_processes(context: RuleContext) -> list[Evidence]:
    for fact in context.facts_with("has a total capac"):  # older versions of torch wrote `capacty`
        mine = fact.origin.rank
        if mine is None:
            continue
        pids = map(int, _GPU_USER.findall(fact.text[:_LONGEST_TEXT]))
        ranks = {rank for pid in pids for rank in _ranks_beside(context, pid, mine)} | {mine}
        if len(ranks) > 1:
            message = f"the out-of-memory message of rank {mine}"
            text = f"{format_ranks(ranks)} have memory on the same GPU, as {message} lists"
            return make_inferences("shared-device", ranks, text, fact)
    return []


def _ranks_beside(context: RuleContext, pid: int, rank: int) -> set[int]:
    """Return the rank that has this pid on the host of another rank, if only one can be meant."""
    hosts = set(context.hosts.get(rank, ()))
    owners = context.pids.get(pid, ())
    beside = {
        one for one in owners if not hosts or not context.hosts.get(one) or hosts.intersection(context.hosts[one])
    }
    return beside if len(beside) == 1 else set()
