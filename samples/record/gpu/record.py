"""Record jobs that fail on one NVIDIA GPU with NCCL: DIR/NAME/{log,dump,pyspy,kernel} for the jobs of jobs.py.

    python samples/record/gpu/record.py -o build/gpu [NAME …]

Needs Linux, one GPU, root (for the kernel's log), a python with a CUDA build of torch, and py-spy. CUBIN names a file
with code for another kind of GPU and a kernel `scatter`, which the job code_for_another_gpu loads:

    echo 'extern "C" __global__ void scatter(char* values, long at) { values[at] = 1; }' > k.cu
    nvcc -cubin -arch=sm_80 -o k.cubin k.cu
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
HANGS = HERE.parent / "hangs"
sys.path[1:1] = [str(HERE.parent), str(HANGS)]

import layouts  # noqa: E402
from jobs import JOBS, Job, layout_of, nccl_debug_of  # noqa: E402
from plan import unknown  # noqa: E402
from private_paths import store  # noqa: E402

TIMEOUT_S = 15
PASSED_ON = ("LD_LIBRARY_PATH", "PYTHONPATH", "CUDA_HOME", "CUBIN")
XID_PID = re.compile(rb"NVRM: Xid .*\bpid='?(\d+)")


class Recording:
    """One run of a job in a scratch directory; `pids` are those of its processes."""

    def __init__(self, job: Job, work: Path) -> None:
        self.job, self.work, self.pids, self.ended = job, work, set[int](), False
        for name in ("dumps", "later", "signal"):
            (work / name).mkdir(parents=True)
        program = job.program or job.name
        files = [*sorted(HERE.glob("*programs.py")), *sorted((HANGS / "programs").glob("*.py"))]
        shutil.copy(next(path for path in files if f"\ndef {program}(" in path.read_text()), work / "train.py")
        shutil.copy(HANGS / "hanglib.py", work)
        self.environment = {
            **{name: os.environ[name] for name in PASSED_ON if name in os.environ},
            "KIND": program,
            "OUT": str(work),
            "BACKEND": "nccl",
            "OMP_NUM_THREADS": "1",
            "XLA_PYTHON_CLIENT_MEM_FRACTION": ".05",
            "TORCH_NCCL_TRACE_BUFFER_SIZE": "2000",
            "TORCH_NCCL_DUMP_ON_TIMEOUT": "1",
            "TORCH_FR_DUMP_TEMP_FILE": f"{work}/dumps/nccl_trace_rank_",
            **({"NCCL_DEBUG": level} if (level := nccl_debug_of(job)) else {}),
            **job.env,
        }

    def run(self) -> None:
        """Start the job in its layout and wait for its end."""
        sample = layouts.Sample(
            self.job.name,
            "",
            layout_of(self.job),
            self.job.size - self.job.absent,
            unknown(None, ""),
            env=self.environment,
            timeout_s=TIMEOUT_S,
            world_size=self.job.size,
        )
        launch = layouts.Launch(sample, self.work, Path(sys.executable).absolute(), layouts.free_port())
        watcher = threading.Thread(target=self.watch)
        watcher.start()
        with contextlib.suppress(TimeoutError, subprocess.TimeoutExpired):
            layouts.LAYOUTS[sample.layout](launch)
        self.ended = True
        watcher.join()

    def watch(self) -> None:
        """Note the pids of the job; once all ranks of a hang have joined, let py-spy show them."""
        ready_at = None
        while not self.ended:
            ranks = processes_of(self.work)
            self.pids |= set(ranks)
            if ready_at is None and len(list(self.work.glob("ready.*"))) == self.job.size:
                ready_at = time.monotonic()
            if self.job.hangs and ready_at and time.monotonic() > ready_at + 6:
                self.write_stacks(ranks)
                ready_at = float("inf")
            time.sleep(0.3)
        for pid in processes_of(self.work):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def write_stacks(self, ranks: dict[int, str]) -> None:
        """Write what py-spy shows of every rank."""
        (self.work / "pyspy").mkdir()
        for pid, rank in ranks.items():
            if rank and (self.work / f"ready.{rank}").exists() and is_main(pid):
                result = subprocess.run(["py-spy", "dump", "--pid", str(pid)], capture_output=True, timeout=60)
                (self.work / f"pyspy/rank{rank}.txt").write_bytes(result.stdout)


def processes_of(work: Path) -> dict[int, str]:
    """Return pid and RANK ("" for the agent) of every process that has OUT=work."""
    processes = {}
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            variables = dict(pair.partition(b"=")[::2] for pair in path.read_bytes().split(b"\0"))
            if variables.get(b"OUT") == str(work).encode():
                processes[int(path.parent.name)] = variables.get(b"RANK", b"").decode()
    return processes


def is_main(pid: int) -> bool:
    """Return whether the process runs the script itself, not a compile worker that it started."""
    with contextlib.suppress(OSError):
        return b"train.py" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


def record(job: Job, target: Path) -> str:
    """Record one job into `target` and say how long it took."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        recording = Recording(job, Path(scratch) / "work")
        recording.run()
        work = recording.work
        for source, form in (("job", "log"), ("dumps", "dump"), ("pyspy", "pyspy")):
            for path in sorted((work / source).rglob("*")):
                if path.is_file():
                    store(target / form / path.relative_to(work / source), path.read_bytes(), work)
        lines = subprocess.run(["dmesg", "--time-format", "iso"], capture_output=True).stdout.splitlines(keepends=True)
        own = [line for line in lines if (match := XID_PID.search(line)) and int(match[1]) in recording.pids]
        if own:
            store(target / "kernel/dmesg.log", b"".join(own), work)
    return f"{job.name:28} {time.monotonic() - began:5.1f} s"


def main() -> None:
    """Record the jobs that the arguments name, some at the same time."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--at-once", type=int, default=6, help="jobs that run at the same time (default: 6)")
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    chosen = [job for job in JOBS if not options.names or job.name in options.names]
    with ThreadPoolExecutor(options.at_once) as pool:
        for text in pool.map(lambda job: record(job, options.output.absolute() / job.name), chosen):
            print(text, flush=True)


if __name__ == "__main__":
    main()
