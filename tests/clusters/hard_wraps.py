"""What programs put around an exception: workers, pools, and the wrappers of a job's own framework.

A wrapper has (world, rank, rng, file of the first frame, frames, last lines) and returns the whole template.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from triage.testing.composer.faults.uncaught import DIRECT_CAUSE, DURING_HANDLING, Call, format_traceback, site_packages
from triage.testing.composer.model import World

Calls = tuple[Call, ...]
Wrap = Callable[[World, int, random.Random, str, Calls, str], str]


def plain(world: World, rank: int, rng: random.Random, file: str, calls: Calls, error: str) -> str:
    """Nothing around it."""
    return format_traceback(world, calls, error)


def task_failed(world: World, rank: int, rng: random.Random, file: str, calls: Calls, error: str) -> str:
    """The framework of the job raises its own exception from the cause."""
    package = _package(file)
    launch = Call(f"<app>/{package}/launch.py", 133, "run_task", "raise TaskFailed(rank) from error")
    name = f"{package}.launch.TaskFailed: rank {rank} failed"
    return (
        plain(world, rank, rng, file, calls, error) + DIRECT_CAUSE + format_traceback(world, (calls[0], launch), name)
    )


def task_failed_remotely(world: World, rank: int, rng: random.Random, file: str, calls: Calls, error: str) -> str:
    """The framework quotes the traceback of the process that failed in the message of its own exception."""
    package = _package(file)
    launch = Call(f"<app>/{package}/launch.py", 171, "collect", "raise TaskFailed(rank, text)")
    quoted = "\n".join("    " + line for line in plain(world, rank, rng, file, calls[1:], error).split("\n"))
    name = f"{package}.launch.TaskFailed: rank {rank} failed, its worker wrote:\n{quoted}"
    return format_traceback(world, (calls[0], launch), name)


def cleanup(world: World, rank: int, rng: random.Random, file: str, calls: Calls, error: str) -> str:
    """The clean-up after the cause fails too."""
    close = Call(f"<app>/{_package(file)}/session.py", 88, "__exit__", "self.stream.write(self.footer)")
    second = format_traceback(world, (calls[0], close), "ValueError: write to closed file")
    return plain(world, rank, rng, file, calls, error) + DURING_HANDLING + second


def logged(world: World, rank: int, rng: random.Random, file: str, calls: Calls, error: str) -> str:
    """The program logs the exception and ends itself."""
    stamp = world.stamp(rng.uniform(60, 9000), "%Y-%m-%d %H:%M:%S,%L")
    head = rng.choice((f"{stamp} ERROR {_package(file)}.main: rank {rank} stops at step {rng.randrange(9000)}",
                       f"{stamp} - {_package(file)} - CRITICAL - unhandled exception"))  # fmt: skip
    return f"{head}\n{plain(world, rank, rng, file, calls, error)}"


def data_loader(world: World, rank: int, rng: random.Random, file: str, calls: Calls, error: str) -> str:
    """A worker of torch's DataLoader raised it, and the rank raises it again."""
    site, name = site_packages(world), error.partition(":")[0]
    inner = format_traceback(
        world,
        (Call(f"{site}/torch/utils/data/_utils/worker.py", 349, "_worker_loop", "data = fetcher.fetch(index)"),
         *calls[2:]),
        error,
    )  # fmt: skip
    outer = (
        *calls[:2],
        Call(f"{site}/torch/utils/data/dataloader.py", 708, "__next__", "data = self._next_data()"),
        Call(f"{site}/torch/_utils.py", 733, "reraise", "raise exception"),
    )
    short = name.rpartition(".")[2]
    text = f"{name}: Caught {short} in DataLoader worker process {rng.randrange(12)}.\nOriginal {inner}\n"
    return format_traceback(world, outer, text)


def process_pool(world: World, rank: int, rng: random.Random, file: str, calls: Calls, error: str) -> str:
    """A process of a pool raised it, and the rank raises it again."""
    library = f"/usr/lib/python{world.python}/multiprocessing/pool.py"
    work = Call(library, 125, "worker", "result = (True, func(*args, **kwds))")
    inner = format_traceback(world, (work, *calls[2:]), error)
    get = Call(library, 774, "get", "raise self._value")
    head = f'multiprocessing.pool.RemoteTraceback: \n"""\n{inner}\n"""'
    return head + DIRECT_CAUSE + format_traceback(world, (*calls[:2], get), error)


def ray_task(world: World, rank: int, rng: random.Random, file: str, calls: Calls, error: str) -> str:
    """An actor of Ray raised it, and the driver raises it again."""
    name = error.partition(":")[0].strip().rpartition(".")[2]
    worker = Call(f"{site_packages(world)}/ray/_private/worker.py", 2639, "get", "raise value.as_instanceof_cause()")
    actor = "ray::RolloutWorker.play() (pid=<pid>, ip=<ip>, actor_id=<id>, repr=<rollout.RolloutWorker object>)"
    frames = format_traceback(world, calls[2:], error).partition("\n")[2]
    return format_traceback(world, (*calls[:2], worker), f"ray.exceptions.RayTaskError({name}): {actor}\n{frames}")


def _package(file: str) -> str:
    return file.removeprefix("<app>/").partition("/")[0].removesuffix(".py")


WRAPS: dict[str, Wrap] = {
    "": plain,
    "task": task_failed,
    "remote": task_failed_remotely,
    "cleanup": cleanup,
    "log": logged,
    "dataloader": data_loader,
    "pool": process_pool,
    "ray": ray_task,
}
