"""What the agents of torchelastic write, by version of torch: start, end, signals, and the table of failures."""

from __future__ import annotations

import random
from collections.abc import Sequence

from triage.testing.composer.layouts.ends import SIGNAL_NAMES, Stop, end_of
from triage.testing.composer.layouts.files import Console, is_healthy
from triage.testing.composer.model import Exit, Story, World

_API = "torch.distributed.elastic.multiprocessing.api"
_AGENT = "torch.distributed.elastic.agent.server.api"
_LEVELS = {"I": "INFO", "W": "WARNING", "E": "ERROR"}
_STARS = "*" * 41
# Line numbers by version of torch: of the signal that the agent sends, and of the failure.
_API_LINES = {(2, 4): (851, 833), (2, 5): (897, 869), (2, 6): (897, 869), (2, 7): (900, 874)}


def poll_seconds(world: World) -> float:
    """Return the time between two looks at the processes: 5 s before torch 2.4."""
    return 0.1 if _version(world) >= (2, 4) else 5.0


def add_agents(
    story: Story,
    world: World,
    stops: Sequence[Stop],
    consoles: Sequence[Console],
    rng: random.Random,
    program: str = "torchrun",
    role: str = "default",
) -> None:
    """Add the lines of the agent of each node to its console; some jobs have its INFO lines."""  # fmt: skip
    is_verbose = rng.random() < 0.4
    for node, console in enumerate(consoles):
        _add_start(world, node, console, is_verbose, role)
        stop = stops[node]
        if is_healthy(story):
            if is_verbose:
                text = f"[{role}] worker group successfully finished. Waiting 300 seconds for other agents to finish."
                console.write(end_of(story) + 1, agent_line(world, node, end_of(story) + 1, "I", _AGENT, 879, text))
        elif stop.ended and not story.stopped_by:
            _add_failures(world, node, stop, console, program)
        elif story.stopped_by or rng.random() < 0.5:
            _add_signal(story, world, node, stop, console, program)


def agent_line(world: World, node: int, at: float, level: str, module: str, number: int, text: str) -> str:
    """Return records of torch's Python logger, one for each line of text."""
    if _version(world) < (2, 3):
        head = f"[{world.stamp(at, '%Y-%m-%d %H:%M:%S,%L')}] {module}: [{_LEVELS[level]}] "
    else:
        thread = (
            140_000_000_000_000 + world.pids[0] * 7919 % 2**28 * 4096
            if _version(world) < (2, 5)
            else agent_pid(world, node)
        )
        above = ("", "site-packages/", f"{_packages(world)}/")[world.pids[0] % 3 if _version(world) >= (2, 5) else 0]
        place = above + module.replace(".", "/")
        head = f"{level}{world.stamp(at, '%m%d %H:%M:%S.%L')}000 {thread} {place}.py:{number}] "
    return "\n".join(head + part for part in text.split("\n"))


def agent_pid(world: World, node: int) -> int:
    """Return the pid of the launcher of a node."""
    return world.pids[world.on_node(node)[0]] - 12


def _add_start(world: World, node: int, console: Console, is_verbose: bool, role: str) -> None:
    if world.per_node > 1:
        text = (
            f"\n{_STARS}\nSetting OMP_NUM_THREADS environment variable for each process to be 1 in default, to "
            "avoid your "
            "system being overloaded, please further tune the variable for optimal performance in your application as "
            f"needed. \n{_STARS}"
        )
        at = 0.1 + node * 0.137
        console.write(at, agent_line(world, node, at, "W", "torch.distributed.run", 793, text))
    if is_verbose:
        ranks, size = list(world.on_node(node)), [world.size] * world.per_node
        text = (
            f"[{role}] Rendezvous complete for workers. Result:\n  restart_count=0\n  master_addr={world.hosts[0]}\n"
            f"  master_port=29500\n  group_rank={node}\n  group_world_size={len(world.hosts)}\n"
            f"  local_ranks={list(range(world.per_node))}\n  role_ranks={ranks}\n  global_ranks={ranks}\n"
            f"  role_world_sizes={size}\n  global_world_sizes={size}\n"
        )
        at = 0.6 + node / 1000
        console.write(at, agent_line(world, node, at, "I", _AGENT, 525, text))


def _add_failures(world: World, node: int, stop: Stop, console: Console, program: str) -> None:
    """Add what the agent of a node writes when its look at the processes shows failures, in the order of local ranks.

    Without an error file it takes the time of its look for all, so the first by local rank is its "root cause".
    """
    at = stop.at + 0.05
    sending, failing = _API_LINES.get(_version(world), (908, 882))
    for number, rank in enumerate(stop.stopped):
        text, moment = f"Sending process {world.pids[rank]} closing signal SIGTERM", at + number / 1000
        console.write(moment, agent_line(world, node, moment, "W", _API, sending, text))
    failed = sorted(stop.ended, key=lambda end: end.rank)
    first = failed[0]
    text = (
        f"failed (exitcode: {first.status}) local_rank: {world.local(first.rank)} (pid: {world.pids[first.rank]}) "
        "of binary: /opt/venv/bin/python3"
    )
    console.write(at + 0.9, agent_line(world, node, at + 0.9, "E", _API, failing, text))
    console.write(at + 1, "\n".join([*_frames(world, program), *table(world, failed, at)]))


def _add_signal(story: Story, world: World, node: int, stop: Stop, console: Console, program: str) -> None:
    """Add what an agent writes that is ended from outside."""
    is_interrupt = any("KeyboardInterrupt" in line.text for line in story.lines)
    number, at = (2 if is_interrupt else 15), stop.at + 0.3
    name = SIGNAL_NAMES[number]
    if _version(world) >= (2, 4):
        text = f"Received Signals.{name} death signal, shutting down workers"
        console.write(at, agent_line(world, node, at, "W", _AGENT, 704, text))
    sending = _API_LINES.get(_version(world), (908, 882))[0]
    for rank in stop.stopped:
        text = f"Sending process {world.pids[rank]} closing signal {name}"
        console.write(at, agent_line(world, node, at, "W", _API, sending, text))
    lines = [
        *_frames(world, program)[:-2],
        f'  File "{_packages(world)}/torch/distributed/elastic/multiprocessing/api.py", line 84, in '
        "_terminate_process_handler",
        '    raise SignalException(f"Process {os.getpid()} got signal: {sigval}", sigval=sigval)',
        f"torch.distributed.elastic.multiprocessing.api.SignalException: Process {agent_pid(world, node)} got signal: "
        f"{number}",
    ]
    console.write(at + 0.7, "\n".join(lines))


def table(world: World, exits: Sequence[Exit], at: float) -> list[str]:
    """Return the lines of ChildFailedError's table, the first failure last."""
    entries = [_entry(world, number, end, at) for number, end in enumerate(exits)]
    return [
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
        "=" * 60,
        f"{world.script.rpartition('/')[2]} FAILED",
        "-" * 60,
        "Failures:",
        *([line for entry in entries[1:] for line in entry] or ["  <NO_OTHER_FAILURES>"]),
        "-" * 60,
        "Root Cause (first observed failure):",
        *entries[0],
        "=" * 60,
    ]  # fmt: skip


def _entry(world: World, number: int, end: Exit, at: float) -> list[str]:
    signal = f" ({SIGNAL_NAMES.get(-end.status, 'SIGUNKNOWN')})" if end.status < 0 else ""
    note = (
        f"Signal {-end.status}{signal} received by PID {world.pids[end.rank]}"
        if end.status < 0
        else "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html"
    )
    return [
        f"[{number}]:",
        f"  time      : {world.stamp(at, '%Y-%m-%d_%H:%M:%S')}",
        f"  host      : {world.host(end.rank)}",
        f"  rank      : {end.rank} (local_rank: {world.local(end.rank)})",
        f"  exitcode  : {end.status} (pid: {world.pids[end.rank]})",
        "  error_file: <N/A>",
        f"  traceback : {note}",
    ]  # fmt: skip


def _frames(world: World, program: str) -> list[str]:
    """Return the traceback of the launcher's program, up to the line that raises."""
    site = _packages(world)
    begin = [
        ("/opt/venv/bin/torchrun", 8, "<module>", "sys.exit(main())"),
        (f"{site}/torch/distributed/elastic/multiprocessing/errors/__init__.py", 355, "wrapper",
         "return f(*args, **kwargs)"),
        (f"{site}/torch/distributed/run.py", 919, "main", "run(args)"),
    ]  # fmt: skip
    if program == "accelerate":
        commands = f"{site}/accelerate/commands"
        begin = [
            ("/opt/venv/bin/accelerate", 8, "<module>", "sys.exit(main())"),
            (f"{commands}/accelerate_cli.py", 50, "main", "args.func(args)"),
            (f"{commands}/launch.py", 1204, "launch_command", "multi_gpu_launcher(args)"),
            (f"{commands}/launch.py", 825, "multi_gpu_launcher", "distrib_run.run(args)"),
        ]
    end = [
        (f"{site}/torch/distributed/run.py", 910, "run", "elastic_launch("),
        (f"{site}/torch/distributed/launcher/api.py", 138, "__call__",
         "return launch_agent(self._config, self._entrypoint, list(args))"),
        (f"{site}/torch/distributed/launcher/api.py", 269, "launch_agent", "raise ChildFailedError("),
    ]  # fmt: skip
    lines = ["Traceback (most recent call last):"]
    for file, number, function, code in begin + end:
        lines += [f'  File "{file}", line {number}, in {function}', f"    {code}"]
    return lines


def _packages(world: World) -> str:
    return f"/opt/venv/lib/python{world.python}/site-packages"


def _version(world: World) -> tuple[int, int]:
    major, minor = world.torch.split(".")[:2]
    return int(major), int(minor)
