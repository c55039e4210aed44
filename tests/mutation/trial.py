"""Run the tests of a room on mutants, each in a copy of the checkout: the checkout itself is never changed."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Literal

from tests.mutation.changes import Mutant
from tests.mutation.line_tests import LineTests, read_line_tests

Outcome = Literal["killed", "timeout", "survived"]
PLUGIN = Path(__file__).with_name("order_tests.py")
SERVER = Path(__file__).with_name("fork_server.py")
LEFT_OUT = (".git", ".venv*", "build", "dist", "data", "__pycache__", ".*_cache", ".hypothesis", "*.egg-info")
MEMORY_BYTES = 8 << 30
# Plugins that are installed and not needed cost each run seconds.
PLUGINS = ("_hypothesis_pytestplugin", PLUGIN.stem, "no:cacheprovider")
NOT_APPLIED = 70  # fork_server.py could not change the function in memory


@dataclass(frozen=True)
class Trial:
    """What became of a mutant. `test` is the first one that failed, if its name came out."""

    mutant: Mutant
    outcome: Outcome
    seconds: float
    test: str = ""


@dataclass(frozen=True)
class Baseline:
    """The tests of a room without a change: which lines they run, which ones fail, and their time in seconds."""

    lines: LineTests
    failing: tuple[str, ...]
    seconds: float


@dataclass
class Copy:
    """A copy of a checkout, in which the tests of one room run."""

    root: Path
    room: str
    cpu_seconds: int = 600
    wall_seconds: float = 900.0
    skipped: Sequence[str] = ()
    usual_seconds: Mapping[str, float] = field(default_factory=dict)
    _server: Server | None = None

    @classmethod
    def make(cls, source: Path, root: Path, room: str) -> Copy:
        """Copy a checkout, with the plugin and a compiled catalog."""
        # A copy of a copy takes its compiled modules: their stamps stay true.
        left_out = [name for name in LEFT_OUT if name != "__pycache__" or not (source / PLUGIN.name).exists()]
        shutil.copytree(source, root, symlinks=True, ignore=shutil.ignore_patterns(*left_out))
        for plugin in (PLUGIN, SERVER):
            shutil.copy2(plugin, root / plugin.name)
        copy = cls(root, room)
        if (root / "triage" / "catalog" / "load.py").exists():
            command = [sys.executable, "-c", "from triage.catalog.load import load; load((), strict=False)"]
            environment = {**copy.environment, "TRIAGE_CACHE": str(copy.cache)}
            subprocess.run(command, cwd=root, env=environment, check=True)
        return copy

    @property
    def cache(self) -> Path:
        """Where the compiled catalog lies."""
        return self.root / ".catalog_of_copy"

    @property
    def environment(self) -> dict[str, str]:
        """The environment in which `triage` is the one of the copy, also for processes that tests start."""
        own = {"PYTHONPATH": str(self.root), "MUTATION_SETTINGS": str(self.root / "mutation.json")}
        return {**os.environ, **own, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}

    def read_results(self) -> dict[str, Any]:
        """Read what the last run of tests wrote: "failed" and "seconds"."""
        results: dict[str, Any] = json.loads((self.root / "results.json").read_text(encoding="utf-8"))
        return results

    def run_tests(self, chosen: Sequence[str], *options: str, **environment: str) -> tuple[int | None, str]:
        """Run these tests, or all of the room. Returns the exit status, None if the time was up, and the output."""
        self._prepare({"chosen": list(chosen)})
        files = sorted({test.partition("::")[0] for test in chosen}) or [f"tests/{self.room}"]
        return run_group(
            [*self.command, *options, *files], self.root, {**self.environment, **environment}, self.wall_seconds
        )

    @property
    def command(self) -> list[str]:
        """The command that runs tests, without their paths."""
        command = [sys.executable, "-m", "pytest", *(f"-p{name}" for name in PLUGINS), "--rootdir=.", "-q", "--tb=line"]
        return [*command, "--hypothesis-seed=0"]

    def _prepare(self, settings: Mapping[str, Any]) -> None:
        """Write the settings of a run, and remove what the last one left."""
        common: dict[str, Any] = {
            "skipped": list(self.skipped),
            "cpu_seconds": self.cpu_seconds,
            "memory_bytes": MEMORY_BYTES,
            "usual_seconds": dict(self.usual_seconds),
            "cache": str(self.cache),
            "results": str(self.root / "results.json"),
        }
        (self.root / "results.json").write_text('{"failed": [], "seconds": {}}', encoding="utf-8")
        (self.root / "mutation.json").write_text(json.dumps({**common, **settings}), encoding="utf-8")
        shutil.rmtree(self.root / ".hypothesis", ignore_errors=True)  # no example of another mutant

    def measure_baseline(self) -> Baseline:
        """Run the tests without a change. Raises RuntimeError if none runs."""
        started = time.monotonic()
        data_file = self.root / ".coverage_of_copy"
        options = ("-ppytest_cov", f"--cov=triage/{self.room}", "--cov-context=test", "--cov-report=")
        status, output = self.run_tests((), *options, COVERAGE_FILE=str(data_file))
        if status not in (0, 1):
            raise RuntimeError(f"tests/{self.room} cannot be run without a change (exit status {status}):\n{output}")
        results = self.read_results()
        lines = read_line_tests(data_file, self.root, results["seconds"])
        return Baseline(lines, tuple(results["failed"]), time.monotonic() - started)

    def try_mutant(self, mutant: Mutant, lines: LineTests) -> Trial:
        """Run the tests that can notice a mutant, or all if none runs it, until one fails."""
        started = time.monotonic()
        source = (self.root / mutant.path).read_text(encoding="utf-8")
        function = lines.find_function(mutant.path, mutant.line, source)
        chosen = lines.order_tests(mutant.path, mutant.line, function)
        if function and not chosen:
            return Trial(mutant, "survived", 0.0)
        server = self._start_server()
        with self._changed(mutant):
            status = self._run_in_fork(server, mutant, chosen) if function else NOT_APPLIED
            if status == NOT_APPLIED:
                status, _ = self.run_tests(chosen, "-x", PYTHONDONTWRITEBYTECODE="1")
        seconds = round(time.monotonic() - started, 1)
        return Trial(mutant, judge_status(status), seconds, next(iter(self.read_results()["failed"]), ""))

    def _start_server(self) -> Server:
        """Return the process that forks, started with the unchanged code."""
        if self._server is None:
            self._prepare({"chosen": [], "cpu_seconds": 1 << 30})  # its forks have limits
            self._server = Server.start(self)
        return self._server

    def _run_in_fork(self, server: Server, mutant: Mutant, chosen: Sequence[str]) -> int:
        """Run these tests in a fork of a process that has collected them all. Returns the exit status."""
        module = mutant.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        place = {"path": str(self.root / mutant.path), "module": module}
        self._prepare({"chosen": list(chosen), "wall_seconds": self.wall_seconds, **place})
        return server.request()

    def close(self) -> None:
        """End the process that forks."""
        if self._server is not None:
            self._server.close()
            self._server = None

    @contextlib.contextmanager
    def _changed(self, mutant: Mutant) -> Iterator[None]:
        """Put the mutant in its place. Its compiled form goes: one of equal size and second would be taken for it."""
        path = self.root / mutant.path
        original, times = path.read_bytes(), path.stat()
        for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*"):
            compiled.unlink()
        try:
            path.write_text(mutant.source, encoding="utf-8")
            yield
        finally:
            path.write_bytes(original)
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


@dataclass(frozen=True)
class Server:
    """A process that has collected the tests of a room and runs them in forks: fork_server.py."""

    process: subprocess.Popen[bytes]
    requests: int
    replies: BinaryIO
    output: Path

    @classmethod
    def start(cls, copy: Copy) -> Server:
        """Start it in an unchanged copy, and wait until it has collected the tests."""
        (requests, to_requests), (replies, to_replies) = os.pipe(), os.pipe()
        pipes = {"MUTATION_REQUESTS": str(requests), "MUTATION_REPLIES": str(to_replies)}
        environment = {**copy.environment, **pipes, "PYTHONDONTWRITEBYTECODE": "1"}
        output = copy.root / "server.out"
        with output.open("wb") as out:
            process = subprocess.Popen(
                [*copy.command, f"-p{SERVER.stem}", f"--basetemp={copy.root / 'forks'}", f"tests/{copy.room}"],
                cwd=copy.root,
                env=environment,
                pass_fds=(requests, to_replies),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
            )
        os.close(requests)
        os.close(to_replies)
        server = cls(process, to_requests, os.fdopen(replies, "rb"), output)
        server.read_reply()
        return server

    def request(self) -> int:
        """Have the tests run on the change that the settings name. Returns the exit status of the fork."""
        os.write(self.requests, b"+")
        return self.read_reply()

    def read_reply(self) -> int:
        """Read a number that the process writes. Raises RuntimeError if it has ended."""
        reply = self.replies.readline()
        if not reply:
            raise RuntimeError(f"the process that forks has ended:\n{self.output.read_text('utf-8', 'replace')}")
        return int(reply)

    def close(self) -> None:
        """Let it end, with its temporary files."""
        os.close(self.requests)
        self.process.wait()
        self.replies.close()


def run_group(
    command: Sequence[str], directory: Path, environment: dict[str, str], seconds: float
) -> tuple[int | None, str]:
    """Run a command in a process group of its own, which is killed at its end. Returns its status and its output.

    The group is killed before the command is reaped: later its number could be that of another process.
    """
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            command,
            cwd=directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            has_ended = wait_for_end(process.pid, seconds)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            status = process.wait()
        output.seek(0)
        return status if has_ended else None, output.read().decode("utf-8", "replace")


def wait_for_end(pid: int, seconds: float) -> bool:
    """Wait until a child has ended, without reaping it. Return False if the time was up before."""
    until = time.monotonic() + seconds
    while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


def judge_status(status: int | None) -> Outcome:
    """Return what an exit status of pytest says of a mutant. 5 is "no test left": nothing noticed the change."""
    if status is None or status in (-signal.SIGXCPU, -signal.SIGKILL):
        return "timeout"
    return "survived" if status in (0, 5) else "killed"


def try_mutants(first: Copy, mutants: Sequence[Mutant], baseline: Baseline, processes: int) -> Iterator[Trial]:
    """Try all mutants, in as many copies as processes, in any order. Raises RuntimeError if a copy was damaged."""
    copies: queue.SimpleQueue[Copy] = queue.SimpleQueue()
    copies.put(first)
    for number in range(1, min(processes, len(mutants))):
        copies.put(Copy.make(first.root, first.root.with_name(f"copy{number}"), first.room))

    def try_one(mutant: Mutant) -> Trial:
        copy = copies.get()
        copy.skipped, copy.cpu_seconds = baseline.failing, int(20 + 3 * baseline.seconds)
        copy.wall_seconds, copy.usual_seconds = 60 + 6 * baseline.seconds, baseline.lines.seconds
        try:
            return copy.try_mutant(mutant, baseline.lines)
        finally:
            copies.put(copy)

    with ThreadPoolExecutor(processes) as pool:
        yield from pool.map(try_one, mutants)
    while not copies.empty():
        copy = copies.get()
        copy.close()
        status, output = copy.run_tests(())
        if status != 0:
            raise RuntimeError(f"the tests fail in {copy.root} without a change; the outcomes are void:\n{output}")
