"""The place of one drill: a store, jobs, a temporary directory of its own, and processes that can be recognized."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import triage
from triage.model.diagnosis import Diagnosis, Stats
from triage.store import Store, maintenance
from triage.testing.jobs import JobBuilder

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 120.0  # no process of a drill may take longer
GONE_SECONDS = 15.0  # within this time after a kill no process of the drill is left
# The command line, with the time of day shifted by the first argument.
SHIFTED = (
    "import sys, time; offset, real = float(sys.argv.pop(1)), time.time; time.time = lambda: real() + offset\n"
    "from triage.cli import main; sys.argv[0] = 'triage'; main()"
)


class DrillSite:
    """Counts the faults of a drill and collects what was lost."""

    def __init__(self, place: Path, seed: int) -> None:
        self.place = place
        self.chance = random.Random(seed)
        self.faults = 0
        self.losses: list[str] = []
        self.patience = GONE_SECONDS
        self.store = place / "triage.db"
        self.scratch = place / "tmp"
        self.scratch.mkdir(parents=True)
        self._jobs: dict[str, Diagnosis] = {}  # by path
        self.environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "TRIAGE_CONFIG": "",
            "TRIAGE_STORE": str(self.store),
            "TMPDIR": str(self.scratch),
            "DRILL_MARK": str(place),
        }

    # -- faults

    def add_job(self, name: str, steps: int = 20) -> Path:
        """Write the logs of a job that failed in its own way; remember its diagnosis."""
        path = self.place / "jobs" / name
        job = JobBuilder(path, layout="perrank", world_size=2).steps(steps)
        job.rank(1).traceback(f"ValueError: shard of {name} is bad", [(f"/work/{name}.py", 30, "load")])
        job.write()
        self.remember_job(path)
        return path

    def remember_job(self, path: Path) -> None:
        """Remember the diagnosis of a job, which its incident must have."""
        self._jobs[str(path)] = triage.ingest(path)

    def forget_job(self, path: Path) -> None:
        """Forget a job that no incident may have."""
        del self._jobs[str(path)]

    def start(
        self, *arguments: str | Path, shift: float | None = None, limit: tuple[int, int] | None = None, **more: Any
    ) -> subprocess.Popen[str]:
        """Start `triage` in its own session. `shift` moves its clock (seconds), `limit` is (RLIMIT_…, value)."""
        program = ["-m", "triage"] if shift is None else ["-c", SHIFTED, str(shift)]
        options: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more}
        if limit is not None:
            options["preexec_fn"] = partial(resource.setrlimit, limit[0], (limit[1], limit[1]))
        return subprocess.Popen(
            [sys.executable, *program, *map(str, arguments)],
            **{"env": self.environment, "cwd": self.place, "text": True, "start_new_session": True, **options},
        )

    def run(self, *arguments: str | Path, **more: Any) -> tuple[int, str, str]:
        """Run `triage`; return (exit status, output, errors). A process that hangs is a loss."""
        return self.finish(self.start(*arguments, **more))

    def finish(self, process: subprocess.Popen[str]) -> tuple[int, str, str]:
        """Wait for a process; return (exit status, output, errors). A process that hangs is a loss."""
        try:
            out, errors = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            self.losses.append(f"hangs: {process.args}")
            process.kill()
            out, errors = process.communicate()
        return process.returncode, out, errors

    def interrupt(self, process: subprocess.Popen[str], after: float, number: int = signal.SIGKILL) -> None:
        """Send a signal after some seconds: one fault."""
        time.sleep(after)
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(number)
        self.faults += 1

    def measure(self, action: Callable[[], object]) -> float:
        """Return how many seconds an undisturbed run takes, so that faults spread over all of its stages."""
        start = time.monotonic()
        action()
        return time.monotonic() - start

    # -- what is left

    def check(self, is_right: bool, loss: str) -> None:
        """Record a loss unless it is right."""
        if not is_right:
            self.losses.append(loss)

    def check_processes(self) -> None:
        """No process of the drill may be left."""
        deadline = time.monotonic() + self.patience
        while (pids := self.list_processes()) and time.monotonic() < deadline:
            time.sleep(0.02)
        self.check(not pids, f"processes are left: {pids}")
        for pid in pids:
            os.kill(pid, signal.SIGKILL)

    def list_processes(self) -> list[int]:
        """Return the pids of living processes that the drill started, also of their children."""
        mark = f"DRILL_MARK={self.place}".encode()
        pids = []
        for path in Path("/proc").glob("[0-9]*/environ"):
            with contextlib.suppress(OSError):
                if mark in path.read_bytes().split(b"\0"):
                    pids.append(int(path.parent.name))
        return pids

    def check_files(self, *places: Path) -> None:
        """No temporary file may be left in the temporary directory or in these directories."""
        for place in (self.scratch, *places):
            left = sorted(str(path.relative_to(self.place)) for path in place.rglob("*") if path.is_file())
            self.check(not left, f"files are left: {left}")

    def check_store(self, reported: Iterable[Path] = (), *, is_complete: bool = False) -> None:
        """The store is sound and each incident whole; it has what was reported, or (`is_complete`) every job."""
        if not self.store.exists():
            self.check(not list(reported) and not is_complete, "the store is gone")
            return
        with Store.open(self.store) as store:
            self.losses += [f"store: {problem}" for problem in maintenance.check_store(store.connections)]
            stored = [store.incidents.get(item.id) for item in store.search.list_incidents(limit=100_000)]
        paths = [item.incident.path for item in stored]
        self.check(len(set(paths)) == len(paths), f"a job is stored twice: {sorted(paths)}")
        wanted = set(self._jobs) if is_complete else set(map(str, reported))
        self.check(wanted <= set(paths), f"lost: {sorted(wanted - set(paths))}")
        for item in stored:
            expected = self._jobs.get(item.incident.path)
            self.check(expected is not None, f"nobody ingested {item.incident.path}")
            self.check(_without_stats(item.diagnosis) == _without_stats(expected), f"half stored: {item.incident.id}")


Drill = Callable[[DrillSite], None]


def _without_stats(diagnosis: Diagnosis | None) -> Diagnosis | None:
    """Return the diagnosis without what differs between two runs."""
    return diagnosis and dataclasses.replace(diagnosis, stats=Stats(0, 0))


def is_stored(status: int, report: str) -> bool:
    """Return whether an ingest reported, in JSON, that it has diagnosed and stored."""
    if status != 0:
        return False
    return not any(item["code"] == "not-stored" for item in json.loads(report)["warnings"])
