"""One rank crashes in native code, in the way that CRASH names: null, free, stack or mapping."""

import ctypes
import mmap
import os
import sys

from trainlib import Job


def read_null() -> None:
    """Read address zero (SIGSEGV)."""
    ctypes.string_at(0)


def free_twice() -> None:
    """Free a block twice, which glibc notices (SIGABRT)."""
    libc = ctypes.CDLL(None)
    libc.malloc.restype = ctypes.c_void_p
    block = ctypes.c_void_p(libc.malloc(4096 * 64))
    libc.free(block)
    libc.free(block)


def walk(tree: list[object]) -> int:
    """Recurse through C and Python in turns, without end."""
    return 1 + max(map(walk, tree))  # type: ignore[arg-type]


def exhaust_stack() -> None:
    """Recurse until the stack is gone (SIGSEGV)."""
    sys.setrecursionlimit(10**9)
    tree: list[object] = []
    tree.append(tree)
    walk(tree)


def shrink_mapping() -> None:
    """Read a mapped file after another process truncated it (SIGBUS)."""
    with open("shard.bin", "w+b") as file:
        file.truncate(1 << 16)
        with mmap.mmap(file.fileno(), 0) as mapped:
            file.truncate(0)
            print(mapped[1 << 15])


CRASHES = {"null": read_null, "free": free_twice, "stack": exhaust_stack, "mapping": shrink_mapping}


def main() -> None:
    """Train; the odd rank crashes after step 9."""
    job = Job()
    job.train(1, 9)
    if job.odd:
        CRASHES[os.environ["CRASH"]]()
    job.train(10, 40)


if __name__ == "__main__":
    main()
