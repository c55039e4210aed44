"""Rules about where ranks are and what they shared: hosts, GPUs, the memory at a checkpoint, the time of entry."""

from __future__ import annotations

from triage.base.lazy_re import lazy_re
from triage.diagnose.say import say_ranks
from triage.diagnose.scene import Scene, conclude, ranks_of
from triage.evidence.inference import inferred
from triage.model.evidence import Evidence

_USERS = lazy_re(r"Process (\d+) has \d")
_OOM = lazy_re(r"(?i)out of memory: kill|oom[-_ ]?kill|OOMKilled")
# What comes of two writers of one file, and what a full target says.
_DAMAGED = lazy_re(
    r"unexpected pos \d+ vs|PytorchStreamWriter|PytorchStreamReader|central directory|File exists|Directory not empty|No such file or directory|"
    r"Stale file handle|invalid header or archive|SafetensorError|Text file busy"
)
_FULL = lazy_re(r"No space left|quota exceeded")
_ENTRY = lazy_re(r"Entry-HcclCommInit\w*:.*?\brank\[(\d+)\]")
_IDENTIFIER = lazy_re(r"identifier\[([^\]]*)\]")
_CONNECT = lazy_re(r"HCCL_CONNECT_TIMEOUT\D{0,40}?(\d{2,5})")
_CONNECT_DEFAULT = 120


def split_rendezvous(scene: Scene) -> list[Evidence]:
    """Several hosts each have all ranks of a world of their own size: they did not meet."""
    ranks_on: dict[str, set[int]] = {}
    for rank, hosts in scene.hosts.items():
        for host in hosts:
            ranks_on.setdefault(host, set()).add(rank)
    size = scene.world_size or 0
    whole = sorted(host for host, ranks in ranks_on.items() if len(ranks) == size > 1 and ranks == set(range(size)))
    if len(whole) < 2 or len(whole) != len(ranks_on):
        return []
    sources = {
        host: {fact.source for fact in scene.facts if fact.origin.host == host} | set(scene.files.get(host, ()))
        for host in whole
    }
    basis = next((fact for fact in scene.facts if fact.origin.rank is not None), None)
    # One file that names two hosts for the same ranks knows two names of one host.
    if (
        basis is None
        or not all(sources.values())
        or len(set().union(*sources.values())) < sum(map(len, sources.values()))
    ):
        return []
    text = (
        f"{' and '.join(whole[:4])} each have ranks 0-{size - 1} of a world of {size}: each formed a group of its own"
    )
    return conclude("split-rendezvous", range(size), basis, text, "measured")


def single_process(scene: Scene) -> list[Evidence]:
    """Several hosts each ran rank 0 of a world of one: the launcher's variables did not reach the processes."""
    hosts = scene.hosts.get(0, ())
    if scene.world_size != 1 or len(hosts) < 2:
        return []
    sources = {
        host: {fact.source for fact in scene.facts if fact.origin.host == host} | set(scene.files.get(host, ()))
        for host in hosts
    }
    basis = next((fact for fact in scene.facts if fact.origin.rank == 0), None)
    if (
        basis is None
        or not all(sources.values())
        or len(set().union(*sources.values())) < sum(map(len, sources.values()))
    ):
        return []
    text = f"{' and '.join(sorted(hosts)[:4])} each have only rank 0 of a world of 1: every process formed a group of its own"
    return conclude("split-rendezvous", {0}, basis, text, "measured")


def shared_device(scene: Scene) -> list[Evidence]:
    """NCCL names the GPU of each rank: two ranks are on the same one."""
    times: dict[int, int] = {}
    for ranks in scene.devices.values():
        for rank in ranks:
            times[rank] = times.get(rank, 0) + 1
    # In a smaller communicator ranks are counted anew: a number that is seen on several devices is no global rank.
    once = {name: {rank for rank in ranks if times[rank] == 1} for name, ranks in sorted(scene.devices.items())}
    shared = {name: ranks for name, ranks in once.items() if len(ranks) > 1}
    everyone = {rank for ranks in shared.values() for rank in ranks}
    basis = next((fact for fact in scene.facts if fact.origin.rank in everyone), None) if shared else None
    if basis is None:
        return []
    device, here = next(iter(shared.items()))
    return conclude("shared-device", everyone, basis, f"{say_ranks(here)} all use the GPU {device}", "measured")


def killed_while_saving(scene: Scene) -> list[Evidence]:
    """Rank 0 was killed for memory, and its last lines are about saving: the gathered model did not fit."""
    killed = [
        fact
        for fact in scene.evidence_of("killed")
        if fact.origin.rank is not None and scene.doing.get(fact.origin.rank) == "saving"
    ]
    memory = next(
        (fact for fact in scene.facts if fact.kind in ("kernel", "scheduler") and _OOM.search(fact.text)), None
    )
    if not killed or memory is None or 0 not in ranks_of(killed):
        return []
    text = f"{say_ranks(ranks_of(killed))} was killed for memory while it saved, as its last lines say"
    return conclude("killed-while-saving", ranks_of(killed), killed[0], text)


def same_path_written(scene: Scene) -> list[Evidence]:
    """A file came out damaged or in the way of another, and the last lines of several ranks say that they write the
    same path.
    """
    shared = {path: ranks for path, ranks in sorted(scene.writes.items()) if len(ranks) > 1}
    if not shared or any(_FULL.search(fact.text) for fact in scene.facts):
        return []
    for path, ranks in shared.items():
        trouble = next((fact for fact in scene.facts if fact.origin.rank in ranks and _DAMAGED.search(fact.text)), None)
        if trouble is not None:
            text = f"{say_ranks(ranks)} say in their last lines that they write {path}"
            return inferred("same-path-written", ranks, text, trouble, path=path)
    return []


def late_entry(scene: Scene) -> list[Evidence]:
    """HCCL's `Entry-` lines say when each rank asked for a group: the last came later than the first would wait."""
    entered: dict[tuple[str, str], dict[int, tuple[float, Evidence]]] = {}
    limit = _CONNECT_DEFAULT
    for fact in scene.saying("HCCL_CONNECT_TIMEOUT"):
        if said := _CONNECT.search(fact.text):
            limit = int(said[1])
    for fact in scene.saying("Entry-Hccl"):
        entry = _ENTRY.search(fact.text)
        reading = scene.clocks.read(fact) if entry is not None else None
        if entry is not None and reading is not None:
            group = _IDENTIFIER.search(fact.text)
            entered.setdefault((reading[0], group[1] if group else ""), {}).setdefault(
                int(entry[1]), (reading[1], fact)
            )
    for _, ranks in sorted(entered.items()):
        first = min(when for when, _ in ranks.values())
        late = {rank: when - first for rank, (when, _) in ranks.items() if when - first > limit}
        if late and len(late) < len(ranks):
            basis = ranks[min(late)][1]
            text = f"{say_ranks(late)} asked for the group {max(late.values()):.0f} s after the first rank, which waits {limit} s"
            return conclude("late-entry", late, basis, text, "measured")
    return []


def memory_shared(scene: Scene) -> list[Evidence]:
    """Out of memory on a GPU where, as the message lists, the process of another rank has memory as well."""
    short = [fact for fact in scene.saying("has a total capacity of") if fact.origin.rank is not None]
    if not short:
        return []
    owners = {pid: min(ranks) for pid, ranks in scene.pids.items() if len(ranks) == 1}
    for fact in short:
        mine = fact.origin.rank
        others = {
            rank for pid in _USERS.findall(fact.text) if (rank := owners.get(int(pid))) is not None and rank != mine
        }
        if others and mine is not None:
            text = f"{say_ranks({*others, mine})} have memory on the same GPU, as the out-of-memory message of rank {mine} lists"
            return conclude("shared-device", {*others, mine}, fact, text, "measured")
    return []
