"""How a sample is launched and which files get its output: one function per layout, listed in LAYOUTS."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from plan import Sample

TIMEOUT_S = 100  # of a recording


@dataclass(frozen=True)
class Launch:
    """The launch of one sample: it runs in `work`, its output goes below `work`/job."""

    sample: Sample
    work: Path
    python: Path
    port: int

    @property
    def job(self) -> Path:
        """The directory that becomes the sample's job/."""
        return self.work / "job"

    def start(self, command: list[str], output: Path, **env: str) -> subprocess.Popen[bytes]:
        """Start a process in its own group, with a small environment without private values."""
        output.parent.mkdir(parents=True, exist_ok=True)
        base_env = {
            "PATH": f"{self.python.parent}:/usr/bin:/bin",
            "HOME": "/home/user",
            "USER": "user",
            "LANG": "C.UTF-8",
        }
        sample_env = {
            "PYTHONDONTWRITEBYTECODE": "1",
            "LOG_STYLE": self.sample.style,
            "ODD_RANK": str(self.sample.odd),
            "DIST_TIMEOUT_S": str(self.sample.timeout_s),
        }
        with output.open("wb") as file:
            return subprocess.Popen(
                ["/bin/sh", "-c", 'ulimit -c 0; exec "$@"', "sh", *command],
                cwd=self.work,
                env=base_env | sample_env | self.sample.env | env,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def torchrun(self, *options: str, ranks: int | None = None) -> list[str]:
        """Return the command line of torchrun for this sample."""
        command = [str(self.python.parent / "torchrun"), "--nproc-per-node", str(ranks or self.sample.ranks), *options]
        return [*command, *self.sample.options, "train.py", *self.sample.args]

    def one_node(self, output: Path, *options: str) -> None:
        """Run one torchrun agent to its end."""
        address = ("--master-addr", self.sample.master, "--master-port", str(self.port))
        process = self.start(self.torchrun(*address, *options), output)
        if self.sample.stop_at:
            wait_for_text(output, self.sample.stop_at)
            os.kill(process.pid, signal.SIGTERM)
        wait_all([process])


def wait_all(processes: list[subprocess.Popen[bytes]]) -> None:
    """Wait for processes that this recording started; after the timeout kill their groups and raise."""
    try:
        deadline = time.monotonic() + TIMEOUT_S
        for process in processes:
            process.wait(max(0.1, deadline - time.monotonic()))
    finally:
        for process in processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def wait_for_text(path: Path, text: str) -> None:
    """Wait until a growing file contains `text`."""
    deadline = time.monotonic() + TIMEOUT_S
    while text.encode() not in path.read_bytes():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{text!r} did not appear in {path}")
        time.sleep(0.05)


def plain(launch: Launch) -> None:
    """Let all ranks and the agent share one file."""
    launch.one_node(launch.job / "job.log")


def tee(launch: Launch) -> None:
    """Let the agent put `[default<local rank>]:` before every line of one console file."""
    launch.one_node(launch.job / "console.log", "--tee", "3", "--log-dir", str(launch.work / "kept-elsewhere"))


def tee_role(launch: Launch) -> None:
    """As tee, with a role of the user in the prefix: `[host:<local rank>]:`."""
    launch.one_node(
        launch.job / "console.log", "--tee", "3", "--role", "host:", "--log-dir", str(launch.work / "kept-elsewhere")
    )


def redirects(launch: Launch) -> None:
    """Give each rank its own stdout.log and stderr.log, and the agent launcher.log."""
    launch.one_node(launch.job / "launcher.log", "--redirects", "3", "--log-dir", str(launch.job / "logs"))


def perrank(launch: Launch) -> None:
    """Start the ranks without an agent, with RANK and the other variables in the environment, one file per rank."""
    sample = launch.sample
    shared = {
        "WORLD_SIZE": str(sample.world_size or sample.ranks),
        "MASTER_ADDR": sample.master,
        "MASTER_PORT": str(launch.port),
        "OMP_NUM_THREADS": "1",
    }
    processes = []
    for rank in range(sample.ranks):
        command = [str(launch.python), "-u", "train.py", *sample.args]
        processes.append(
            launch.start(command, launch.job / f"out/rank{rank}.log", RANK=str(rank), LOCAL_RANK=str(rank), **shared)
        )
    wait_all(processes)


def bare(launch: Launch) -> None:
    """Run `python train.py` alone, without a launcher."""
    wait_all([launch.start([str(launch.python), "train.py", *launch.sample.args], launch.job / "train.log")])


def twonode(launch: Launch, *options: str) -> None:
    """Run two agents on this machine as if they were two nodes, one log file per node."""
    rendezvous = (
        "--nnodes",
        "2",
        "--rdzv-backend",
        "c10d",
        "--rdzv-endpoint",
        f"127.0.0.1:{launch.port}",
        "--rdzv-id",
        "toy-42",
    )
    command = launch.torchrun(*rendezvous, *options, ranks=launch.sample.ranks // 2)
    first = launch.start(command, launch.job / "node1.log")
    time.sleep(2)  # the first agent serves the rendezvous and gets the lower ranks
    wait_all([first, launch.start(command, launch.job / "node2.log")])


def twonode_tee(launch: Launch) -> None:
    """As twonode, with `[default<local rank>]:` prefixes: the same prefix means another rank on the other node."""
    twonode(launch, "--tee", "3", "--log-dir", str(launch.work / "kept-elsewhere"))


def hung(launch: Launch) -> None:
    """As plain, but dump the stacks of the hung ranks with py-spy, then kill the job."""
    output = launch.job / "job.log"
    process = launch.start(
        launch.torchrun("--master-addr", launch.sample.master, "--master-port", str(launch.port)), output
    )
    try:
        wait_for_text(output, launch.sample.stop_at)
        time.sleep(3)
        for pid, rank in find_ranks(process.pid).items():
            for form, options in (("txt", ()), ("native.txt", ("--native",)), ("json", ("--json",))):
                target = launch.job / f"stacks/rank{rank}.{form}"
                target.parent.mkdir(exist_ok=True)
                with target.open("wb") as file:
                    subprocess.run(
                        ["py-spy", "dump", *options, "--pid", str(pid)], stdout=file, check=True, timeout=TIMEOUT_S
                    )
    finally:
        ranks = find_ranks(process.pid)
        os.killpg(process.pid, signal.SIGKILL)
        for pid in ranks:
            os.kill(pid, signal.SIGKILL)  # each rank has its own session
        process.wait()


def find_ranks(agent: int) -> dict[int, str]:
    """Return the pid and RANK of every process that the agent started."""
    ranks = {}
    for pid in Path(f"/proc/{agent}/task/{agent}/children").read_text().split():
        variables = dict(pair.partition(b"=")[::2] for pair in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"))
        if b"RANK" in variables:
            ranks[int(pid)] = variables[b"RANK"].decode()
    return ranks


LAYOUTS: dict[str, Callable[[Launch], None]] = {
    "plain": plain,
    "hung": hung,
    "tee": tee,
    "tee-role": tee_role,
    "redirects": redirects,
    "perrank": perrank,
    "bare": bare,
    "twonode": twonode,
    "twonode-tee": twonode_tee,
}


def free_port() -> int:
    """Return a free port."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])
