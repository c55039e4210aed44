"""Faults in which a kernel on one GPU fails and the rank's Python code gets a CUDA error."""

from __future__ import annotations

import random
from collections.abc import Sequence

from triage.testing.composer.faults.error_texts import (
    KNOWN,
    cuda_text,
    init_lines,
    kernel_pid,
    version,
    watchdog_exception,
)
from triage.testing.composer.faults.interface import Fault
from triage.testing.composer.faults.uncaught import (
    Prelude,
    end_job,
    format_traceback,
    train_until,
    training_calls,
    uncaught,
)
from triage.testing.composer.model import Exit, Line, Story, Truth, World, Writer
from triage.testing.composer.parts import kernel

_SOURCES = ("loss.backward()", "total += loss.item()", "torch.cuda.synchronize()", "mask = (labels != -100).cpu()")


def device_assert(world: World, rng: random.Random) -> Story:
    """An index out of range trips an assertion of a kernel on one rank."""
    rank, before = rng.randrange(world.size), train_until(world, rng)
    file, line, function, assertion = rng.choice((
        ("Indexing.cu", 1289, "indexSelectLargeIndex", "srcIndex < srcSelectDimSize"),
        ("Indexing.cu", 1231, "indexSelectSmallIndex", "srcIndex < srcSelectDimSize"),
        ("Loss.cu", 245, "nll_loss_forward_reduce_cuda_kernel_2d", "t >= 0 && t < n_classes"),
        ("ScatterGatherKernel.cu", 144, "operator()", 'idx_dim >= 0 && idx_dim < index_size && "index out of bounds"'),
    ))  # fmt: skip
    path = f"{'/pytorch' if version(world.torch) >= (2, 6) else '..'}/aten/src/ATen/native/cuda/{file}"
    block, first = rng.randrange(0, 300), rng.randrange(0, 3) * 32
    asserts = "\n".join(
        f"{path}:{line}: {function}: block: [{block},0,0], thread: [{thread},0,0] Assertion `{assertion}` failed."
        for thread in range(first, first + rng.randrange(2, 32))
    )
    lines = [Line(before.at - 0.05, Writer("rank", rank), asserts, is_cause=True)]
    return _fail(
        world,
        rng,
        before,
        rank,
        ("device-side assert triggered", "cudaErrorAssert"),
        lines,
        ["cuda.device-side-assert"],
    )


def illegal_access(world: World, rng: random.Random) -> Story:
    """A kernel reads memory that is not its own, on one rank; some jobs have the driver's Xid."""
    rank, before = rng.randrange(world.size), train_until(world, rng)
    lines, roots = [], ["cuda.illegal-memory-access"]
    if rng.random() < 0.5:
        xid = (
            f"NVRM: Xid (PCI:{world.bus(rank)}): 31, pid={world.pids[rank]}, name=python3, Ch 00000008, intr 00000000. "
            f"MMU Fault: ENGINE GRAPHICS GPCCLIENT_T1_{rng.randrange(8)} faulted @ 0x7f{rng.randrange(16):x}a_"
            f"{rng.randrange(2**32):08x}. Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_READ"
        )
        lines.append(kernel(world, world.node(rank), before.at - 0.1, xid, is_cause=True, says_host=True))
        roots.append("gpu.xid-31")
    message = ("an illegal memory access was encountered", "cudaErrorIllegalAddress")
    return _fail(world, rng, before, rank, message, lines, roots)


def illegal_access_spreads(world: World, rng: random.Random) -> Story:
    """A kernel of one rank reads memory that is not its own; seconds later the others get the same error."""
    rank, before = rng.randrange(world.size), train_until(world, rng)
    pid = kernel_pid(world, rank)
    xid = (
        f"NVRM: Xid (PCI:{world.bus(rank)}): 31, pid={pid}, name=python3, Ch 0000000{rng.randrange(8)}, "
        f"intr 00000000. MMU Fault: ENGINE GRAPHICS GPCCLIENT_T1_{rng.randrange(8)} faulted @ "
        f"0x7f{rng.randrange(16):x}a_{rng.randrange(2**32):08x}. Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_READ"
    )
    lines = [*before.lines, *init_lines(world, rng, before.lines)]
    lines.append(kernel(world, world.node(rank), before.at - 0.1, xid, is_cause=True, says_host=True))
    error = cuda_text(world, "an illegal memory access was encountered", "cudaErrorIllegalAddress")
    name = "torch.AcceleratorError" if version(world.torch) >= (2, 8) else "RuntimeError"
    text = format_traceback(world, training_calls(world, rng, rng.choice(_SOURCES)), f"{name}: {error}")
    first = uncaught(world, rank, before.at, text)
    others = [other for other in world.ranks if other != rank]
    ends, later = [Exit(rank, 1, before.at + 0.3)], []
    for other in sorted(rng.sample(others, rng.randrange(1, len(others) + 1))):
        at = before.at + rng.uniform(2.5, 20)
        later.append(watchdog_exception(world, other, at, error))
        ends.append(Exit(other, -6, at + 0.2))
    roots = frozenset({"cuda.illegal-memory-access", "gpu.xid-31"})
    truth = Truth(KNOWN, roots, frozenset({rank}), frozenset({world.node(rank)}))
    return Story((*lines, first, *later), truth, tuple(sorted(ends, key=lambda end: end.at)))


def after_nonfatal_nvlink(world: World, rng: random.Random) -> Story:
    """Links of a GPU correct errors for a while (Xid 14x Nonfatal); later one rank fails for another reason."""
    before = train_until(world, rng)
    noisy, rank = rng.randrange(world.size), rng.randrange(world.size)
    lines = []
    for _ in range(rng.randrange(1, 6)):
        number, unit = rng.choice(((145, "RLW_RXPIPE"), (145, "RLW_SRC_TRACK"), (149, "NETIR_LINK_EVT")))
        values = " ".join(f"0x{value:08x}" for value in (0x6, 0x1, *(rng.randrange(16) for _ in range(4))))
        fault = f"{unit} Nonfatal XC0 i0 Link {rng.randrange(18):02d} ({values})"
        text = f"NVRM: Xid (PCI:{world.bus(noisy)}): {number}, {fault}"
        lines.append(kernel(world, world.node(noisy), before.at - rng.uniform(2, 900), text))
    error, root = rng.choice((
        ("RuntimeError: mat1 and mat2 shapes cannot be multiplied (64x1023 and 1024x4096)", "torch.tensor-shape-error"),
        ("OSError: [Errno 28] No space left on device", "host.no-space"),
        ("PermissionError: [Errno 13] Permission denied: '/data/cache/index.bin'", "host.permission-denied"),
    ))  # fmt: skip
    text = format_traceback(world, training_calls(world, rng, "state = step(batch)"), error)
    return end_job(world, rng, before, [uncaught(world, rank, before.at, text)], [root], more=lines)


def _fail(
    world: World,
    rng: random.Random,
    before: Prelude,
    rank: int,
    message: tuple[str, str],
    lines: Sequence[Line],
    roots: Sequence[str],
) -> Story:
    """Return the story of a CUDA error in Python; in half of the jobs the watchdog then aborts the process.
    """  # fmt: skip
    error = cuda_text(world, *message)
    name = "torch.AcceleratorError" if version(world.torch) >= (2, 8) else "RuntimeError"
    text = format_traceback(world, training_calls(world, rng, rng.choice(_SOURCES)), f"{name}: {error}")
    causes, status = [uncaught(world, rank, before.at, text)], 1
    if rng.random() < 0.5:
        causes.append(watchdog_exception(world, rank, before.at + 0.1, error, is_cause=True))
        status = -6
    return end_job(world, rng, before, causes, roots, more=lines, status=status)


FAULTS = (
    Fault("device-assert", device_assert, backends=("nccl",)),
    Fault("illegal-memory-access", illegal_access, backends=("nccl",)),
    Fault("illegal-access-spreads", illegal_access_spreads, backends=("nccl",)),
    Fault("nvlink-nonfatal-before-failure", after_nonfatal_nvlink, backends=("nccl",)),
)
