"""What jobs on Ascend NPUs leave behind that msrun of MindSpore starts."""

from __future__ import annotations

import random

from triage.testing.composer.layouts.elastic import agent_pid
from triage.testing.composer.layouts.ends import Stop, find_stop, reports
from triage.testing.composer.layouts.files import Console, LogFiles, add_others, is_healthy, names_itself
from triage.testing.composer.layouts.interface import Layout
from triage.testing.composer.model import Line, Story, World, Written


def msrun(story: Story, world: World, rng: random.Random) -> Written:
    """Write a file for each worker, one of the scheduler that they register at, and msrun's console."""
    folder = rng.choice(("msrun_log", "output/msrun_log", "."))
    files, stop = LogFiles(), find_stop(story, world, rng.uniform(0.5, 3))
    above = "" if folder == "." else f"{folder}/"
    console = Console(files, "msrun.out", world.hosts[0])
    scheduler = Console(files, f"{above}scheduler.log", world.hosts[0])

    def place(line: Line) -> tuple[str, str]:
        return f"{above}worker_{line.writer.number}.log", ""

    files.add_ranks(story, world, place, [stop])
    add_others(story, [console])
    _add_scheduler(story, world, stop, scheduler)
    if not is_healthy(story) and not story.stopped_by:
        _add_end(world, stop, console, folder)
    # The launcher names pids; the first records of the ranks join them with ranks.
    is_recorded = names_itself(story, world)
    named = is_recorded and not story.stopped_by and reports(story, stop.ended)
    return Written(files.finished(), True, is_recorded, named)


def _record(world: World, at: float, level: str, module: str, place: str, text: str) -> str:
    moment = world.stamp(at, "%Y-%m-%d-%H:%M:%S.%L") + f".{int(at * 1e6) % 1000:03d}"
    pid = agent_pid(world, 0)
    process = f"{pid}:281473052508176,MainProcess" if module == "ME" else f"{pid},ffff8d4f7f30,python3"
    return f"[{level}] {module}({process}):{moment} [{place}] {text}"


def _add_scheduler(story: Story, world: World, stop: Stop, console: Console) -> None:
    """Add the scheduler's log: the topology, and after a failure the workers whose heartbeats are missing."""
    place = "mindspore/ccsrc/distributed/cluster/topology/meta_server_node.cc"
    text = f"The cluster topology has been constructed successfully. Total node number: {world.size}."
    console.write(4.0, _record(world, 4.0, "WARNING", "DISTRIBUTED", f"{place}:298] TransitionToInitialized", text))
    if is_healthy(story):
        at = stop.at + 2
        text = "The scheduler node exits successfully."
        console.write(at, _record(world, at, "WARNING", "DISTRIBUTED", f"{place}:201] Finalize", text))
        return
    at = stop.at + 30
    for end in stop.ended[:1]:
        text = f"The node: {end.rank} is timed out. It may exit with exception, please check this node's log."
        console.write(at, _record(world, at, "ERROR", "DISTRIBUTED", f"{place}:511] UpdateTopoState", text))


def _add_end(world: World, stop: Stop, console: Console, folder: str) -> None:
    """Add msrun's lines about workers that failed, and its exception."""
    place, at = "mindspore/parallel/cluster/process_entity/_api.py", stop.at + 0.3
    for end in stop.ended:
        text = f"Worker process {world.pids[end.rank]} exit with exception. Error code: {end.status}."
        console.write(at, _record(world, at, "ERROR", "ME", f"{place}:363", text))
    text = "There's worker exits with exception, kill all other workers."
    console.write(at + 0.2, _record(world, at + 0.2, "WARNING", "ME", f"{place}:369", text))
    console.write(at + 0.5, _record(world, at + 0.5, "WARNING", "ME", f"{place}:392", "Analyzing exception log..."))
    site = f"/usr/local/python{world.python}/lib/python{world.python}/site-packages/mindspore/parallel/cluster"
    text = (
        'Traceback (most recent call last):\n  File "/usr/local/bin/msrun", line 8, in <module>\n    sys.exit(main())\n'
        f'  File "{site}/run.py", line 146, in main\n    run(args)\n  File "{site}/run.py", line 140, in run\n'
        f'    process_manager.run()\n  File "{site}/process_entity/_api.py", line 264, in run\n    '
        "self.join_processes()\n"
        f'  File "{site}/process_entity/_api.py", line 418, in join_processes\n    raise RuntimeError("Distributed job '
        'exited with exception. Please check logs in "\nRuntimeError: Distributed job exited with exception. '
        "Please check "
        f"logs in directory: {'' if folder == '.' else folder}."
    )
    console.write(at + 1, text)


LAYOUTS = (Layout("msrun", msrun, backends=("hccl",)),)
