"""What mpirun and mpiexec leave behind: Open MPI, PRRTE, MPICH, Intel MPI, PALS, and SageMaker, which runs mpirun."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial

from triage.testing.composer.layouts.ends import SIGNAL_TEXTS, Stop, end_of, find_stop, reports
from triage.testing.composer.layouts.files import Console, LogFiles, add_others, is_healthy, names_itself
from triage.testing.composer.layouts.interface import Layout
from triage.testing.composer.model import Exit, Line, Story, World, Written

_DASHES = "-" * 74
AddEnd = Callable[[World, Stop, Console, random.Random], None]
"""Add the launcher's lines about a failed job."""


def labelled(story: Story, world: World, rng: random.Random, form: str, add_end: AddEnd, delay: float = 0.3) -> Written:
    """Write one console; `form` is the prefix of a rank's line, and may be empty."""
    files = LogFiles()
    stop = find_stop(story, world, rng.uniform(delay / 3, delay * 2))
    console = Console(files, rng.choice(("console.log", "mpirun.log", "job.out")), world.hosts[0])
    job = 10_000 + world.pids[0] % 50_000

    def place(line: Line) -> tuple[str, str]:
        rank = line.writer.number
        names = {"rank": rank, "stream": line.stream, "job": job, "host": world.host(rank), "first": world.hosts[0]}
        return console.path, form.format(**names, node=world.node(rank) + 1)

    files.add_ranks(story, world, place, [stop])
    add_others(story, [console])
    if not is_healthy(story) and not story.stopped_by:
        add_end(world, stop, console, rng)
    elif add_end is add_sagemaker_end and is_healthy(story):
        stamp = world.stamp(end_of(story) + 1, "%Y-%m-%d %H:%M:%S,%L")
        console.write(end_of(story) + 1, f"{stamp} sagemaker-training-toolkit INFO     Reporting training SUCCESS")
    first = stop.ended[:1] if not story.stopped_by else ()
    if add_end is add_intel_end and first and first[0].status == -9:
        first = ()  # its block looks like those of the ranks that mpiexec killed
    # SageMaker calls its hosts so, whatever they call themselves.
    names = {f"algo-{node + 1}": host for node, host in enumerate(world.hosts)} if "algo-" in form else {}
    named = names_itself(story, world) or "{host}" in form
    return Written(files.finished(), bool(form), named, reports(story, first), host_names=names)


def output_directories(story: Story, world: World, rng: random.Random) -> Written:
    """Write Open MPI's `--output-filename`: a directory for each rank; mpirun's own lines go to the console."""
    files = LogFiles()
    stop = find_stop(story, world, rng.uniform(0.1, 0.6))
    console = Console(files, "mpirun.log", world.hosts[0])
    width = len(str(world.size - 1))

    def place(line: Line) -> tuple[str, str]:
        return f"out/1/rank.{line.writer.number:0{width}}/{line.stream}", ""

    files.add_ranks(story, world, place, [stop])
    add_others(story, [console])
    if not is_healthy(story) and not story.stopped_by:
        add_openmpi_end(world, stop, console, rng)
    return Written(files.finished(), True, names_itself(story, world), reports(story, stop.ended[:1]))


def add_openmpi_end(world: World, stop: Stop, console: Console, rng: random.Random) -> None:
    """Add the end of a failed job of Open MPI 2 to 4, which names the first rank that failed."""
    first = stop.ended[0] if stop.ended else Exit(0, 1, stop.at)
    text = (
        f"{_DASHES}\nPrimary job  terminated normally, but 1 process returned\n"
        f"a non-zero exit code. Per user-direction, the job has been aborted.\n{_DASHES}\n"
    )
    if first.status < 0:
        text += (
            f"{_DASHES}\nmpirun noticed that process rank {first.rank} with PID "
            f"{rng.choice((0, world.pids[first.rank]))} on "
            f"node {world.host(first.rank)} exited on signal {-first.status} "
            f"({SIGNAL_TEXTS.get(-first.status, '')}).\n{_DASHES}"
        )  # fmt: skip
    else:
        text += (
            f"{_DASHES}\nmpirun detected that one or more processes exited with non-zero status, thus "
            "causing\nthe job to be "
            "terminated. The first process to do so was:\n\n  Process name: "
            f"[[{rng.randrange(1000, 60000)},1],{first.rank}]\n"
            f"  Exit code:    {first.status}\n{_DASHES}"
        )  # fmt: skip
    console.write(stop.at + 0.2, text)


def add_prrte_end(world: World, stop: Stop, console: Console, rng: random.Random) -> None:
    """Add the end of a failed job of Open MPI 5, whose runtime is PRRTE."""
    first = stop.ended[0] if stop.ended else Exit(0, 1, stop.at)
    if first.status < 0:
        text = (
            f"prterun noticed that process rank {first.rank} with PID {world.pids[first.rank]} on node "
            f"{world.host(first.rank)} exited on\nsignal {-first.status} ({SIGNAL_TEXTS.get(-first.status, '')})."
        )
    else:
        name = f"prterun-{world.hosts[0]}-{10_000 + world.pids[0] % 50_000}@1,{first.rank}"
        text = (
            "prterun detected that one or more processes exited with non-zero status,\nthus causing the job to be "
            f"terminated. The first process to do so was:\n\n   Process name: [{name}]\n   Exit code:    {first.status}"
        )
    console.write(stop.at + 0.2, f"{_DASHES}\n{text}\n{_DASHES}")


def add_hydra_end(world: World, stop: Stop, console: Console, rng: random.Random) -> None:
    """Add the end of a failed job of MPICH's hydra, which names pid and host but no rank."""
    first = stop.ended[0] if stop.ended else Exit(0, 1, stop.at)
    line, host = "=" * 83, world.host(first.rank)
    text = (
        f"\n{line}\n=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n=   PID {world.pids[first.rank]} "
        "RUNNING AT "
        f"{host}\n=   EXIT CODE: {abs(first.status)}\n=   CLEANING UP REMAINING PROCESSES\n"
        f"=   YOU CAN IGNORE THE BELOW CLEANUP MESSAGES\n{line}"
    )
    console.write(stop.at + 0.2, text)
    for node, other in enumerate(world.hosts):
        if other != host:
            head = f"[proxy:0:{node}@{other}]"
            text = (
                f"{head} HYD_pmcd_pmip_control_cmd_cb (proxy/pmip_cb.c:480): assert (!closed) failed\n{head} "
                "HYDT_dmxu_poll_wait_for_event (lib/tools/demux/demux_poll.c:76): callback returned error status\n"
                f"{head} main (proxy/pmip.c:127): demux engine error waiting for event"
            )
            console.write(stop.at + 0.4, text)
    if first.status < 0:
        text = (
            f"YOUR APPLICATION TERMINATED WITH THE EXIT STRING: {SIGNAL_TEXTS.get(-first.status, '')} (signal "
            f"{-first.status})\nThis typically refers to a problem with your application.\nPlease see the FAQ page for "
            "debugging suggestions"
        )
        console.write(stop.at + 0.6, text)


def add_intel_end(world: World, stop: Stop, console: Console, rng: random.Random) -> None:
    """Add the end of a failed job of Intel MPI: one block for each rank that a signal ended, its own kills included."""
    line = "=" * 83
    ended = [(end.rank, end.status) for end in stop.ended[:1]] + [(rank, -9) for rank in stop.stopped]
    for number, (rank, status) in enumerate(ended):
        how = (
            f"KILLED BY SIGNAL: {-status} ({SIGNAL_TEXTS.get(-status, '')})" if status < 0 else f"EXIT STATUS: {status}"
        )
        text = (
            f"\n{line}\n=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n=   RANK {rank} PID "
            f"{world.pids[rank]} "
            f"RUNNING AT {world.host(rank)}\n=   {how}\n{line}"
        )
        console.write(stop.at + 0.2 + number / 50, text)


def add_pals_end(world: World, stop: Stop, console: Console, rng: random.Random) -> None:
    """Add the end of a failed job of PALS, which names each rank with its host."""
    ended = [(end.rank, end.status) for end in stop.ended] + [(rank, -15) for rank in stop.stopped]
    for number, (rank, status) in enumerate(ended):
        how = f"died from signal {-status}" if status < 0 else f"exited with code {status}"
        console.write(stop.at + 0.2 + number / 100, f"{world.host(rank)}: rank {rank} {how}")


def add_sagemaker_end(world: World, stop: Stop, console: Console, rng: random.Random) -> None:
    """Add the end of a failed training job of SageMaker, which runs mpirun on its first host."""
    add_openmpi_end(world, stop, console, rng)
    at = stop.at + 2
    head = f"{world.stamp(at, '%Y-%m-%d %H:%M:%S,%L')} sagemaker-training-toolkit ERROR    "
    hosts = ",".join(f"algo-{node + 1}:{world.per_node}" for node in range(len(world.hosts)))
    text = (
        f"{head}Reporting training FAILURE\n{head}ExecuteUserScriptError:\nExitCode 1\nErrorMessage \"\"\nCommand "
        f'"mpirun --host {hosts} -np {world.size} --allow-run-as-root --tag-output --oversubscribe -mca '
        'btl_tcp_if_include '
        f'eth0 -x NCCL_SOCKET_IFNAME=eth0 /opt/conda/bin/python3 -m mpi4py {world.script}"'
    )  # fmt: skip
    console.write(at, text)


LAYOUTS = (
    Layout("mpirun-tag-output", partial(labelled, form="[1,{rank}]<{stream}>:", add_end=add_openmpi_end)),
    Layout("mpirun-plain", partial(labelled, form="", add_end=add_openmpi_end)),
    Layout("mpirun-output-filename", output_directories),
    Layout(
        "openmpi5-tag", partial(labelled, form="[prterun-{first}-{job}@1,{rank}]<{stream}>: ", add_end=add_prrte_end)
    ),
    Layout("openmpi5-rank", partial(labelled, form="[{rank}]<{stream}>: ", add_end=add_prrte_end)),
    Layout("hydra-prepend-rank", partial(labelled, form="[{rank}] ", add_end=add_hydra_end)),
    Layout("hydra-plain", partial(labelled, form="", add_end=add_hydra_end)),
    Layout("intel-mpi-prepend-rank", partial(labelled, form="[{rank}] ", add_end=add_intel_end)),
    Layout("pals-label", partial(labelled, form="{host} {rank}: ", add_end=add_pals_end)),
    Layout(
        "sagemaker-mpi", partial(labelled, form="[1,mpirank:{rank},algo-{node}]<{stream}>:", add_end=add_sagemaker_end)
    ),
)
