"""Measures the reading of core files and backtraces: `make bench` runs it with the others.

A sparse core of 2 GB with 200 threads is read with gdb and without, each in a process of its own, so that its memory is
counted alone; 100 MB of
gdb's text are parsed. Needs gcc and gdb. The last line is for machines.
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
__attribute__((noinline)) int deeper(int n) { volatile char b[64]; b[0] = n; return n ? deeper(n - 1) + b[0] : pause(); }
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
    "c10d::ProcessGroupNCCL::WorkNCCL::finishedGPUExecutionInternal() const () from /opt/venv/lib/python3.11/site-packages/torch/lib/libtorch_cuda.so",
    "std::condition_variable::wait (this=0x7f0012, __lock=...) at ../../../../../src/libstdc++-v3/src/c++11/condition_variable.cc:41",
    "_PyEval_EvalFrameDefault (tstate=0xba0c18 <_PyRuntime+166328>, frame=0x7f0dd7fea020, throwflag=0) at Python/ceval.c:4769",
    "__futex_abstimed_wait_common64 (private=0, cancel=true, abstime=0x0, op=393, expected=0) at ./nptl/futex-internal.c:57",
    "at::(anonymous namespace)::worker<c10::Half, std::vector<int> >(at::Tensor const&, long) () from /usr/lib/libtorch_cpu.so",
    'PyObject_Call (callable=<built-in method f(a)>, args=(1, "x) at y:3"), kwargs=0x0) at Objects/call.c:355',
    "?? () from /lib/x86_64-linux-gnu/libcuda.so.1",
)


def core(directory: Path) -> Path:
    """A core of 200 threads, sparse on the disk and 2 GB long."""
    (directory / "crash.c").write_text(PROGRAM)
    subprocess.run(["gcc", "-g", "-O1", "-pthread", "-w", "crash.c", "-o", "crash"], cwd=directory, check=True)

    def limits() -> None:
        resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

    subprocess.run(["./crash"], cwd=directory, preexec_fn=limits, check=False)
    found = [path for path in directory.iterdir() if path.name.startswith("core")]
    if not found:
        subprocess.run(
            ["gdb", "--nx", "-batch", "-ex", "run", "-ex", "generate-core-file core", "./crash"],
            cwd=directory,
            check=True,
        )
        found = [directory / "core"]
    return found[0]


def measured(path: Path, use_gdb: bool) -> tuple[float, float]:
    """Seconds and peak MB of our own process for one answer."""
    code = (
        "import sys, time, resource; from triage.artifacts.cores.report import read\n"
        f"start = time.perf_counter(); report = read({str(path)!r}, 'core', use_gdb={use_gdb})\n"
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


def text(size: int) -> str:
    """gdb's text of all threads of many processes: each process has its own addresses, its threads share them."""
    pick = random.Random(6)
    out: list[str] = []
    written = thread = 0
    while written < size:
        sites = [f"0x{pick.getrandbits(46):016x} in {pick.choice(FUNCTIONS)}" for _ in range(600)]
        for _ in range(200):
            thread += 1
            out.append(f'Thread {thread} (Thread 0x7f{pick.getrandbits(40):x} (LWP {thread + 1000}) "pt_main_thread"):')
            out.extend(f"#{level:<2} {pick.choice(sites)}" for level in range(40))
        written = sum(map(len, out[:8200])) * (thread // 200)
    return "\n".join(out)


def speed() -> float:
    """MB of gdb's text parsed in a second."""
    import gc

    from triage.stacks import parse

    given = text(100_000_000)
    gc.disable()  # as the command does
    start = time.perf_counter()
    (stacks,) = parse(given)
    seconds = time.perf_counter() - start
    assert len(stacks.threads) > 10_000
    return len(given) / 1e6 / seconds


def main() -> None:
    if shutil.which("gdb") is None or shutil.which("gcc") is None:
        sys.exit("bench: gcc and gdb are not there; install the Debian packages gcc and gdb, and run again")
    with tempfile.TemporaryDirectory(prefix="triage-bench-") as directory:
        path = core(Path(directory))
        status = path.stat()
        print(
            f"core: {status.st_size / 1e9:.1f} GB long, {status.st_blocks * 512 / 1e9:.1f} GB on the disk, 200 threads"
        )
        with_gdb, alone = measured(path, True), measured(path, False)
    print(f"  with gdb   {with_gdb[0]:6.2f} s  {with_gdb[1]:5.0f} MB of our own")
    print(f"  without    {alone[0]:6.3f} s  {alone[1]:5.0f} MB")
    rate = speed()
    print(f"gdb's text, 100 MB: {rate:.0f} MB/s")
    print(
        f"BENCH core_gdb_s={with_gdb[0]:.2f} core_gdb_mb={with_gdb[1]:.0f} core_notes_s={alone[0]:.3f} backtrace_mb_s={rate:.0f}"
    )


if __name__ == "__main__":
    main()
