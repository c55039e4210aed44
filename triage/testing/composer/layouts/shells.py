"""Jobs without a launcher's console: loops of a shell, torch.multiprocessing, files by host and local rank."""

from __future__ import annotations

import json
import random

from triage.base.lazy_re import lazy_re
from triage.testing.composer.layouts.elastic import agent_line
from triage.testing.composer.layouts.ends import SIGNAL_NAMES, SIGNAL_TEXTS, Stop, cut_story, find_stop, reports
from triage.testing.composer.layouts.files import Console, LogFiles, add_others, names_itself, node_consoles, rank_lines
from triage.testing.composer.layouts.interface import Layout
from triage.testing.composer.layouts.reraise import catch_exceptions
from triage.testing.composer.model import Exit, Line, Story, World, Written

_RECORD = lazy_re(
    r"\d{4}-\S+ \S+ (?:\[rank \d+\] )?([A-Z]+) trainer: |\d{4}-\S+ \S+ \| ([A-Z]+) *\| \S+ \| rank \d+ \| "
    r"|\[\d{4}-\S+ \S+\] \[\d+\] ([A-Z]+) "
)
# Line numbers in spawn.py by version of torch: spawn, start_processes, the two raises of join, and _wrap.
_SPAWN_LINES = {
    "2.1": (246, 202, 163, 140, 74),
    "2.2": (241, 197, 158, 140, 68),
    "2.3": (281, 237, 188, 170, 75),
    "2.4": (282, 238, 189, 170, 76),
    "2.5": (328, 284, 203, 184, 90),
}


def spawn(story: Story, world: World, rng: random.Random) -> Written:
    """Write the console of a program that starts its ranks with `torch.multiprocessing.spawn`."""
    files = LogFiles()
    stop = find_stop(story, world, rng.uniform(0.02, 0.3))
    console = Console(files, rng.choice(("console.log", "train.log", "nohup.out")), world.hosts[0])
    is_failed = bool(stop.ended) and not story.stopped_by
    raised = ""
    if is_failed:
        story, raised = catch_exceptions(story, stop.ended[0])
        _add_spawn_end(world, stop, console, raised)
    files.add_ranks(story, world, lambda line: (console.path, ""), [stop])
    add_others(story, [console])
    return Written(files.finished(), False, names_itself(story, world), is_failed and reports(story, stop.ended[:1]))


def _add_spawn_end(world: World, stop: Stop, console: Console, raised: str) -> None:
    first, module = stop.ended[0], "torch.multiprocessing.spawn"
    for rank in stop.stopped:
        text = f"Terminating process {world.pids[rank]} via signal SIGTERM"
        console.write(stop.at + 0.05, agent_line(world, 0, stop.at + 0.05, "W", module, 169, text))
    site = f"/opt/venv/lib/python{world.python}/site-packages/torch/multiprocessing/spawn.py"
    lines = _SPAWN_LINES.get(world.torch[:3], (340, 296, 215, 196, 90))
    text = (
        f'Traceback (most recent call last):\n  File "{world.script}", line 266, in <module>\n'
        f'    mp.spawn(main, args=(args,), nprocs={world.size})\n  File "{site}", line {lines[0]}, in spawn\n'
        '    return start_processes(fn, args, nprocs, join, daemon, start_method="spawn")\n'
        f'  File "{site}", line {lines[1]}, in start_processes\n    while not context.join():\n'
        f'  File "{site}", line {lines[2] if raised else lines[3]}, in join\n    raise '
    )
    if raised:
        begin, _, rest = raised.partition("\n")
        text += (
            f"ProcessRaisedException(msg, error_index, failed_process.pid)\n{module}.ProcessRaisedException: "
            "\n\n-- Process "
            f'{first.rank} terminated with the following error:\n{begin}\n  File "{site}", line {lines[4]}, in _wrap\n'
            f"    fn(i, *args)\n{rest}\n"
        )
    else:
        name = SIGNAL_NAMES.get(-first.status, "")
        how = f"signal {name}" if first.status < 0 else f"exit code {first.status}"
        text += f"ProcessExitedException(\n{module}.ProcessExitedException: process {first.rank} terminated with {how}"
    console.write(stop.at + 0.4, text)


def loop(story: Story, world: World, rng: random.Random) -> Written:
    """Write a file for each rank, as a loop of bash over ranks does, which stops nobody."""
    form = rng.choice(("rank{0}.log", "out/worker_rank_{0:03d}.txt", "logs/train.rank{0:02d}.out", "log_{0}.txt"))
    files, stop = LogFiles(), find_stop(story, world, 3600.0)
    console = Console(files, "run.log", world.hosts[0])
    files.add_ranks(story, world, lambda line: (form.format(line.writer.number), ""), [stop])
    add_others(story, [console])
    for end in stop.ended:
        if end.status < 0:
            console.write(end.at + 0.1, _bash_line(world, end))
    # Bash names pids; the first records of the ranks join them with ranks.
    is_recorded = names_itself(story, world)
    by_signal = [end for end in stop.ended if end.status < 0]
    return Written(files.finished(), True, is_recorded, is_recorded and reports(story, by_signal))


def _bash_line(world: World, end: Exit) -> str:
    """Return what bash writes when a signal ended a process; all else it leaves to the script."""
    core = " (core dumped)" if -end.status in (4, 6, 7, 8, 11) else ""
    how = f"{SIGNAL_TEXTS.get(-end.status, '')}{core}"
    return f"./run.sh: line 23: {world.pids[end.rank]} {how:<23} RANK=$rank python3 {world.script}"


def local_files(story: Story, world: World, rng: random.Random) -> Written:
    """Write a directory for each node, by name or index, with a file for each local rank."""
    above = rng.choice(("node_{node}", "{host}", "logs/node{node}", "logs/{host}"))
    name = rng.choice(("local_rank_{local}.log", "gpu{local}.log", "worker{local}.txt"))
    files, stop = LogFiles(), find_stop(story, world, rng.uniform(1, 10))
    consoles = node_consoles(files, world, f"{above}/launch.log")

    def place(line: Line) -> tuple[str, str]:
        rank = line.writer.number
        return f"{above}/{name}".format(node=world.node(rank), host=world.host(rank), local=world.local(rank)), ""

    files.add_ranks(story, world, place, [stop])
    add_others(story, consoles)
    is_recorded, is_host = names_itself(story, world), "{host}" in above
    labels = is_recorded or len(world.hosts) == 1 or not is_host
    names = {} if is_host else {above.format(node=node).split("/")[-1]: host for node, host in enumerate(world.hosts)}
    return Written(files.finished(), labels, is_recorded or is_host, reports_exits=False, host_names=names)


def host_files(story: Story, world: World, rng: random.Random) -> Written:
    """Write one file for each host, with the output of its ranks mixed without prefixes."""
    files, stop = LogFiles(), find_stop(story, world, rng.uniform(1, 10))
    consoles = node_consoles(files, world, rng.choice(("{host}.log", "logs/train-{host}.txt", "{host}/stdout.log")))
    files.add_ranks(story, world, lambda line: (consoles[world.node(line.writer.number)].path, ""), [stop])
    add_others(story, consoles)
    labels = world.per_node == 1 and names_itself(story, world)
    return Written(files.finished(), labels, True, reports_exits=False)


def json_lines(story: Story, world: World, rng: random.Random) -> Written:
    """Write a file for each node, with the program's records as JSON and all else as it is."""
    key = rng.choice(("rank", "global_rank"))
    files, stop = LogFiles(), find_stop(story, world, rng.uniform(1, 10))
    consoles = node_consoles(files, world, "{host}.jsonl", "train.jsonl")
    for line in rank_lines(cut_story(story, world, [stop])):
        record = _split_record(line, world)
        text = line.text
        if record:
            moment = world.stamp(line.at, "%Y-%m-%dT%H:%M:%S.%L")
            text = json.dumps({"ts": moment, "level": record[0].lower(), key: line.writer.number, "message": record[1]})
        consoles[world.node(line.writer.number)].write(line.at, text)
    add_others(story, consoles)
    labels = world.per_node == 1 and names_itself(story, world)
    return Written(files.finished(), labels, names_itself(story, world) or len(world.hosts) > 1, reports_exits=False)


def _split_record(line: Line, world: World) -> tuple[str, str] | None:
    """Return level and message of a record of the program's logger, or None for other output."""
    if match := _RECORD.match(line.text):
        return match[1] or match[2] or match[3], line.text[match.end() :]
    is_bare = world.log_style == "bare" and line.stream == "stdout" and " NCCL " not in line.text
    return ("INFO", line.text) if is_bare else None


LAYOUTS = (
    Layout("torch-spawn", spawn, most_nodes=1, backends=("nccl", "gloo")),
    Layout("bash-file-per-rank", loop),
    Layout("file-per-local-rank", local_files),
    Layout("file-per-host", host_files),
    Layout("json-lines", json_lines),
)
