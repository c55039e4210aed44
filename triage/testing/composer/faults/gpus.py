"""Faults of one GPU: Xid errors of the kernel with what the rank on that GPU sees, and GPUs that cannot be used."""

from __future__ import annotations

import random

from triage.testing.composer.faults.error_texts import (
    KNOWN,
    cuda_exception,
    device_error,
    init_lines,
    kernel_pid,
    nccl_error,
    nccl_warn,
    tell_crash,
    time_out,
    train,
    version,
)
from triage.testing.composer.faults.interface import Fault
from triage.testing.composer.model import Exit, Line, Story, Truth, World
from triage.testing.composer.parts import kernel, record, traceback

_ECC = ("uncorrectable ECC error encountered", "cudaErrorECCUncorrectable")
_LAUNCH = ("unspecified launch failure", "cudaErrorLaunchFailure")
_UNKNOWN = ("unknown error", "cudaErrorUnknown")
_NVLINK = ("uncorrectable NVLink error detected during the execution", "cudaErrorNvlinkUncorrectable")


def fallen_off_bus(world: World, rng: random.Random) -> Story:
    """A GPU falls off the bus; its rank gets a CUDA error, or hangs until the others time out."""
    rank = rng.randrange(world.size)
    before, at = train(world, rng)
    address = f"{world.bus(rank)}.0"
    causes = [_xid(world, rank, at, 79, "GPU has fallen off the bus.", has_process=rng.random() < 0.5)]
    causes.append(_kernel(world, rank, at + 0.01, f"NVRM: GPU {address}: GPU has fallen off the bus."))
    if rng.random() < 0.5:
        serial = rng.randrange(1_320_000_000_000, 1_659_999_999_999)
        causes.append(_kernel(world, rank, at + 0.02, f"NVRM: GPU {address}: GPU serial number is {serial}."))
    return _xid_story(world, rng, rank, before, causes, rng.choice((_LAUNCH, _UNKNOWN)), {"gpu.fallen-off-bus"})


def double_bit_error(world: World, rng: random.Random) -> Story:
    """A double-bit memory error (Xid 48) ends the process on that GPU."""
    rank = rng.randrange(world.size)
    before, at = train(world, rng)
    place = f"at physical partition {rng.randrange(10)}, subpartition {rng.randrange(4)}."
    text = f"An uncorrectable double bit error (DBE) has been detected on GPU in the framebuffer {place}"
    causes = [_xid(world, rank, at, 48, text), _xid_45(world, rng, rank, at + 0.1)]
    return _xid_story(world, rng, rank, before, causes, _ECC, {"gpu.xid-48", "gpu.ecc-uncorrectable"}, may_hang=False)


def contained_memory_error(world: World, rng: random.Random) -> Story:
    """A contained (Xid 94) or uncontained (Xid 95) memory error of a GPU."""
    rank = rng.randrange(world.size)
    before, at = train(world, rng)
    if rng.random() < 0.6:
        number, text = 94, f"Contained: {rng.choice(('SM (0x1)', 'CE User Channel (0x9)'))}. RST: No, D-RST: No"
    else:
        number, text = 95, f"Uncontained: LTC TAG (0x2,0x{rng.randrange(4):x}). RST: Yes, D-RST: No"
    remap = "Row Remapper: New row marked for remapping, reset gpu to activate."
    causes = [
        _xid(world, rank, at, 63, remap, is_cause=False),
        _xid(world, rank, at + 0.01, number, text),
        _xid_45(world, rng, rank, at + 0.1),
    ]
    roots = {f"gpu.xid-{number}", "gpu.ecc-uncorrectable"}
    return _xid_story(world, rng, rank, before, causes, _ECC, roots, may_hang=False)


def nvlink_error(world: World, rng: random.Random) -> Story:
    """An NVLink of a GPU fails (Xid 74)."""
    rank = rng.randrange(world.size)
    before, at = train(world, rng)
    link, bits = rng.randrange(12), rng.choice(("0x10000, 0x0, 0x0", "0x0, 0x0, 0x10000", "0x4000, 0x0, 0x0"))
    text = f"NVLink: fatal error detected on link {link}({bits}, 0x0, 0x0, 0x0, 0x0)"
    causes = [_xid(world, rank, at, 74, text, has_process=False)]
    roots = {"gpu.xid-74", "gpu.nvlink-uncorrectable"}
    return _xid_story(world, rng, rank, before, causes, _NVLINK, roots, may_hang=False)


def gsp_timeout(world: World, rng: random.Random) -> Story:
    """The GPU's system processor answers no more (Xid 119); the rank hangs or gets a CUDA error."""
    rank = rng.randrange(world.size)
    before, at = train(world, rng)
    call = rng.choice(("76 (GSP_RM_CONTROL) (0x20802a02 0x8)", "103 (GSP_RM_ALLOC) (0x80 0x38)", "10 (FREE) (0x0 0x0)"))
    text = f"Timeout after 6s of waiting for RPC response from GPU{world.local(rank)} GSP! Expected function {call}."
    causes = [_xid(world, rank, at + 6 * count, 119, text) for count in range(rng.randrange(1, 4))]
    return _xid_story(world, rng, rank, before, causes, _UNKNOWN, {"gpu.xid-119-120"})


def burst(world: World, rng: random.Random) -> Story:
    """One GPU fails with a Xid that others of the same GPU follow within seconds; the first is the cause."""
    rank = rng.randrange(world.size)
    before, at = train(world, rng)
    place = f"at physical partition {rng.randrange(10)}, subpartition {rng.randrange(4)}."
    call = "76 (GSP_RM_CONTROL) (0x20802a02 0x8)"
    waited = f"Timeout after 45s of waiting for RPC response from GPU{world.local(rank)} GSP!"
    ecc = "gpu.ecc-uncorrectable"
    first, text, error, roots, after = rng.choice((
        (48, f"An uncorrectable double bit error (DBE) has been detected on GPU in the framebuffer {place}", _ECC,
         {"gpu.xid-48", ecc}, (63, 94, 45, 43, 154)),
        (79, "GPU has fallen off the bus.", _UNKNOWN, {"gpu.fallen-off-bus"}, (154, 45, 43)),
        (119, f"{waited} Expected function {call}.", _UNKNOWN, {"gpu.xid-119-120"}, (154, 45)),
        (95, f"Uncontained: LTC TAG (0x2,0x{rng.randrange(4):x}). RST: Yes, D-RST: No", _ECC,
         {"gpu.xid-95", ecc}, (45, 43, 154)),
        (74, f"NVLink: fatal error detected on link {rng.randrange(12)}(0x10000, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)",
         _NVLINK, {"gpu.xid-74", "gpu.nvlink-uncorrectable"}, (45, 43)),
    ))  # fmt: skip
    followers = [number for number in after if rng.random() < 0.8]
    causes = [_xid(world, rank, at, first, text, has_process=first not in (74, 79))]
    causes += _followers(world, rng, rank, at, followers)
    return _xid_story(world, rng, rank, before, causes, error, roots, may_hang=first in (79, 119))


def hangs_for_all(world: World, rng: random.Random) -> Story:
    """A GPU does no more work while the process on it lives on: all ranks, its own too, time out in one collective."""
    rank = rng.randrange(world.size)
    before, at = train(world, rng)
    before = before + init_lines(world, rng, before)
    call = rng.choice(("76 (GSP_RM_CONTROL) (0x20802a02 0x8)", "103 (GSP_RM_ALLOC) (0x80 0x38)"))
    waited = f"Timeout after 6s of waiting for RPC response from GPU{world.local(rank)} GSP!"
    number, text, root = rng.choice((
        (79, "GPU has fallen off the bus.", "gpu.fallen-off-bus"),
        (119, f"{waited} Expected function {call}.", "gpu.xid-119-120"),
        (74, f"NVLink: fatal error detected on link {rng.randrange(12)}(0x10000, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)",
         "gpu.xid-74"),
    ))  # fmt: skip
    causes = [_xid(world, rank, at, number, text, has_process=False)]
    lines, exits = time_out(world, rng, [], at)
    truth = Truth(KNOWN, frozenset({root}), frozenset({rank}), frozenset({world.node(rank)}))
    return Story((*before, *causes, *lines), truth, tuple(exits))


def _followers(world: World, rng: random.Random, rank: int, at: float, numbers: list[int]) -> list[Line]:
    """Return Xids that only follow from an earlier one; those of channels come several times."""
    reset = rng.choice(("0x1 (GPU Reset Required)", "0x2 (Node Reboot Required)", "0x4 (Drain and Reset)"))
    texts = {
        63: "Row Remapper: New row marked for remapping, reset gpu to activate.",
        94: "Contained: SM (0x1). RST: No, D-RST: No",
    }
    lines = []
    for number in numbers:
        for _ in range(rng.randrange(1, 5) if number in (43, 45) else 1):
            at += rng.uniform(0.01, 0.9)
            if number == 154:
                text = f"154, GPU recovery action changed from 0x0 (None) to {reset}"
                lines.append(_kernel(world, rank, at, f"NVRM: Xid (PCI:{world.bus(rank)}): {text}", is_cause=False))
            else:
                text = texts.get(number, f"Ch {rng.randrange(8, 64):08x}")
                lines.append(_xid(world, rank, at, number, text, is_cause=False))
    return lines


def initialization_error(world: World, rng: random.Random) -> Story:
    """CUDA cannot be initialised on one rank: its GPU is busy, broken, or was used before a fork."""
    rank = rng.randrange(world.size)
    before: list[Line] = [record(world, other, 1 + other / 100, "loading configuration") for other in world.ranks]
    at = rng.uniform(4, 9)
    form = rng.randrange(3)
    if form == 0:
        causes = [cuda_exception(world, rank, at, "initialization error", "cudaErrorInitializationError", tagged=False)]
    elif form == 1:
        busy = "CUDA-capable device(s) is/are busy or unavailable"
        causes = [cuda_exception(world, rank, at, busy, "cudaErrorDevicesUnavailable", tagged=False)]
    else:
        last = "Cuda failure 'initialization error'"
        number = "init.cc:1340" if version(world.nccl) < (2, 22) else "init.cc:428"
        error = traceback(world, rank, at + 0.1, nccl_error(world, "cuda", last), is_cause=True)
        causes = [nccl_warn(world, rank, at, number, last, is_cause=True), error]
    exits = [Exit(rank, 1, at + 0.5)]
    return tell_crash(world, rng, before, exits, causes, {"cuda.initialization-error"}, share=0.3)


def occupied_by_other_process(world: World, rng: random.Random) -> Story:
    """A process of somebody else holds the memory of one GPU; the rank cannot allocate at its start."""
    rank = rng.randrange(world.size)
    before: list[Line] = [record(world, other, 1 + other / 100, "building model") for other in world.ranks]
    at, roots = rng.uniform(6, 15), {"cuda.out-of-memory-at-start"}
    if rng.random() < 0.5:
        cause = cuda_exception(world, rank, at, "out of memory", "cudaErrorMemoryAllocation", tagged=rng.random() < 0.5)
    else:
        roots |= {"cuda.out-of-memory"}
        name = "torch.OutOfMemoryError" if version(world.torch) >= (2, 5) else "torch.cuda.OutOfMemoryError"
        device, capacity = world.local(rank), "capacity" if version(world.torch) >= (2, 2) else "capacty"
        other, own, free = rng.randrange(60, 72), rng.randrange(310, 900), rng.randrange(9, 99)
        error = (
            f"{name}: CUDA out of memory. Tried to allocate {rng.choice((128, 250, 512))}.00 MiB. "
            f"GPU {device} has a total {capacity} of 79.11 GiB of which "
            f"{free}.06 MiB is free. Process {rng.randrange(4_000_000, 4_190_000)} has {other}.35 GiB memory in use. "
            f"Process {world.pids[rank]} has {78 - other}.62 GiB memory in use. "
            f"Of the allocated memory {77 - other}.90 GiB is allocated by PyTorch, "
            f"and {own // 100}.12 MiB is reserved by PyTorch but unallocated."
        )
        cause = traceback(world, rank, at, error, is_cause=True)
    return tell_crash(world, rng, before, [Exit(rank, 1, at + 0.5)], [cause], roots, share=0.5)


def _xid_story(
    world: World, rng: random.Random, rank: int, before: list[Line], causes: list[Line], error: tuple[str, str],
    roots: set[str], *, may_hang: bool = True,
) -> Story:  # fmt: skip
    """Return the story of a Xid: the rank gets the CUDA error, or hangs and only pid or PCI address name it."""
    before = before + (init_lines(world, rng, before) if rng.random() < 0.4 else [])
    at = max(line.at for line in causes)
    if not may_hang or rng.random() < 0.6:
        line, end = device_error(world, rng, rank, at + rng.uniform(0.1, 1.5), *error)
        return tell_crash(world, rng, before, [end], [*causes, line], roots)
    before = before + init_lines(world, rng, before)
    lines, exits = time_out(world, rng, [rank], at)
    truth = Truth(KNOWN, frozenset(roots), frozenset({rank}), frozenset({world.node(rank)}))
    return Story((*before, *causes, *lines), truth, tuple(exits))


def _xid(
    world: World, rank: int, at: float, number: int, text: str, *, has_process: bool = True,
    is_cause: bool = True,
) -> Line:  # fmt: skip
    process = f"pid={kernel_pid(world, rank)}, name=python3" if has_process else "pid='<unknown>', name=<unknown>"
    return _kernel(world, rank, at, f"NVRM: Xid (PCI:{world.bus(rank)}): {number}, {process}, {text}", is_cause)


def _xid_45(world: World, rng: random.Random, rank: int, at: float) -> Line:
    return _xid(world, rank, at, 45, f"Ch {rng.randrange(8, 64):08x}", is_cause=False)


def _kernel(world: World, rank: int, at: float, text: str, is_cause: bool = True) -> Line:
    return kernel(world, world.node(rank), at, text, is_cause=is_cause, says_host=True)


FAULTS = (
    Fault("xid-79-fallen-off-bus", fallen_off_bus, ("nccl",)),
    Fault("xid-48-double-bit-error", double_bit_error, ("nccl",)),
    Fault("xid-94-95-memory-error", contained_memory_error, ("nccl",)),
    Fault("xid-74-nvlink", nvlink_error, ("nccl",), least_per_node=2),
    Fault("xid-119-gsp-timeout", gsp_timeout, ("nccl",)),
    Fault("xid-burst", burst, ("nccl",)),
    Fault("gpu-hangs-for-all", hangs_for_all, ("nccl",)),
    Fault("cuda-initialization-error", initialization_error, ("nccl",)),
    Fault("gpu-occupied", occupied_by_other_process, ("nccl",)),
)
