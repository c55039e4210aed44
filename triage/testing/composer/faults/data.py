"""Faults of data loading that end in an uncaught exception: killed workers, errors in workers, too many open files."""

from __future__ import annotations

import random

from triage.testing.composer.faults.error_texts import version
from triage.testing.composer.faults.interface import Fault
from triage.testing.composer.faults.uncaught import (
    BACKENDS,
    DIRECT_CAUSE,
    Call,
    end_job,
    format_traceback,
    site_packages,
    train_until,
    training_calls,
    uncaught,
)
from triage.testing.composer.model import Line, Story, World
from triage.testing.composer.parts import kernel


def worker_killed(world: World, rng: random.Random) -> Story:
    """The kernel kills a DataLoader worker of one rank for its memory, and the rank fails on it."""
    rank, before = rng.randrange(world.size), train_until(world, rng)
    pid = max(world.pids[other] for other in world.on_node(world.node(rank))) + rng.randrange(30, 9000)
    text = _killed_while_waiting(world, rng, pid) if rng.random() < 0.6 else _killed_in_step(world, rng, pid)
    cause = uncaught(world, rank, before.at, text)
    more = _oom_kill(world, rng, world.node(rank), before.at - rng.uniform(0.2, 0.7), pid)
    return end_job(world, rng, before, [cause], ["host.oom-killer", "data.worker-killed"], more=more)


def _oom_kill(world: World, rng: random.Random, node: int, at: float, pid: int) -> list[Line]:
    """Return the kernel's lines about a process that it kills because a cgroup or the node has no memory left."""
    name = "pt_data_worker" if version(world.torch) >= (2, 6) else "python3"
    uid, resident = rng.choice((0, 1000, 20417)), rng.randrange(4_000_000, 90_000_000)
    group = f"/system.slice/slurmstepd.scope/job_{rng.randrange(1000, 900_000)}"
    in_group = rng.random() < 0.6
    constraint = (
        f"CONSTRAINT_MEMCG,nodemask=(null),cpuset=step_0,mems_allowed=0-1,oom_memcg={group}"
        if in_group
        else "CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0-1,global_oom"
    )
    texts = (
        f"{name} invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0",
        f"oom-kill:constraint={constraint},task_memcg={group}/step_0/user/task_0,task={name},pid={pid},uid={uid}",
        f"{'Memory cgroup out of memory' if in_group else 'Out of memory'}: Killed process {pid} ({name}) "
        f"total-vm:{resident * 3}kB, anon-rss:{resident}kB, file-rss:{rng.randrange(9_000, 70_000)}kB, shmem-rss:"
        f"{rng.randrange(0, 9_000)}kB, UID:{uid} pgtables:{resident // 400}kB oom_score_adj:0",
    )
    return [
        kernel(world, node, at + 0.001 * number, text, is_cause=number > 0, says_host=True)
        for number, text in enumerate(texts)
    ]


def _killed_while_waiting(world: World, rng: random.Random, pid: int) -> str:
    """Return the chained tracebacks of a rank that waits for a batch while its worker is killed."""
    loader, library = f"{site_packages(world)}/torch/utils/data", f"/usr/lib/python{world.python}/multiprocessing"
    first = format_traceback(
        world,
        [
            Call(f"{loader}/dataloader.py", 1251, "_try_get_data", "data = self._data_queue.get(timeout=timeout)"),
            Call(f"{library}/queues.py", 122, "get", "return _ForkingPickler.loads(res)"),
            Call(f"{loader}/_utils/signal_handling.py", 73, "handler", "_error_if_any_worker_fails()"),
        ],
        f"RuntimeError: DataLoader worker (pid {pid}) is killed by signal: Killed. ",
    )
    calls = training_calls(
        world, rng, "for step, batch in enumerate(loader):",
        Call(f"{loader}/dataloader.py", 701, "__next__", "data = self._next_data()"),
        Call(f"{loader}/dataloader.py", 1448, "_next_data", "idx, data = self._get_data()"),
        Call(f"{loader}/dataloader.py", 1412, "_get_data", "success, data = self._try_get_data()"),
        Call(f"{loader}/dataloader.py", 1264, "_try_get_data", "raise RuntimeError("),
    )  # fmt: skip
    second = f"RuntimeError: DataLoader worker (pid(s) {pid}) exited unexpectedly"
    return first + DIRECT_CAUSE + format_traceback(world, calls, second)


def _killed_in_step(world: World, rng: random.Random, pid: int) -> str:
    """Return the traceback of a rank that computes while its worker is killed: the signal handler raises anywhere."""
    handler = Call(
        f"{site_packages(world)}/torch/utils/data/_utils/signal_handling.py", 73, "handler",
        "_error_if_any_worker_fails()",
    )  # fmt: skip
    source = rng.choice(("loss = model(batch)", "total += loss.item()", "optimizer.step()"))
    error = f"RuntimeError: DataLoader worker (pid {pid}) is killed by signal: Killed. "
    return format_traceback(world, training_calls(world, rng, source, handler), error)


def worker_error(world: World, rng: random.Random) -> Story:
    """The program's data set raises an exception in a DataLoader worker of one rank."""
    rank, before = rng.randrange(world.size), train_until(world, rng)
    key, position = rng.choice(("caption", "pixel_values", "duration_ms", "label")), rng.randrange(1000, 900_000)
    name, source, message = rng.choice((
        ("KeyError", f'label = record["{key}"]', f"'{key}'"),
        ("IndexError", "start = self.offsets[position]",
         f"index {position} is out of bounds for axis 0 with size {position - rng.randrange(1, 99)}"),
        ("ValueError", "raise ValueError(f'bad sample {position}')", f"bad sample {position}"),
        ("UnicodeDecodeError", 'text = raw.decode("utf-8")',
         f"'utf-8' codec can't decode byte 0x9d in position {position % 4000}: invalid start byte"),
    ))  # fmt: skip
    dataset = Call(world.script.replace(".py", "_dataset.py"), rng.randrange(30, 220), "__getitem__", source)
    cause = uncaught(world, rank, before.at, _reraised(world, rng, name, message, dataset))
    return end_job(world, rng, before, [cause], [None])


def _reraised(world: World, rng: random.Random, name: str, message: str, dataset: Call) -> str:
    """Return the traceback of a worker's exception, which the main process raises again."""
    loader = f"{site_packages(world)}/torch/utils/data"
    fetch = "data = [self.dataset[idx] for idx in possibly_batched_index]"
    marks = " " * 12 + "~" * 12 + "^" * 5
    # Since Python 3.12 a comprehension has no frame of its own.
    frames = [Call(f"{loader}/_utils/fetch.py", 52, "fetch", fetch, marks)]
    if version(world.python) < (3, 12):
        frames = [
            Call(f"{loader}/_utils/fetch.py", 52, "fetch", fetch, " " * 11 + "^" * (len(fetch) - 7)),
            Call(f"{loader}/_utils/fetch.py", 52, "<listcomp>", fetch, marks),
        ]
    original = format_traceback(
        world,
        [
            Call(f"{loader}/_utils/worker.py", 349, "_worker_loop", "data = fetcher.fetch(index)"),
            *frames,
            dataset,
        ],
        f"{name}: {message}",
    )
    calls = training_calls(
        world, rng, "for step, batch in enumerate(loader):",
        Call(f"{loader}/dataloader.py", 701, "__next__", "data = self._next_data()"),
        Call(f"{loader}/dataloader.py", 1465, "_next_data", "return self._process_data(data)"),
        Call(f"{loader}/dataloader.py", 1491, "_process_data", "data.reraise()"),
        Call(f"{site_packages(world)}/torch/_utils.py", 715, "reraise", "raise exception"),
    )  # fmt: skip
    # UnicodeDecodeError cannot be made from one text, so torch raises RuntimeError in its place.
    outer = "RuntimeError" if name == "UnicodeDecodeError" else name
    where = f"Caught {name} in DataLoader worker process {rng.randrange(0, 8)}.\nOriginal "
    return format_traceback(world, calls, f"{outer}: {where}{original}\n")


def open_files(world: World, rng: random.Random) -> Story:
    """One rank reaches its limit of open files, in a worker, in the main process, or while it receives a tensor."""
    rank, before = rng.randrange(world.size), train_until(world, rng)
    path = f"/data/{rng.choice(('tokens', 'frames', 'shards'))}/part-{rng.randrange(99_999):05d}.bin"
    message = f"[Errno 24] Too many open files: '{path}'"
    opened = Call(
        world.script.replace(".py", "_shards.py"), rng.randrange(20, 90), "_open", 'handle = open(path, "rb")'
    )
    library = f"/usr/lib/python{world.python}/multiprocessing"
    reductions = f"{site_packages(world)}/torch/multiprocessing/reductions.py"
    received = (
        Call(reductions, 541, "rebuild_storage_fd", "fd = df.detach()"),
        Call(f"{library}/resource_sharer.py", 58, "detach", "return reduction.recv_handle(conn)"),
        Call(f"{library}/reduction.py", 189, "recv_handle", "return recvfds(s, 1)[0]"),
        Call(f"{library}/reduction.py", 164, "recvfds", "raise RuntimeError('received %d items of ancdata' %"),
    )  # fmt: skip
    text = rng.choice((
        _reraised(world, rng, "OSError", message, opened),
        format_traceback(world, training_calls(world, rng, "batch = next(stream)", opened), f"OSError: {message}"),
        format_traceback(
            world, training_calls(world, rng, "batch = next(stream)", *received),
            "RuntimeError: received 0 items of ancdata",
        ),
    ))  # fmt: skip
    return end_job(world, rng, before, [uncaught(world, rank, before.at, text)], ["host.fd-limit"])


FAULTS = (
    Fault("worker-killed", worker_killed, BACKENDS),
    Fault("worker-error", worker_error, BACKENDS),
    Fault("open-files", open_files, BACKENDS),
)
