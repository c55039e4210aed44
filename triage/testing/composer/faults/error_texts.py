"""Error texts of NCCL, CUDA and CPython in the wording of the version that the world has, and stories around them."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

from triage.testing.composer.model import Exit, Line, Story, Truth, World, Writer
from triage.testing.composer.parts import echoes, nccl_init, start, steps, traceback, watchdog

KNOWN = frozenset({"known"})
_RESULTS = {
    "system": (
        "unhandled system error (run with NCCL_DEBUG=INFO for details)",
        "ncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error. ",
    ),
    "internal": (
        "internal error - please report this issue to the NCCL developers",
        "ncclInternalError: Internal check failed.",
    ),
    "usage": (
        "invalid usage (run with NCCL_DEBUG=WARN for details)",
        "ncclInvalidUsage: This usually reflects invalid usage of NCCL library.",
    ),
    "cuda": (
        "unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
        "ncclUnhandledCudaError: Call to CUDA function failed.",
    ),
    "remote": (
        "remote process exited or there was a network error",
        "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.",
    ),
}
"""By result: what `ncclGetErrorString` returns, and the advice of torch."""


def version(text: str) -> tuple[int, ...]:
    """Return a version as numbers that compare."""
    return tuple(int(part) for part in text.split("."))


def train(world: World, rng: random.Random, fewest: int = 3, most: int = 14) -> tuple[list[Line], float]:
    """Return the start and some steps of all ranks, and the time after the last of them."""
    count = rng.randrange(fewest, most)
    return [*start(world, rng), *steps(world, rng, 10, count, number=rng.choice((1, 1, 500, 12_000)))], 10.0 + count


def init_lines(world: World, rng: random.Random, lines: Iterable[Line]) -> list[Line]:
    """Return NCCL's Init lines of all ranks, unless these lines have them."""
    if any("Init COMPLETE" in line.text for line in lines):
        return []
    return [nccl_init(world, rank, rng.uniform(4, 8)) for rank in world.ranks]


def tell_crash(
    world: World,
    rng: random.Random,
    before: list[Line],
    exits: list[Exit],
    causes: list[Line],
    roots: set[str],
    *,
    share: float = 1.0,
    victims: Sequence[Exit] = (),
) -> Story:
    """Return the story of ranks that ended by `exits`; the others lose their peer and are consequences.

    `victims`: ends of ranks that are not at fault and whose lines are among the causes.
    """  # fmt: skip
    failed = [end.rank for end in exits]
    ended = [*failed, *(end.rank for end in victims)]
    lines, later = echoes(world, rng, ended, max(end.at for end in exits), share=share)
    truth = Truth(KNOWN, frozenset(roots), frozenset(failed), frozenset(world.node(rank) for rank in failed))
    return Story((*before, *causes, *lines), truth, (*exits, *sorted([*victims, *later], key=lambda end: end.at)))


def time_out(world: World, rng: random.Random, stuck: Iterable[int], at: float) -> tuple[list[Line], list[Exit]]:
    """Return the watchdogs of all ranks but the stuck ones, ten minutes (or longer) after `at`, and their ends."""
    silent, seconds, sequence = set(stuck), rng.choice((600, 600, 1200, 1800)), rng.randrange(200, 90_000)
    operation, numel = rng.choice(("ALLREDUCE", "_ALLGATHER_BASE", "_REDUCE_SCATTER_BASE")), rng.randrange(1, 99) * 4096
    lines, exits = [], []
    for rank in world.ranks:
        if rank not in silent:
            moment = at + seconds + rng.uniform(0, 1)
            lines.append(watchdog(world, rank, moment, sequence, operation=operation, seconds=seconds, numel=numel))
            lines += _give_up(world, rank, moment + 0.5)
            exits.append(Exit(rank, -6, moment + 2))
    return lines, sorted(exits, key=lambda end: end.at)


def _give_up(world: World, rank: int, at: float) -> list[Line]:
    """Return what the watchdog writes before it ends the process after a timeout."""
    moment = world.stamp(at, "%m%d %H:%M:%S").removeprefix("0")
    head = f"[rank{rank}]:[E{moment}.{rank + 1:09d} ProcessGroupNCCL.cpp:{{}}] [Rank {rank}] "
    if version(world.torch) < (2, 4):
        head = f"[rank{rank}]:" * (version(world.torch) >= (2, 2)) + "[E ProcessGroupNCCL.cpp:{}] "
    failed = "Some NCCL operations have failed or timed out. Due to the asynchronous nature of CUDA kernels, "
    text = (
        f"{head.format(681)}{failed}subsequent GPU operations might run on corrupted/incomplete data.\n"
        f"{head.format(695)}To avoid data inconsistency, we are taking the entire process down."
    )
    return [Line(at, Writer("rank", rank), text)]


def kernel_pid(world: World, rank: int) -> int:
    """Return the pid of a rank as the kernel has it; ranks with small pids live in a container's own pid namespace."""
    pid = world.pids[rank]
    return pid if pid >= 1000 else pid + 400_000 + int(world.start) % 3_000_000


def nccl_warn(
    world: World, rank: int, at: float, where: str, message: str, *, is_cause: bool = False, device: int | None = None
) -> Line:
    """Return NCCL's warning with the empty line before it; since 2.26 with a timestamp. `device`: of its thread."""
    stamp = world.stamp(at, "[%Y-%m-%d %H:%M:%S] ") if version(world.nccl) >= (2, 26) else ""
    pid, shown = world.pids[rank], world.local(rank) if device is None else device
    text = f"\n{stamp}{world.host(rank).partition('.')[0]}:{pid}:{pid + 340} [{shown}] {where} NCCL WARN {message}"
    return Line(at, Writer("rank", rank), text, "stdout", is_cause=is_cause)


def nccl_error(world: World, result: str, last: str) -> str:
    """Return the error that torch raises for a result of NCCL (`system`, `remote`, ...) with NCCL's last warning."""
    kind, advice = _RESULTS[result]
    torch = version(world.torch)
    place = "../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1333"
    if torch >= (2, 6):
        place = f"/pytorch/torch/csrc/distributed/c10d/NCCLUtils.cpp:{94 if torch >= (2, 8) else 77}"
    elif torch >= (2, 3):
        place = "../torch/csrc/distributed/c10d/NCCLUtils.hpp:275"
    name = "torch.distributed.DistBackendError"
    return f"{name}: NCCL error in: {place}, {kind}, NCCL version {world.nccl}\n{advice}\nLast error:\n{last}"


def watchdog_exception(world: World, rank: int, at: float, message: str, *, is_cause: bool = False) -> Line:
    """Return the end of a rank whose NCCL watchdog thread met an error; the process aborts."""
    torch, moment = version(world.torch), world.stamp(at, "%m%d %H:%M:%S").removeprefix("0")
    head = f"[PG ID 0 PG GUID 0(default_pg) Rank {rank}]" if torch >= (2, 5) else f"[PG 0 (default_pg) Rank {rank}]"
    number = 1515 if torch < (2, 5) else 1895 if torch < (2, 8) else 2057
    prefix = f"[rank{rank}]:[E{moment}.{(rank * 7919 + 104_729_113) % 10**9:09d} ProcessGroupNCCL.cpp:{number}]"
    thread = "Process group watchdog thread"
    if torch < (2, 2):
        prefix, head, thread = "[E ProcessGroupNCCL.cpp:915]", f"[Rank {rank}]", "NCCL watchdog thread"
    first = f"{head} {thread} terminated with exception: {message}\n{_frames(world, rank, message)}"
    kind = "c10::DistBackendError" if torch >= (2, 2) else "std::runtime_error"
    text = f"{prefix} {first}\n\nterminate called after throwing an instance of '{kind}'\n  what():  {first}\n"
    return Line(at, Writer("rank", rank), text, is_cause=is_cause, says_rank=True)


def _frames(world: World, rank: int, message: str) -> str:
    """Return the C++ stack below an exception of the watchdog's thread."""
    source = "../c10/cuda/CUDAException.cpp:43"
    function = "c10_cuda_check_implementation"
    if message.startswith("NCCL"):
        source = "../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:2027"
        function = "checkForNCCLErrorsInternal"
    library = f"/usr/local/lib/python{world.python}/dist-packages/torch/lib"
    cuda = f"{library}/libtorch_cuda.so"
    base = 0x7F0000000000 + world.pids[rank] * 4096
    return "\n".join((
        f"Exception raised from {function} at {source} (most recent call first):",
        "frame #0: c10::Error::Error(c10::SourceLocation, std::string) + 0x96 "
        f"(0x{base + 0x6C1B6:x} in {library}/libc10.so)",
        f"frame #1: c10d::ProcessGroupNCCL::watchdogHandler() + 0x1a8 (0x{base + 0x2D42C48:x} in {cuda})",
        f"frame #2: c10d::ProcessGroupNCCL::ncclCommWatchdog() + 0x14d (0x{base + 0x2D43E3D:x} in {cuda})",
        f"frame #3: <unknown function> + 0xdc253 (0x{base + 0x90DC253:x} in /lib/x86_64-linux-gnu/libstdc++.so.6)",
        f"frame #4: <unknown function> + 0x94ac3 (0x{base + 0x9894AC3:x} in /lib/x86_64-linux-gnu/libc.so.6)",
        "",
    ))  # fmt: skip


def cuda_text(world: World, text: str, code: str) -> str:
    """Return a CUDA error with the advice that torch adds."""
    torch = version(world.torch)
    manual = "https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__TYPES.html"
    search = f"Search for `{code}' in {manual} for more information.\n" if torch >= (2, 9) else ""
    return (
        f"CUDA error: {text}\n{search}"
        "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be "
        f"incorrect.\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1{'.' if torch < (2, 3) else ''}\n"
        "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.\n"
    )


def cuda_exception(world: World, rank: int, at: float, text: str, code: str, *, tagged: bool = True) -> Line:
    """Return an uncaught CUDA error of a rank as the cause."""
    name = "torch.AcceleratorError" if version(world.torch) >= (2, 8) else "RuntimeError"
    error = f"{name}: {cuda_text(world, text, code)}"
    return traceback(world, rank, at, error, is_cause=True, tagged=tagged)


def device_error(world: World, rng: random.Random, rank: int, at: float, text: str, code: str) -> tuple[Line, Exit]:
    """Return a CUDA error in the main thread (exit code 1) or in the watchdog's thread (SIGABRT), and the end."""
    if rng.random() < 0.6:
        return cuda_exception(world, rank, at, text, code), Exit(rank, 1, at + 0.4)
    line = watchdog_exception(world, rank, at, cuda_text(world, text, code), is_cause=True)
    return line, Exit(rank, -6, at + 0.6)


def fatal_python_error(
    world: World,
    rng: random.Random,
    rank: int,
    at: float,
    error: str,
    frames: Iterable[tuple[str, int, str]] = (),
    *,
    state: bool = False,
) -> Line:
    """Return what CPython's faulthandler (or, with `state`, its fatal error) prints; it names no rank."""  # fmt: skip
    site = f"/usr/lib/python{world.python}/site-packages"
    shown = list(frames) or [
        (f"{site}/torch/autograd/graph.py", 823, "_engine_run_backward"),
        (f"{site}/torch/_tensor.py", 581, "backward"),
        (world.script, rng.randrange(90, 300), "train_step"),
        (world.script, rng.randrange(301, 400), "main"),
        (world.script, rng.randrange(401, 420), "<module>"),
    ]
    here = rng.randrange(0x7F0000000000, 0x7FFFFFFFF000, 64)
    text = [f"Fatal Python error: {error}", *(["Python runtime state: initialized"] if state else []), ""]
    if not state and rng.random() < 0.6:
        text += [f"Thread 0x{here - 0x900000:016x} (most recent call first):"]
        text += [f'  File "/usr/lib/python{world.python}/threading.py", line 324 in wait']
        text += [f'  File "{site}/tqdm/_monitor.py", line 60 in run', ""]
    text += [f"Current thread 0x{here:016x} (most recent call first):"]
    text += [f'  File "{file}", line {number} in {function}' for file, number, function in shown]
    text += ["  ..."] if len(shown) >= 100 else []
    if version(world.python) >= (3, 10):
        modules = ["numpy.core._multiarray_umath", "torch._C", "yaml._yaml", "psutil._psutil_linux", "PIL._imaging"]
        count = rng.randrange(2, 6)
        text += ["", f"Extension modules: {', '.join(modules[:count])} (total: {count})"]
    return Line(at, Writer("rank", rank), "\n".join(text), is_cause=True)


def plain(world: World, rank: int, at: float, text: str, *, is_cause: bool = True) -> Line:
    """Return text that native code of a rank writes to standard error without a prefix."""
    return Line(at, Writer("rank", rank), text, is_cause=is_cause)
