"""Rules about where ranks are and what they share: hosts, GPUs, the memory at a checkpoint, the time of entry."""

from __future__ import annotations

from collections.abc import Collection

from triage.base.lazy_re import lazy_re
from triage.base.rank_ranges import format_ranks
from triage.diagnose.context import RuleContext, ranks_of
from triage.diagnose.phrases import agree, join_names
from triage.evidence.inference import make_inferences
from triage.model.evidence import Evidence

_GPU_USER = lazy_re(r"Process (\d+) has \d")
_OOM = lazy_re(r"(?i)out of memory: kill|oom[-_ ]?kill|OOMKilled")
# What two writers of one file cause, and what a full target says.
_DAMAGED = lazy_re(
    r"unexpected pos \d+ vs|PytorchStreamWriter|PytorchStreamReader|central directory|File exists|Directory not empty"
    r"|No such file or directory|Stale file handle|invalid header or archive|SafetensorError|Text file busy"
)
_FULL = lazy_re(r"No space left|quota exceeded")
_ENTRY = lazy_re(r"Entry-HcclCommInit\w*:.*?\brank\[(\d+)\]")
_IDENTIFIER = lazy_re(r"identifier\[([^\]]*)\]")
_CONNECT_TIMEOUT = lazy_re(r"HCCL_CONNECT_TIMEOUT\D{0,40}?(\d{2,5})")
_DEFAULT_CONNECT_TIMEOUT = 120


def split_rendezvous(context: RuleContext) -> list[Evidence]:
    """Several hosts each have all ranks of a world of their own size: they did not meet."""
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


def single_process(context: RuleContext) -> list[Evidence]:
    """Several hosts each ran rank 0 of a world of one: the launcher's variables did not reach the processes."""
    hosts = sorted(context.hosts.get(0, ()))
    shown = next((fact for fact in context.facts if fact.origin.rank == 0), None)
    if context.world_size != 1 or len(hosts) < 2 or shown is None or not _have_own_files(context, hosts):
        return []
    hosts_text = join_names(hosts[:4])
    text = f"{hosts_text} each have only rank 0 of a world of 1: every process formed a group of its own"
    return make_inferences("split-rendezvous", {0}, text, shown)


def _have_own_files(context: RuleContext, hosts: Collection[str]) -> bool:
    """Whether each host has files that no other has: one file with two hosts for a rank has two names of one host."""
    sources = [
        {fact.source for fact in context.facts if fact.origin.host == host} | set(context.files.get(host, ()))
        for host in hosts
    ]
    return all(sources) and len(set().union(*sources)) == sum(map(len, sources))


def shared_device(context: RuleContext) -> list[Evidence]:
    """NCCL names the GPU of each rank: two ranks are on the same one."""
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
    """Rank 0 was killed for memory, and its last lines are about saving: the gathered model did not fit."""
    killed = [
        fact
        for fact in context.evidence_of("killed")
        if fact.origin.rank is not None and context.doing.get(fact.origin.rank) == "saving"
    ]
    ranks = ranks_of(killed)
    if 0 not in ranks or not any(
        fact.kind in ("kernel", "scheduler") and _OOM.search(fact.text) for fact in context.facts
    ):
        return []
    was, it = agree(ranks, "was", "were"), agree(ranks, "its", "their")
    text = f"{format_ranks(ranks)} {was} killed for memory while saving, as {it} last lines show"
    return make_inferences("killed-while-saving", ranks, text, killed[0], basis="absence")


def same_path_written(context: RuleContext) -> list[Evidence]:
    """A file is damaged or in the way of another, and the last lines of several ranks say that they write its path."""
    shared = {path: ranks for path, ranks in sorted(context.writes.items()) if len(ranks) > 1}
    if not shared or any(_FULL.search(fact.text) for fact in context.facts):
        return []
    for path, ranks in shared.items():
        damaged = next(
            (fact for fact in context.facts if fact.origin.rank in ranks and _DAMAGED.search(fact.text)), None
        )
        if damaged is not None:
            text = f"{format_ranks(ranks)} write {path}, as their last lines show"
            return make_inferences("same-path-written", ranks, text, damaged, path=path)
    return []


def late_entry(context: RuleContext) -> list[Evidence]:
    """HCCL's `Entry-` lines say when each rank asked for a group: the last came later than the first would wait."""
    limit = _DEFAULT_CONNECT_TIMEOUT
    for fact in context.facts_with("HCCL_CONNECT_TIMEOUT"):
        if stated := _CONNECT_TIMEOUT.search(fact.text):
            limit = int(stated[1])
    entered: dict[tuple[str, str], dict[int, tuple[float, Evidence]]] = {}
    for fact in context.facts_with("Entry-Hccl"):
        entry = _ENTRY.search(fact.text)
        reading = context.clocks.read(fact) if entry is not None else None
        if entry is not None and reading is not None:
            group = _IDENTIFIER.search(fact.text)
            ranks = entered.setdefault((reading[0], group[1] if group else ""), {})
            ranks.setdefault(int(entry[1]), (reading[1], fact))
    for _, ranks in sorted(entered.items(), key=lambda item: item[0]):
        first = min(when for when, _ in ranks.values())
        late = {rank: when - first for rank, (when, _) in ranks.items() if when - first > limit}
        if late and len(late) < len(ranks):
            delay = max(late.values())
            text = (
                f"{format_ranks(late)} joined the group {delay:.0f} s after the first rank, which waits only {limit} s"
            )
            return make_inferences("late-entry", late, text, ranks[min(late)][1])
    return []


def memory_shared(context: RuleContext) -> list[Evidence]:
    """Out of memory on a GPU where, as the message lists, the process of another rank has memory as well."""
    failed = [fact for fact in context.facts_with("has a total capacity of") if fact.origin.rank is not None]
    if not failed:
        return []
    owners = {pid: min(ranks) for pid, ranks in context.pids.items() if len(ranks) == 1}
    for fact in failed:
        mine = fact.origin.rank
        users = {owners.get(int(pid)) for pid in _GPU_USER.findall(fact.text)} - {None, mine}
        if users and mine is not None:
            ranks = {mine, *(rank for rank in users if rank is not None)}
            message = f"the out-of-memory message of rank {mine}"
            text = f"{format_ranks(ranks)} have memory on the same GPU, as {message} lists"
            return make_inferences("shared-device", ranks, text, fact)
    return []
