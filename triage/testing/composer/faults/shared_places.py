"""Faults of ranks that use one place together: a GPU, the memory of a host that gathers the model, a path of files."""

from __future__ import annotations

import random
from dataclasses import replace

from triage.testing.composer.faults.checkpoints import load_errors
from triage.testing.composer.faults.error_texts import KNOWN, tell_crash, train, version
from triage.testing.composer.faults.interface import Fault
from triage.testing.composer.faults.machines import ALL, oom_lines
from triage.testing.composer.faults.uncaught import (
    BACKENDS,
    Prelude,
    all_ranks,
    end_job,
    format_traceback,
    setup_calls,
    train_until,
    training_calls,
    uncaught,
)
from triage.testing.composer.model import Exit, Line, Story, Truth, World
from triage.testing.composer.parts import echoes, record, traceback

_EITHER = frozenset({"known", "unknown"})
_DEVICES = (
    "rank {rank} (pid {pid}) uses cuda:{device}",
    "torch.cuda.set_device({device}) in pid {pid}, rank {rank}",
    "[rank {rank}] pid={pid} current_device={device}",
)
_GATHERING = (
    "gathering the full state dict on rank 0 (FULL_STATE_DICT)",
    "saving checkpoint at step {step}: collecting full model weights to CPU",
    "consolidating {shards} shards into one state dict before saving to /ckpt/step_{step}",
    "save_model: summoning full parameters, this may take a while",
)
_ROOTS = ("/checkpoints/run7", "/mnt/lustre/ckpt/llama-exp", "/data/out/vit-b", "/scratch/ml/sft")
_SAVED = ("saved model to {path}", "wrote {path}", "checkpoint {path} written", "torch.save -> {path} done")
_BEGUN = ("saving model to {path}", "writing {path}", "checkpoint {path} begun", "torch.save -> {path}")


def two_on_one_gpu(world: World, rng: random.Random) -> Story:
    """Two ranks of a node use one GPU; one of them finds no memory there, because the other's process has it."""
    node = rng.randrange(len(world.hosts))
    owner, other = rng.sample(list(world.on_node(node)), 2)
    device, form = world.local(owner), rng.choice(_DEVICES)
    before: list[Line] = [record(world, rank, 1 + rank / 100, world.introduce(rank)) for rank in world.ranks]
    causes: list[Line] = []
    for rank in world.ranks:
        used = device if rank == other else world.local(rank)
        text = form.format(rank=rank, pid=world.pids[rank], device=used)
        before.append(record(world, rank, 3 + rng.uniform(0, 1), text))
    failed = rng.choice((owner, other))
    partner = owner + other - failed
    held, free, total = rng.randrange(45, 75), rng.randrange(9, 99), rng.choice((79.11, 79.15, 79.33))
    name = "torch.OutOfMemoryError" if version(world.torch) >= (2, 5) else "torch.cuda.OutOfMemoryError"
    capacity = "capacity" if version(world.torch) >= (2, 2) else "capacty"
    own = total - held - 0.5
    error = (
        f"{name}: CUDA out of memory. Tried to allocate {rng.choice(('128.00 MiB', '1.95 GiB', '512.00 MiB'))}. "
        f"GPU {device} has a total {capacity} of {total} GiB of which {free}.06 MiB is free. "
        f"Process {world.pids[partner]} has {held}.35 GiB memory in use. Including non-PyTorch memory, this process "
        f"has {own:.2f} GiB memory in use. Of the allocated memory {max(own - 0.7, 0.3):.2f} GiB is allocated by "
        f"PyTorch, and {rng.randrange(9, 99)}.12 MiB is reserved by PyTorch but unallocated."
    )
    at = rng.uniform(12, 40)
    causes.append(traceback(world, failed, at, error, is_cause=True))
    lines, later = echoes(world, rng, [failed], at + 0.4, share=rng.choice((0.0, 0.5, 1.0)))
    roots = frozenset({"launch.local-rank-misuse", "nccl.duplicate-gpu", "cuda.out-of-memory"})
    truth = Truth(KNOWN, roots, frozenset({owner, other}), frozenset({node}), by_comparison=True)
    return Story((*before, *causes, *lines), truth, (Exit(failed, 1, at + 0.5), *later))


def full_state_gather(world: World, rng: random.Random) -> Story:
    """Rank 0 gathers the whole model in host memory to save it, and the kernel kills it."""
    before, at = train(world, rng)
    step = rng.randrange(1, 90) * 100
    message = rng.choice(_GATHERING).format(step=step, shards=world.size)
    before.append(record(world, 0, at + 0.4, message))
    if rng.random() < 0.5:
        before += [record(world, rank, at + 0.3, f"step {step}: entering save_checkpoint") for rank in world.ranks]
    killed = at + rng.uniform(4, 40)
    task = rng.choice(("/kubepods.slice/pod7f3a", "/system.slice/slurmstepd.scope/job_{0}/step_0", "/user.slice"))
    group = task.format(rng.randrange(1000, 99999))
    if rng.random() < 0.5:
        place = f"constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0-1,global_oom,task_memcg={group}"
        first = "Out of memory: Killed process"
    else:
        cpus = "nodemask=(null),cpuset=/,mems_allowed=0-1"
        place = f"constraint=CONSTRAINT_MEMCG,{cpus},oom_memcg={group},task_memcg={group}"
        first = "Memory cgroup out of memory: Killed process"
    causes = oom_lines(world, rng, 0, killed, place, first, rng.choice((0, 1000, 1187)))
    story = tell_crash(world, rng, before, [Exit(0, -9, killed + 0.2)], causes, {"checkpoint.full-state-dict-oom"})
    return replace(story, truth=replace(story.truth, roots_without_ranks=frozenset({"host.oom-killer"})))


def written_by_all(world: World, rng: random.Random) -> Story:
    """All ranks write one path; the file is damaged when it is read again."""
    before = train_until(world, rng)
    path = f"{rng.choice(_ROOTS)}/{rng.choice(('best', 'last', f'step_{before.step}'))}.pt"
    which = rng.randrange(len(_SAVED))
    lines: list[Line] = list(before.lines)
    for rank in world.ranks:
        at = before.at + rng.uniform(0, 0.3)
        lines.append(record(world, rank, at, _BEGUN[which].format(path=path)))
        lines.append(record(world, rank, at + rng.uniform(1, 3), _SAVED[which].format(path=path)))
    at = before.at + rng.uniform(5, 9)
    inner, error = rng.choice(load_errors(world, rng)[:-1])
    source = f"state = torch.load({path!r}, map_location='cpu')"
    text = format_traceback(world, setup_calls(world, rng, source, *inner), error)
    causes = [uncaught(world, rank, when, text) for rank, when in all_ranks(world, rng, at)]
    story = end_job(world, rng, Prelude(tuple(lines), at, before.step), causes, ["checkpoint.write-race"])
    return replace(story, truth=replace(story.truth, roots_without_ranks=frozenset({"checkpoint.corrupt"})))


def file_exists(world: World, rng: random.Random) -> Story:
    """All ranks make one directory or move one file; it works for the first, the others fail."""
    before, winner = train_until(world, rng), rng.randrange(world.size)
    path = f"{rng.choice(_ROOTS)}/step_{before.step}"
    source, error = rng.choice((
        ("os.mkdir(directory)", f"FileExistsError: [Errno 17] File exists: '{path}'"),
        ('handle = open(path, "xb")', f"FileExistsError: [Errno 17] File exists: '{path}/model.pt'"),
        ("os.rename(temporary, path)",
         f"FileNotFoundError: [Errno 2] No such file or directory: '{path}/model.pt.tmp' -> '{path}/model.pt'"),
    ))  # fmt: skip
    text = format_traceback(world, training_calls(world, rng, source), error)
    lines = list(before.lines)
    message = rng.choice(_BEGUN).format(path=path)
    lines += [record(world, rank, before.at + rng.uniform(0, 0.2), message) for rank in world.ranks]
    losers = [rank for rank in world.ranks if rank != winner]
    causes = [uncaught(world, rank, before.at + rng.uniform(0.3, 0.8), text) for rank in losers]
    story = end_job(world, rng, Prelude(tuple(lines), before.at, before.step), causes, ["checkpoint.write-race"])
    others = frozenset({"checkpoint.path-exists", None})
    return replace(story, truth=replace(story.truth, verdicts=_EITHER, roots_without_ranks=others))


FAULTS = (
    Fault("two-ranks-on-one-gpu", two_on_one_gpu, ("nccl",), least_per_node=2),
    Fault("full-state-gather-killed", full_state_gather, ALL),
    Fault("checkpoint-written-by-all", written_by_all, BACKENDS),
    Fault("checkpoint-file-exists", file_exists, BACKENDS),
)
