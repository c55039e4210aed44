"""What py-spy, faulthandler, gdb and the Flight Recorder show of the ranks of a run, without private paths."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator

from runs import Run

# A gdb with several processes prints these lines; one process each would not.
INFERIORS = re.compile(rb"(?m)^(?:\[New inferior|Added inferior|\[Switching to inferior).*\n")


def collect(run: Run, py_spy: str) -> Iterator[tuple[str, bytes]]:
    """Yield the name and content of each file that a tool writes about the hung ranks."""
    yield "joblog/job.log", run.log.read_bytes()
    for path in sorted((run.work / "dumps").iterdir()):
        yield f"dump/{path.name}", path.read_bytes()
    for rank, pid in enumerate(run.pids):
        yield f"pyspy/rank{rank}.txt", output_of(py_spy, "dump", "--pid", str(pid))
        yield f"native/rank{rank}.txt", output_of(py_spy, "dump", "--native", "--pid", str(pid))
    run.wait_for(lambda: all(path.stat().st_size for path in (run.work / "later").iterdir()), 12)
    for pid in run.pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGUSR1)
        time.sleep(0.2)
    for name, form in (("later", "faulthandler"), ("signal", "faulthandler-signal")):
        for path in sorted((run.work / name).iterdir()):
            yield f"{form}/{path.name}", path.read_bytes()
    yield from gdb_stacks(run.pids)


def gdb_stacks(pids: list[int]) -> Iterator[tuple[str, bytes]]:
    """Yield native and Python stacks of each process. One gdb attaches to all: it reads the symbols of torch once."""
    commands = []
    for number, pid in enumerate(pids, start=1):
        commands += ["add-inferior", f"inferior {number}"] if number > 1 else []
        commands += ["echo === rank\\n", f"attach {pid}", f"thread apply {number}.* bt"]
        commands += ["echo === python\\n", f"thread apply {number}.* py-bt"]
    options = [text for command in commands for text in ("-ex", command)]
    start = ("gdb", "-nx", "-batch", "-iex", "set auto-load safe-path /", "-ex", "set pagination off")
    # "Thread 2.1" is "Thread 1" to a gdb with one process.
    output = re.sub(rb"(?m)^Thread \d+\.(?=\d+ \()", b"Thread ", INFERIORS.sub(b"", output_of(*start, *options)))
    for rank, text in enumerate(output.split(b"=== rank\n")[1:]):
        native, _, python = text.partition(b"=== python\n")
        yield f"gdb/rank{rank}.txt", native
        yield f"gdb-py/rank{rank}.txt", python


def output_of(*command: str) -> bytes:
    """Return what a tool writes to standard output."""
    return subprocess.run(command, capture_output=True, timeout=120).stdout
