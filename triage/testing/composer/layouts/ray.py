"""What Ray Train leaves behind: the driver's log with all workers' lines, or the files of a session."""

from __future__ import annotations

import random

from triage.testing.composer.layouts.ends import Stop, find_stop
from triage.testing.composer.layouts.files import Console, LogFiles, add_others, is_healthy, names_itself
from triage.testing.composer.layouts.interface import Layout
from triage.testing.composer.layouts.reraise import catch_exceptions
from triage.testing.composer.model import Exit, Line, Story, World, Written

_DETAIL = (
    "Worker exit type: SYSTEM_ERROR Worker exit detail: Worker unexpectedly exits with a connection error code "
    "2. End of "
    "file. There are some potential root causes. (1) The process is killed by SIGKILL by OOM killer due to high memory "
    "usage. (2) ray stop --force is called. (3) The worker is crashed unexpectedly due to SIGSEGV or other unexpected "
    "errors."
)


def driver(story: Story, world: World, rng: random.Random) -> Written:
    """Write the driver's log: each line of a worker with pid and, on other nodes, address; then Ray's exception."""
    files, is_coloured = LogFiles(), rng.random() < 0.3
    stop = find_stop(story, world, rng.uniform(0.5, 3))
    console = Console(files, rng.choice(("driver.log", "ray_train.log", "job-driver-raysubmit_x1.log")), world.hosts[0])
    raised = ""
    if stop.ended and not story.stopped_by:
        story, raised = catch_exceptions(story, stop.ended[0])

    def place(line: Line) -> tuple[str, str]:
        head = _head(world, line.writer.number)
        return console.path, f"\x1b[36m{head}\x1b[0m " if is_coloured else f"{head} "

    files.add_ranks(story, world, place, [stop])
    add_others(story, [console])
    _add_end(story, world, stop, console, raised, rng)
    is_recorded = names_itself(story, world)
    return Written(files.finished(), is_recorded, is_recorded, reports_exits=is_recorded, drops_tags=True)


def session(story: Story, world: World, rng: random.Random) -> Written:
    """Write the files of a session: `.out` and `.err` of each worker, by node, and the driver's log on the first."""
    files, stop = LogFiles(), find_stop(story, world, rng.uniform(0.5, 3))
    name = f"session_{world.stamp(-30, '%Y-%m-%d_%H-%M-%S_%f')}_{world.pids[0] + 3}"
    workers = [f"worker-{rng.getrandbits(224):056x}-01000000-{pid}" for pid in world.pids]
    above = [f"{host}/" if len(world.hosts) > 1 else "" for host in world.hosts]
    console = Console(files, f"{above[0]}{name}/logs/job-driver-raysubmit_x1.log", world.hosts[0])
    paths = [f"{above[world.node(rank)]}{name}/logs/{workers[rank]}" for rank in world.ranks]

    def place(line: Line) -> tuple[str, str]:
        return f"{paths[line.writer.number]}.{'err' if line.stream == 'stderr' else 'out'}", ""

    for rank, path in enumerate(paths):
        for end in ("out", "err"):
            files.add(f"{path}.{end}", 0.3, ":job_id:01000000\n:actor_name:RayTrainWorker", world.host(rank))
    files.add_ranks(story, world, place, [stop])
    add_others(story, [console])
    raised = catch_exceptions(story, stop.ended[0])[1] if stop.ended and not story.stopped_by else ""
    _add_end(story, world, stop, console, raised, rng)
    is_recorded = names_itself(story, world)
    return Written(files.finished(), is_recorded, is_recorded or len(world.hosts) > 1, reports_exits=is_recorded)


def _head(world: World, rank: int) -> str:
    """Return the prefix of a worker; the driver's own node has no address."""
    address = "" if world.node(rank) == 0 else f", ip={_address(world, rank)}"
    return f"(RayTrainWorker pid={world.pids[rank]}{address})"


def _address(world: World, rank: int) -> str:
    return f"10.0.{world.node(rank)}.{10 + world.node(rank)}"


def _add_end(story: Story, world: World, stop: Stop, console: Console, raised: str, rng: random.Random) -> None:
    """Add how the driver ends: the worker's exception raised again, or the death of its actor."""
    at = stop.at + 1.5
    if is_healthy(story):
        trial = f"TorchTrainer_{rng.getrandbits(20):05x}_00000"
        console.write(at, f"Training completed after 1 iterations at {world.stamp(at)}. Total running time: {int(at)}s")
        console.write(at, f"Trial {trial} completed")
    elif story.stopped_by:
        text = "WARNING tune.py:219 -- Stop signal received (e.g. via SIGINT/Ctrl+C), ending Ray Tune run."
        console.write(at, f"{world.stamp(at, '%Y-%m-%d %H:%M:%S,%L')}\t{text}")
    elif stop.ended:
        first, actor = stop.ended[0], f"{rng.getrandbits(96):024x}01000000"
        if not raised:
            console.write(at - 1, _raylet(world, first, rng))
        block = _task_error(world, first, actor, raised) if raised else _actor_died(world, first, actor)
        head = (
            f"{world.stamp(at, '%Y-%m-%d %H:%M:%S,%L')}\tERROR tune_controller.py:1331 -- Trial task failed for trial "
        )
        console.write(at, f"{head}TorchTrainer_{rng.getrandbits(20):05x}_00000\n{block}")


def _frames(world: World) -> str:
    site = f"/opt/venv/lib/python{world.python}/site-packages/ray"
    return (
        f'Traceback (most recent call last):\n  File "{site}/air/execution/_internal/event_manager.py", line 110, in '
        f'resolve_future\n    result = ray.get(future)\n  File "{site}/_private/worker.py", line 2782, in get\n'
        "    values, debugger_breakpoint = worker.get_objects(object_refs, timeout=timeout)\n"
        f'  File "{site}/_private/worker.py", line 929, in get_objects\n    raise value.as_instanceof_cause()\n'
    )


def _task_error(world: World, first: Exit, actor: str, raised: str) -> str:
    name = raised.rstrip().split("\n")
    error = next((line for line in reversed(name) if line[:1].isalpha() and ":" in line), "RuntimeError: ")
    short = error.split(":")[0].rpartition(".")[2]
    where = f"pid={world.pids[first.rank]}, ip={_address(world, first.rank)}, actor_id={actor}"
    site = f"/opt/venv/lib/python{world.python}/site-packages/ray/train/_internal"
    body = "\n".join(line for line in name if line != "Traceback (most recent call last):")
    return (
        f"{_frames(world)}ray.exceptions.RayTaskError({short}): ray::_RayTrainWorker__execute.get_next() ({where}, "
        "repr=<ray.train._internal.worker_group.RayTrainWorker object at 0x7f21c83b1d90>)\n"
        f'  File "{site}/worker_group.py", line 33, in __execute\n    raise skipped from exception_cause(skipped)\n'
        f'  File "{site}/utils.py", line 169, in discard_return_wrapper\n    train_func(*args, **kwargs)\n{body}'
    )


def _actor_died(world: World, first: Exit, actor: str) -> str:
    return (
        f"{_frames(world)}ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.\n"
        f"\tclass_name: RayTrainWorker\n\tactor_id: {actor}\n\tpid: {world.pids[first.rank]}\n"
        f"\tnamespace: 2f9c1d0e-5b1a-4a53-9a70-1b6f2f1c7d11\n\tip: {_address(world, first.rank)}\n"
        f"The actor is dead because its worker process has died. {_DETAIL}"
    )


def _raylet(world: World, first: Exit, rng: random.Random) -> str:
    address = "" if world.node(first.rank) == 0 else f", ip={_address(world, first.rank)}"
    return (
        f"(raylet{address}) A worker died or was killed while executing a task by an unexpected system error. To "
        "troubleshoot the problem, check the logs for the dead worker. RayTask ID: "
        f"{rng.getrandbits(192):048x} Worker ID: "
        f"{rng.getrandbits(224):056x} Node ID: {rng.getrandbits(224):056x} Worker IP address: "
        f"{_address(world, first.rank)} Worker port: {rng.randrange(10002, 19999)} Worker PID: "
        f"{world.pids[first.rank]} "
        f"{_DETAIL}"
    )


LAYOUTS = (
    Layout("ray-driver", driver, backends=("nccl", "gloo")),
    Layout("ray-session", session, backends=("nccl", "gloo")),
)
