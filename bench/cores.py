"""Measure the reading of core files and backtraces: `make bench` runs it with the others.

A sparse core of 2 GB with 200 threads is read with gdb and without, each in its own process to measure its memory, and
100 MB of gdb's text are parsed. Needs gcc and gdb. The last line is machine-readable.
"""

from __future__ import annotations

import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROGRAM = r"""
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
static pthread_barrier_t ready;
int *nowhere;
__attribute__((noinline)) int crash_here(int *p) { return *p; }
__attribute__((noinline)) int deeper(int n) {
    volatile char b[64];
    b[0] = n;
    return n ? deeper(n - 1) + b[0] : pause();
}
static void *work(void *p) { pthread_barrier_wait(&ready); deeper(30); return p; }
int main() {
    pthread_t t;
    char *big = mmap(0, 400L << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (long i = 0; i < 400L << 20; i += 1L << 16) big[i] = 1;
    pthread_barrier_init(&ready, 0, 200);
    for (int i = 0; i < 199; i++) pthread_create(&t, 0, work, 0);
    pthread_barrier_wait(&ready);
    usleep(200000);
    return crash_here(nowhere);
}
"""
FUNCTIONS = (
    "c10d::ProcessGroupNCCL::WorkNCCL::finishedGPUExecutionInternal() const () "
    "from /opt/venv/lib/python3.11/site-packages/torch/lib/libtorch_cuda.so",
    "std::condition_variable::wait (this=0x7f0012, __lock=...) "
    "at ../../../../../src/libstdc++-v3/src/c++11/condition_variable.cc:41",
    "_PyEval_EvalFrameDefault (tstate=0xba0c18 <_PyRuntime+166328>, frame=0x7f0dd7fea020, throwflag=0) "
    "at Python/ceval.c:4769",
    "__futex_abstimed_wait_common64 (private=0, cancel=true, abstime=0x0, op=393, expected=0) "
    "at ./nptl/futex-internal.c:57",
    "at::(anonymous namespace)::worker<c10::Half, std::vector<int> >(at::Tensor const&, long) () "
    "from /usr/lib/libtorch_cpu.so",
    'PyObject_Call (callable=<built-in method f(a)>, args=(1, "x) at y:3"), kwargs=0x0) at Objects/call.c:355',
    "?? () from /lib/x86_64-linux-gnu/libcuda.so.1",
)


def make_core(directory: Path) -> Path:
    """Make a sparse core of 2 GB with 200 threads."""
    (directory / "crash.c").write_text(PROGRAM)
    subprocess.run(["gcc", "-g", "-O1", "-pthread", "-w", "crash.c", "-o", "crash"], cwd=directory, check=True)

    def limits() -> None:
        resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

    subprocess.run(["./crash"], cwd=directory, preexec_fn=limits, check=False)
    cores = [path for path in directory.iterdir() if path.name.startswith("core")]
    if not cores:
        subprocess.run(
            ["gdb", "--nx", "-batch", "-ex", "run", "-ex", "generate-core-file core", "./crash"],
            cwd=directory,
            check=True,
        )
        cores = [directory / "core"]
    return cores[0]


def measure(path: Path, use_gdb: bool) -> tuple[float, float]:
    """Return the seconds and peak MB of triage's own process for one report."""
    code = (
        "import sys, time, resource; from triage.artifacts.cores.report import read_core\n"
        f"start = time.perf_counter(); report = read_core({str(path)!r}, 'core', use_gdb={use_gdb})\n"
        "seconds = time.perf_counter() - start\n"
        "assert report.crash.frames[0] == 'crash_here' and len(report.stacks.threads) == 200, report.crash\n"
        f"assert report.engine == ({use_gdb} and 'gdb' or 'notes'), report.remarks\n"
        "print(seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)"
    )
    best = (1e9, 0.0)
    for _ in range(3):
        out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
        best = min(best, (float(out[0]), float(out[1])))
    return best


def gdb_text(size: int) -> str:
    """Return gdb's text of many processes, whose threads share the addresses of their process."""
    generator = random.Random(6)
    out: list[str] = []
    written = thread = 0
    while written < size:
        sites = [f"0x{generator.getrandbits(46):016x} in {generator.choice(FUNCTIONS)}" for _ in range(600)]
        for _ in range(200):
            thread += 1
            out.append(
                f'Thread {thread} (Thread 0x7f{generator.getrandbits(40):x} (LWP {thread + 1000}) "pt_main_thread"):'
            )
            out.extend(f"#{level:<2} {generator.choice(sites)}" for level in range(40))
        written = sum(map(len, out[:8200])) * (thread // 200)
    return "\n".join(out)


def parse_speed() -> float:
    """Return the MB of gdb's text that are parsed in a second."""
    import gc

    from triage.stacks.parser import parse_stacks

    text = gdb_text(100_000_000)
    gc.disable()  # as the command does
    start = time.perf_counter()
    (stacks,) = parse_stacks(text)
    seconds = time.perf_counter() - start
    assert len(stacks.threads) > 10_000
    return len(text) / 1e6 / seconds


def main() -> None:
    """Run the benchmark."""
    if shutil.which("gdb") is None or shutil.which("gcc") is None:
        sys.exit("bench: gcc and gdb are not there; install the Debian packages gcc and gdb, and run again")
    with tempfile.TemporaryDirectory(prefix="triage-bench-") as directory:
        path = make_core(Path(directory))
        status = path.stat()
        print(
            f"core: {status.st_size / 1e9:.1f} GB long, {status.st_blocks * 512 / 1e9:.1f} GB on the disk, 200 threads"
        )
        with_gdb, without = measure(path, True), measure(path, False)
    print(f"  with gdb   {with_gdb[0]:6.2f} s  {with_gdb[1]:5.0f} MB")
    print(f"  without    {without[0]:6.3f} s  {without[1]:5.0f} MB")
    rate = parse_speed()
    print(f"gdb's text, 100 MB: {rate:.0f} MB/s")
    print(
        f"BENCH core_gdb_s={with_gdb[0]:.2f} core_gdb_mb={with_gdb[1]:.0f} core_notes_s={without[0]:.3f} "
        f"backtrace_mb_s={rate:.0f}"
    )


if __name__ == "__main__":
    main()
