"""Programs that crash, built and run on the fly, and the core files they leave."""

from __future__ import annotations

import os
import re
import resource
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

C = r"""
#include <assert.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#define APART __attribute__((noinline))
int *nowhere; char *far_away;
APART int read_header(int *p) { return *p; }
APART int read_field(int *p) { return p[18]; }
APART int read_wild(char *p) { return *p; }
APART int touch(volatile char *p) { return p[5000]; }
APART void release(void *p) { free(p); asm volatile(""); }
APART void check(int x) { assert(x == 1); }
int walk(int n) { volatile char b[512]; b[0] = n; return walk(n + 1) + b[0]; }
static void *idle(void *p) { pause(); return p; }
APART int divide(int a, int b) { return a / b; }
static pthread_barrier_t ready;
static void *wait_there(void *p) { pthread_barrier_wait(&ready); pause(); return p; }
APART int work(const char *mode) {
    if (!strcmp(mode, "null")) return read_header(nowhere) + 1;
    if (!strcmp(mode, "offset")) return read_field(nowhere) + 1;
    if (!strcmp(mode, "wild")) { far_away = (char *)0x123456789000; return read_wild(far_away) + 1; }
    if (!strcmp(mode, "noncanonical")) { far_away = (char *)0x8123456789abcdef; return read_wild(far_away) + 1; }
    if (!strcmp(mode, "heap")) { void *p = malloc(5000), *q = malloc(16); release(p); release(p); return q != 0; }
    if (!strcmp(mode, "assert")) { check(2); return 1; }
    if (!strcmp(mode, "overflow")) return walk(0);
    if (!strcmp(mode, "divide")) return divide(7, nowhere != 0);
    if (!strcmp(mode, "bus")) {
        int fd = open("mapped.bin", O_RDWR | O_CREAT, 0600);
        if (ftruncate(fd, 8192)) return 2;
        volatile char *p = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (ftruncate(fd, 100)) return 2;
        return touch(p) + 1;
    }
    if (!strcmp(mode, "threads")) {
        pthread_t t;
        pthread_barrier_init(&ready, 0, 200);
        for (int i = 0; i < 199; i++) pthread_create(&t, 0, wait_there, 0);
        pthread_barrier_wait(&ready);
        return read_header(nowhere) + 1;
    }
    return 0;
}
int main(int argc, char **argv) { return work(argc > 1 ? argv[1] : "") + (idle == 0); }
"""
CXX = r"""
#include <stdexcept>
#include <thread>
#include <vector>
#include <unistd.h>
namespace app {
struct Loader {
    template <class T> __attribute__((noinline)) void decode(T x) {
        if (x > 0) throw std::runtime_error("bad shard");
        asm volatile("");
    }
    __attribute__((noinline)) void next(int i) { decode<int>(i + 1); asm volatile(""); }
};
}
int main() {
    std::vector<std::thread> others;
    for (int i = 0; i < 4; i++) others.emplace_back([] { sleep(100); });
    std::thread last([] { app::Loader loader; loader.next(3); });
    last.join();
}
"""
# With an argument it ends itself once both threads wait.
DEADLOCK = r"""
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both;
static void *save(void *x) { pthread_mutex_lock(&b); pthread_barrier_wait(&both); pthread_mutex_lock(&a); return x; }
static volatile int *locks[] = {&a.__data.__lock, &b.__data.__lock};
static void *end(void *x) { while (*locks[0] != 2 || *locks[1] != 2) usleep(1000); usleep(100000); abort(); return x; }
int main(int argc, char **argv) {
    pthread_t t;
    pthread_barrier_init(&both, 0, 2);
    pthread_mutex_lock(&a);
    pthread_create(&t, 0, save, 0);
    if (argc > 1) pthread_create(&t, 0, end, argv);
    pthread_barrier_wait(&both);
    if (write(1, "step 7 loss 2.5\n", 16) != 16) return 1;
    pthread_mutex_lock(&b);
}
"""
EXTENSION = r"""
#include <Python.h>
static int *nowhere;
__attribute__((noinline)) static int decode_block(int n) { return *nowhere + n; }
static PyObject *decode(PyObject *self, PyObject *args) {
    int n;
    return PyArg_ParseTuple(args, "i", &n) ? PyLong_FromLong(decode_block(n)) : NULL;
}
static PyMethodDef methods[] = {{"decode", decode, METH_VARARGS, ""}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "shards", "", -1, methods};
PyMODINIT_FUNC PyInit_shards(void) { return PyModule_Create(&module); }
"""
LOADER = """
import threading

import shards


def load_shard(n):
    return shards.decode(n)


threads = [threading.Thread(target=threading.Event().wait, daemon=True) for _ in range(3)]
threads.append(threading.Thread(target=load_shard, args=(3,)))
for thread in threads:
    thread.start()
threads[-1].join()
"""


def require_programs(*programs: str) -> None:
    """Skip the test with a message if a tool is missing; .ci/run installs all of them."""
    missing = [program for program in programs if shutil.which(program) is None]
    if missing:
        assert not os.environ.get("CI"), f"{missing} must be installed in CI (.ci/run does)"
        pytest.skip(f"THESE TESTS DID NOT RUN: {', '.join(missing)} is not installed; apt-get install gcc g++ gdb")


def compile_program(directory: Path, name: str, source: str, *options: str) -> Path:
    """Compile a program of C or C++."""
    compiler, suffix = ("g++", "cc") if "#include <thread>" in source else ("gcc", "c")
    require_programs(compiler)
    (directory / f"{name}.{suffix}").write_text(source, encoding="utf-8")
    target = directory / name
    flags = ("-g", "-O1", "-fno-optimize-sibling-calls", "-pthread", "-w")
    subprocess.run(
        [compiler, *flags, f"{name}.{suffix}", "-o", str(target), *options], cwd=directory, check=True, timeout=120
    )
    return target


def compile_extension(directory: Path) -> Path:
    """Compile the extension module `shards` for the Python that runs here."""
    include = sysconfig.get_paths()["include"]
    if not Path(include, "Python.h").exists():
        pytest.skip(f"THIS TEST DID NOT RUN: {include}/Python.h is not there; install the headers of this Python")
    return compile_program(directory, "shards.so", EXTENSION, "-shared", "-fPIC", f"-I{include}")


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(4)


def make_core(directory: Path, *command: str) -> Path:
    """Run a command until it crashes, and return its core from the kernel, or from gdb where a service takes cores."""

    def limits() -> None:
        resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

    run_directory = directory / f"run-{len(list(directory.glob('run-*')))}"
    run_directory.mkdir()
    pattern = Path("/proc/sys/kernel/core_pattern").read_text(encoding="utf-8").strip()
    if re.fullmatch(r"[\w.%-]+", pattern) and resource.getrlimit(resource.RLIMIT_CORE)[1] == resource.RLIM_INFINITY:
        done = subprocess.run(command, cwd=run_directory, preexec_fn=limits, capture_output=True, timeout=60)
        assert done.returncode < 0, f"{command} did not crash: {done}"
        cores = [path for path in run_directory.iterdir() if _head(path) == b"\x7fELF"]
    else:
        require_programs("gdb")
        script = ["-ex", "run", "-ex", "generate-core-file core"]
        subprocess.run(
            ["gdb", "--nx", "-batch", *script, "--args", *command],
            cwd=run_directory,
            capture_output=True,
            timeout=120,
            check=True,
        )
        cores = [run_directory / "core"]
    assert len(cores) == 1, f"no core in {run_directory} (core_pattern {pattern})"
    return cores[0]
