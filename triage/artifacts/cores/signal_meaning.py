"""What the signal and its address mean: a code for programs and a sentence for people."""

from __future__ import annotations

import signal as signals
from typing import NamedTuple

from triage.artifacts.cores.model import Core, Segment

_SEGV = {1: "SEGV_MAPERR", 2: "SEGV_ACCERR", 3: "SEGV_BNDERR", 4: "SEGV_PKUERR", 9: "SEGV_MTESERR"}
_BUS = {1: "BUS_ADRALN", 2: "BUS_ADRERR", 3: "BUS_OBJERR", 4: "BUS_MCEERR_AR", 5: "BUS_MCEERR_AO"}
_FPE = {
    1: "FPE_INTDIV",
    2: "FPE_INTOVF",
    3: "FPE_FLTDIV",
    4: "FPE_FLTOVF",
    5: "FPE_FLTUND",
    6: "FPE_FLTRES",
    7: "FPE_FLTINV",
}
_ILL = {1: "ILL_ILLOPC", 2: "ILL_ILLOPN", 3: "ILL_ILLADR", 4: "ILL_ILLTRP", 5: "ILL_PRVOPC"}
_CODES = {11: _SEGV, 7: _BUS, 8: _FPE, 4: _ILL}
_ANY_SIGNAL = {0: "SI_USER", -1: "SI_QUEUE", -6: "SI_TKILL", 128: "SI_KERNEL"}
_NULL_RANGE = 1 << 16
_STACK_RANGE = 1 << 17


class Meaning(NamedTuple):
    """Why the process got its signal; `code` is null, small-offset, stack-overflow, … ("" where it is unknown)."""

    code: str
    sentence: str


_MEANINGS: dict[int, Meaning] = {
    signals.SIGILL: Meaning(
        "illegal-instruction",
        "the processor does not know the instruction: built for another processor, or a deliberate trap",
    ),
    signals.SIGABRT: Meaning("abort", "the process ended itself with abort()"),
}


def signal_name(number: int) -> str:
    """Return `SIGSEGV` for 11."""
    try:
        return signals.Signals(number).name
    except ValueError:
        return f"signal {number}" if number else ""


def code_name(number: int, code: int | None) -> str:
    """Return `SEGV_MAPERR` for (11, 1), "" without a code."""
    if code is None:
        return ""
    return _ANY_SIGNAL.get(code) or _CODES.get(number, {}).get(code, f"si_code {code}")


def explain_signal(core: Core) -> Meaning:
    """Return why the process got its signal, as far as the kernel's notes show it."""
    if core.code is not None and core.code <= 0 and core.sender and core.sender != core.pid:
        return Meaning("sent", f"another process (pid {core.sender}) sent the signal")
    if core.signal == signals.SIGSEGV:
        return _segv(core)
    if core.signal == signals.SIGBUS:
        return _bus(core)
    if core.signal == signals.SIGFPE:
        return (
            Meaning("division-by-zero", "an integer was divided by zero")
            if core.code == 1
            else Meaning("arithmetic", "an arithmetic fault")
        )
    return _MEANINGS.get(core.signal, Meaning("", ""))


def _segv(core: Core) -> Meaning:
    if core.code == 128:  # the processor reports no address here, so si_addr is 0 and means nothing
        return Meaning("non-canonical", "no address of this processor can have this value: a corrupted pointer")
    address = core.address
    if address is None:
        return Meaning("", "")
    thread = core.threads[0]
    if _is_below_stack(core, address):
        return Meaning("stack-overflow", f"{address:#x} is right below the thread's stack: the stack is full")
    if address == 0:
        return Meaning("null", "a NULL pointer was called" if thread.pc == 0 else "a NULL pointer was read or written")
    if address < _NULL_RANGE:
        return Meaning(
            "small-offset", f"{address:#x} is a small offset from NULL: a field or an element of a NULL pointer"
        )
    segment = core.segment_at(address)
    if thread.pc == address:
        return Meaning("bad-jump", f"the program jumped to {address:#x}, which holds no code")
    if segment is not None and core.code == 2:
        memory = "protected memory" if segment.is_writable else "read-only memory"
        return Meaning("protected", f"{address:#x} is in {memory}{_file(core, address)}")
    return Meaning(
        "unmapped", f"nothing is mapped at {address:#x}: a freed or wild pointer, or an index far out of bounds"
    )


def _is_below_stack(core: Core, address: int) -> bool:
    """Whether an access close to the stack pointer, at the low end of the stack, hits no writable memory."""
    sp = core.threads[0].sp
    if abs(address - sp) > _STACK_RANGE:
        return False
    if _is_writable(core.segment_at(address)):
        return False
    stack = core.segment_at(sp) if _is_writable(core.segment_at(sp)) else core.segment_at(address + _STACK_RANGE)
    return stack is not None and stack.is_writable and sp - stack.start < _STACK_RANGE


def _is_writable(segment: Segment | None) -> bool:
    return segment is not None and segment.is_writable


def _bus(core: Core) -> Meaning:
    address = core.address or 0
    if core.code in (4, 5):
        return Meaning("memory-error", "the hardware reported an uncorrectable memory error")
    if core.code == 1:
        return Meaning("misaligned", "the address is not aligned")
    where = _file(core, address)
    if "/dev/shm/" in where or "/memfd:" in where or "/SYSV" in where:
        return Meaning("shm-full", f"{address:#x} is in shared memory{where} that is full or became shorter")
    return Meaning(
        "truncated-mapping",
        f"{address:#x} has no storage{where}: the mapped file became shorter, or its file system is full",
    )


def _file(core: Core, address: int) -> str:
    mapping = core.mapping_at(address)
    return f" (mapped from {mapping.path})" if mapping is not None else ""
