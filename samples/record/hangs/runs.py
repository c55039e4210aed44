"""Start the ranks of a hang, by fork or under torchrun, and wait for them."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from plan import Hang

HERE = Path(__file__).resolve().parent


class Launcher:
    """The process that forks the ranks."""

    def __init__(self) -> None:
        command = [sys.executable, str(HERE / "launch.py")]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def start(self, directory: Path, log: Path, environments: list[dict[str, str]]) -> list[int]:
        """Start the ranks and return their pids."""
        job = {"script": str(directory / "train.py"), "log": str(log), "directory": str(directory)}
        self.process.stdin.write(json.dumps(job | {"environments": environments}) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


class Run:
    """One run of a job in a scratch directory."""

    def __init__(self, hang: Hang, work: Path, launcher: Launcher, **environment: str) -> None:
        self.hang, self.work, self.log = hang, work, work / "job.log"
        for name in ("dumps", "later", "signal"):
            (work / name).mkdir(parents=True)
        shutil.copy(find_program(hang.name), work / "train.py")
        shutil.copy(HERE / "hanglib.py", work)
        shared = {"KIND": hang.name, "OUT": str(work), "OMP_NUM_THREADS": "1", **environment}
        if hang.launcher == "torchrun":
            self.agent, self.pids = self.torchrun(shared)
        else:
            shared |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": str(hang.size)}
            ranks = [shared | {"RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(hang.size)]
            self.agent, self.pids = None, launcher.start(work, self.log, ranks)

    def torchrun(self, environment: dict[str, str]) -> tuple[subprocess.Popen, list[int]]:
        """Start the job under torchrun and return its process and the pids of the ranks."""
        module = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(self.hang.size)]
        command = [*module, "--master-addr", "127.0.0.1", "--master-port", str(free_port()), "train.py"]
        with self.log.open("ab") as log:
            agent = subprocess.Popen(
                command, cwd=self.work, env=os.environ | environment, stdout=log, stderr=log, start_new_session=True
            )
        self.wait_for(lambda: len(children_with_rank(agent.pid)) == self.hang.size)
        return agent, children_with_rank(agent.pid)

    def wait_for(self, condition: Callable[[], bool], limit: float = 60) -> bool:
        """Return whether the condition came true."""
        end = time.monotonic() + limit
        while not condition():
            if time.monotonic() > end:
                return False
            time.sleep(0.1)
        return True

    def ready(self) -> bool:
        """Return whether every rank has joined."""
        return all((self.work / f"ready.{rank}").exists() for rank in range(self.hang.size))

    def alive(self) -> list[int]:
        """Return the pids of the ranks that still exist."""
        return [pid for pid in [*self.pids, *([self.agent.pid] if self.agent else [])] if is_alive(pid)]

    def wait_until_still(self, seconds: float) -> None:
        """Wait until no rank has ended for some seconds, or none is left."""
        before, since = self.alive(), time.monotonic()
        while before and time.monotonic() < since + seconds:
            time.sleep(0.2)
            if (now := self.alive()) != before:
                before, since = now, time.monotonic()

    def end(self) -> None:
        """Kill what is left, with the children of the ranks."""
        for pid in [*self.pids, *([self.agent.pid] if self.agent else [])]:
            for kill in (os.killpg, os.kill):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    kill(pid, signal.SIGKILL)
        if self.agent:
            self.agent.wait()


def find_program(name: str) -> Path:
    """Return the file of programs/ that defines this function."""
    return next(path for path in sorted((HERE / "programs").glob("*.py")) if f"\ndef {name}(" in path.read_text())


def children_with_rank(agent: int) -> list[int]:
    """Return the pids of the ranks that the agent started, by RANK."""
    ranks = {}
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for pid in Path(f"/proc/{agent}/task/{agent}/children").read_text().split():
            for pair in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                if pair.startswith(b"RANK="):
                    ranks[int(pair[5:])] = int(pid)
    return [ranks[rank] for rank in sorted(ranks)]


def is_alive(pid: int) -> bool:
    """Return whether the process exists and has not ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def free_port() -> int:
    """Return a free port."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])
