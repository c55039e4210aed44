"""Faults that end one process by a signal: invalid memory accesses, aborts, full stacks, kills from outside."""

from __future__ import annotations

import random
from dataclasses import replace

from triage.testing.composer.faults.error_texts import fatal_python_error, kernel_pid, plain, tell_crash, train, version
from triage.testing.composer.faults.interface import Fault
from triage.testing.composer.model import Backend, Exit, Line, Story, World
from triage.testing.composer.parts import kernel

ALL: tuple[Backend, ...] = ("nccl", "gloo", "hccl")


def segfault_with_faulthandler(world: World, rng: random.Random) -> Story:
    """One rank crashes by SIGSEGV; Python's faulthandler prints the stack, sometimes the kernel a line."""
    rank = rng.randrange(world.size)
    before, at = train(world, rng)
    causes = [fatal_python_error(world, rng, rank, at, "Segmentation fault")]
    if rng.random() < 0.3:
        causes.append(_segfault_line(world, rng, rank, at, "libc10_cuda.so"))
    return tell_crash(world, rng, before, [Exit(rank, -11, at + 0.2)], causes, {"crash.segfault"})


def segfault_in_library(world: World, rng: random.Random) -> Story:
    """One rank crashes by SIGSEGV without a word; the kernel names the library."""
    rank = rng.randrange(world.size)
    before, at = train(world, rng)
    library = rng.choice(
        ("libtorch_cpu.so", "libtorch_python.so", f"_fused.cpython-{world.python.replace('.', '')}-x86_64-linux-gnu.so")
    )
    causes = [_segfault_line(world, rng, rank, at, library)]
    return tell_crash(world, rng, before, [Exit(rank, -11, at + 0.2)], causes, {"crash.segfault"})


def segfault_in_nccl(world: World, rng: random.Random) -> Story:
    """One rank crashes by SIGSEGV inside NCCL's library, as the kernel's line says."""
    rank = rng.randrange(world.size)
    before, at = train(world, rng)
    causes = [_segfault_line(world, rng, rank, at, "libnccl.so.2")]
    roots = {"crash.segfault-in-nccl", "crash.segfault"}
    return tell_crash(world, rng, before, [Exit(rank, -11, at + 0.2)], causes, roots)


def heap_corruption(world: World, rng: random.Random) -> Story:
    """The allocator of the C library finds a damaged heap on one rank and aborts."""
    rank = rng.randrange(world.size)
    before, at = train(world, rng)
    message = rng.choice((
        "double free or corruption (!prev)", "double free or corruption (out)", "free(): invalid pointer",
        "malloc(): corrupted top size", "corrupted size vs. prev_size", "free(): double free detected in tcache 2",
        "munmap_chunk(): invalid pointer", "malloc(): unaligned tcache chunk detected",
    ))  # fmt: skip
    causes = [plain(world, rank, at, message)]
    if rng.random() < 0.4:
        causes.append(fatal_python_error(world, rng, rank, at + 0.01, "Aborted"))
    return tell_crash(world, rng, before, [Exit(rank, -6, at + 0.2)], causes, {"crash.heap-corruption"})


def uncaught_cpp_exception(world: World, rng: random.Random) -> Story:
    """An extension of one rank throws a C++ exception that nobody catches."""
    rank = rng.randrange(world.size)
    before, at = train(world, rng)
    index = rng.randrange(40, 999)
    kind, what = rng.choice((
        ("std::out_of_range", f"vector::_M_range_check: __n (which is {index}) >= this->size() (which is 32)"),
        ("std::logic_error", "basic_string: construction from null is not valid"),
        ("std::runtime_error", f"shard index {rng.randrange(10, 99)} has no tokens"),
        ("std::length_error", "vector::_M_default_append"),
        ("std::invalid_argument", "stoi"),
    ))  # fmt: skip
    causes = [plain(world, rank, at, f"terminate called after throwing an instance of '{kind}'\n  what():  {what}")]
    if rng.random() < 0.4:
        causes.append(fatal_python_error(world, rng, rank, at + 0.01, "Aborted"))
    story = tell_crash(world, rng, before, [Exit(rank, -6, at + 0.2)], causes, {"crash.abort"})
    # No signature knows this exception: what it says is as right an answer as that the rank aborted.
    truth = replace(story.truth, verdicts=frozenset({"known", "unknown"}), roots=frozenset({"crash.abort", None}))
    return replace(story, truth=truth)


def bus_error(world: World, rng: random.Random) -> Story:
    """One rank touches a page of a mapped file that has no memory behind it: /dev/shm is full, or a file was cut."""
    rank = rng.randrange(world.size)
    before, at = train(world, rng)
    site = f"/usr/lib/python{world.python}/site-packages"
    mapped = (f"{site}/numpy/core/memmap.py", 353, "__getitem__")
    shared = (f"{site}/torch/multiprocessing/reductions.py", 368, "rebuild_storage_fd")
    frames = [
        rng.choice((mapped, shared)),
        (world.script.rpartition("/")[0] + "/data.py", rng.randrange(40, 140), rng.choice(("collate", "load_shard"))),
        (world.script, rng.randrange(150, 300), "main"),
        (world.script, rng.randrange(301, 320), "<module>"),
    ]
    causes = [fatal_python_error(world, rng, rank, at, "Bus error", frames)]
    return tell_crash(world, rng, before, [Exit(rank, -7, at + 0.2)], causes, {"crash.bus-error"})


def stack_overflow(world: World, rng: random.Random) -> Story:
    """Endless recursion on one rank: CPython gives up, or the C stack ends and faulthandler prints a deep stack."""
    rank = rng.randrange(world.size)
    before, at = train(world, rng)
    function = rng.choice(("flatten", "walk_tree", "visit", "to_plain"))
    file = world.script.rpartition("/")[0] + "/tree.py"
    frames = [(file, 31, function)] * 99 + [(file, 33, function)]
    if rng.random() < 0.5:
        error, status, roots = "Segmentation fault", -11, {"crash.stack-overflow", "crash.segfault"}
    else:
        function_prefix = "_Py_CheckRecursiveCall: " if version(world.python) >= (3, 9) else ""
        error, status = f"{function_prefix}Cannot recover from stack overflow.", -6
        roots = {"crash.stack-overflow"}
    cause = fatal_python_error(world, rng, rank, at, error, frames, state=status == -6)
    return tell_crash(world, rng, before, [Exit(rank, status, at + 0.2)], [cause], roots)


def killed_from_outside(world: World, rng: random.Random) -> Story:
    """One rank is killed by SIGKILL and nothing says by whom."""
    rank = rng.randrange(world.size)
    before, at = train(world, rng)
    return tell_crash(world, rng, before, [Exit(rank, -9, at)], [], {"host.sigkill"})


def _segfault_line(world: World, rng: random.Random, rank: int, at: float, library: str) -> Line:
    """Return the kernel's line about a segmentation fault; since 5.19 with the CPU."""
    base = rng.randrange(0x7F1000000000, 0x7FE000000000, 4096)
    offset = rng.randrange(0x40000, 0x3000000)
    address = rng.choice((0, 8, 0x18, 0x7F0000000040 + rng.randrange(1 << 24)))
    core = f" likely on CPU {rng.randrange(96)} (core {rng.randrange(48)}, socket 0)" if rng.random() < 0.5 else ""
    thread = rng.choice(("python3", "pt_main_thread", "pt_autograd_0"))
    text = (
        f"{thread}[{kernel_pid(world, rank)}]: segfault at {address:x} ip {base + offset:016x} sp "
        f"{base + 0x12345678:016x} error {rng.choice((4, 6))} in {library}[{base:x}+{offset * 3 & ~0xFFF:x}]{core}"
    )
    return kernel(world, world.node(rank), at + 0.05, text, is_cause=True, says_host=True)


FAULTS = (
    Fault("segfault-with-faulthandler", segfault_with_faulthandler, ALL),
    Fault("segfault-in-library", segfault_in_library, ALL),
    Fault("segfault-in-nccl", segfault_in_nccl, ("nccl",)),
    Fault("heap-corruption", heap_corruption, ALL),
    Fault("uncaught-cpp-exception", uncaught_cpp_exception, ALL),
    Fault("bus-error", bus_error, ALL),
    Fault("stack-overflow", stack_overflow, ALL),
    Fault("killed-from-outside", killed_from_outside, ALL),
)
