"""What the launcher of DeepSpeed leaves behind: one console, also of several nodes through pdsh, or a file a rank."""

from __future__ import annotations

import base64
import json
import random
from functools import partial

from triage.testing.composer.layouts.ends import Stop, find_node_stops, reports
from triage.testing.composer.layouts.files import Console, LogFiles, add_others, is_healthy, names_itself
from triage.testing.composer.layouts.interface import Layout
from triage.testing.composer.model import Line, Story, World, Written


def launcher(
    story: Story, world: World, rng: random.Random, remote: bool = True, file_per_rank: bool = False
) -> Written:
    """Write one console. `remote`: pdsh starts the nodes and puts the host before each line, also with one node
    (`--force_multi`). `file_per_rank`: ranks have files.
    """  # fmt: skip
    files, path = LogFiles(), rng.choice(("console.log", "deepspeed.log", "train_out.log"))
    stops = find_node_stops(story, world, rng.uniform(0.1, 1.1))
    prefixes = [f"{host}: " if remote else "" for host in world.hosts]
    consoles = [Console(files, path, host, prefix) for host, prefix in zip(world.hosts, prefixes, strict=True)]
    stem = world.stamp(0, "logs/%Y-%m-%d-%H:%M:%S")

    def place(line: Line) -> tuple[str, str]:
        rank = line.writer.number
        return (f"{stem}_rank{rank}.log", "") if file_per_rank else (path, prefixes[world.node(rank)])

    _add_runner(world, remote, Console(files, path, world.hosts[0]))
    files.add_ranks(story, world, place, stops)
    add_others(story, consoles)
    for node, console in enumerate(consoles):
        _add_start(world, node, console, remote)
        _add_end(story, world, node, stops[node], console, remote)
    if remote:
        _add_pdsh_end(story, world, stops, Console(files, path, world.hosts[0]))
    one_each, is_recorded = world.per_node == 1, names_itself(story, world)
    ended = [end for stop in stops for end in stop.ended] if one_each and remote else []
    named = is_recorded or (remote and not file_per_rank)
    return Written(files.finished(), file_per_rank or one_each, named, reports(story, ended))


def _record(world: World, at: float, level: str, place: str, text: str) -> str:
    return f"[{world.stamp(at, '%Y-%m-%d %H:%M:%S,%L')}] [{level}] [{place}] {text}"


def _info(world: World, remote: bool) -> dict[str, list[int]]:
    """Return the launcher's map of hosts to local ranks."""
    hosts = world.hosts if remote else ("localhost",)
    return {host: list(range(world.per_node)) for host in hosts}


def _add_runner(world: World, remote: bool, console: Console) -> None:
    """Add the lines of the `deepspeed` command, which starts a launcher on each node."""
    info, address = base64.urlsafe_b64encode(json.dumps(_info(world, remote)).encode()).decode(), world.hosts[0]
    if not remote:
        text = "Unable to find hostfile, will proceed with training with local resources only."
        console.write(0.1, _record(world, 0.1, "WARNING", "runner.py:215:fetch_hostfile", text))
        command = (
            f"/usr/bin/python3 -u -m deepspeed.launcher.launch --world_info={info} --master_addr=127.0.0.1 "
            f"--master_port=29500 --enable_each_rank_log=None {world.script}"
        )
    else:
        folder = world.script.rpartition("/")[0]
        command = (
            f"pdsh -S -f 1024 -w {','.join(world.hosts)} export PYTHONPATH={folder};  cd {folder}; "
            "/usr/bin/python3 -u -m "
            f"deepspeed.launcher.launch --world_info={info} --node_rank=%n --master_addr={address} --master_port=29500 "
            f"{world.script} --deepspeed --deepspeed_config ds_config.json"
        )
    console.write(0.3, _record(world, 0.3, "INFO", "runner.py:607:main", f"cmd = {command}"))


def _add_start(world: World, node: int, console: Console, remote: bool) -> None:
    info, locals_ = _info(world, remote), list(range(world.per_node))
    mapping = {host: [index * world.per_node + local for local in locals_] for index, host in enumerate(info)}
    lines = [
        ("launch.py:146:main", f"WORLD INFO DICT: {info}"),
        ("launch.py:152:main", f"nnodes={len(info)}, num_local_procs={world.per_node}, node_rank={node}"),
        ("launch.py:163:main", f"global_rank_mapping=defaultdict(<class 'list'>, {mapping})"),
        ("launch.py:164:main", f"dist_world_size={world.size}"),
        ("launch.py:168:main", f"Setting CUDA_VISIBLE_DEVICES={','.join(map(str, locals_))}"),
    ]
    for rank in world.on_node(node):
        text = f"process {world.pids[rank]} spawned with command: {_command(world, world.local(rank), remote)}"
        lines.append(("launch.py:256:main", text))
    for number, (place, text) in enumerate(lines):
        console.write(0.6 + number / 100, _record(world, 0.6 + number / 100, "INFO", place, text))


def _add_end(story: Story, world: World, node: int, stop: Stop, console: Console, remote: bool) -> None:
    """Add the end of the launcher of a node.

    It looks each second, kills all processes at the first failure, and shows the command that it started last, whose
    local rank is always the highest.
    """
    at, ranks = stop.at + 0.3, world.on_node(node)
    if is_healthy(story):
        for rank in ranks:
            text = f"Process {world.pids[rank]} exits successfully."
            console.write(at + 1, _record(world, at + 1, "INFO", "launch.py:351:main", text))
        return
    if not stop.ended and not story.stopped_by:
        return
    for rank in ranks:
        text = f"Killing subprocess {world.pids[rank]}"
        console.write(at, _record(world, at, "INFO", "launch.py:319:sigkill_handler", text))
    if story.stopped_by or not stop.ended:
        text = "Main process received SIGTERM, exiting"
        console.write(at + 1, _record(world, at + 1, "INFO", "launch.py:328:sigkill_handler", text))
    else:
        status = min(stop.ended, key=lambda end: (end.at // 1, end.rank)).status
        text = f"{_command(world, world.per_node - 1, remote)} exits with return code = {status}"
        console.write(at + 1, _record(world, at + 1, "ERROR", "launch.py:325:sigkill_handler", text))


def _add_pdsh_end(story: Story, world: World, stops: tuple[Stop, ...], console: Console) -> None:
    """Add pdsh's line about each node whose launcher failed."""
    if is_healthy(story):
        return
    for host, stop in zip(world.hosts, stops, strict=True):
        if stop.ended or story.stopped_by:
            status = stop.ended[0].status % 256 if stop.ended and not story.stopped_by else 1
            console.write(stop.at + 1.6, f"pdsh@{world.hosts[0]}: {host}: ssh exited with exit code {status}")


def _command(world: World, local: int, remote: bool) -> list[str]:
    options = ["--deepspeed", "--deepspeed_config", "ds_config.json"] if remote else []
    return ["/usr/bin/python3", "-u", world.script, f"--local_rank={local}", *options]


LAYOUTS = (
    Layout("deepspeed-one-node", partial(launcher, remote=False), most_nodes=1, backends=("nccl", "gloo")),
    Layout("deepspeed-pdsh", launcher, backends=("nccl", "gloo")),
    Layout("deepspeed-file-per-rank", partial(launcher, file_per_rank=True)),
)
