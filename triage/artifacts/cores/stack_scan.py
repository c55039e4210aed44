"""Stacks without a debugger: the registers of every thread, and a scan of the crashed thread's stack.

A scanned frame is a word on the stack that points into code, right after a call where the code is on this machine. Old
return addresses may still be on the stack, so scanned frames are marked (`trust` scan) and an unwinder's are better.
"""

from __future__ import annotations

import struct
from bisect import bisect_right

from triage.artifacts.cores.elf import Memory
from triage.artifacts.cores.local_files import LocalFiles
from triage.artifacts.cores.model import Core, Module, Registers
from triage.stacks.model import Frame, Thread, Trust
from triage.stacks.names import demangle

_SCANNED_BYTES = 1 << 15
_MAX_FRAMES = 48
_MAX_OVERFLOW = 1 << 17
_OUTERMOST = frozenset(
    ("main", "start_thread", "_start", "clone", "clone3", "__libc_start_main", "__libc_start_call_main")
)


class StackScanner:
    """Turns the registers and stacks of a core into frames."""

    def __init__(self, core: Core, memory: Memory, files: LocalFiles) -> None:
        self.core = core
        self.memory = memory
        self.files = files
        self._starts = [module.start for module in core.modules]

    def threads(self) -> tuple[Thread, ...]:
        """Return all threads, the crashed one first and with its scanned stack."""
        return tuple(self._thread(registers, first=index == 0) for index, registers in enumerate(self.core.threads))

    def _thread(self, registers: Registers, first: bool) -> Thread:
        frames = [self.frame(registers.pc, "context")]
        if registers.link and self._module(registers.link):
            frames.append(self.frame(registers.link - 1, "context"))
        if first and self.core.signal:
            frames += self._scan(registers.sp)
        return Thread(
            tuple(frames), id="" if not first else "1", tid=registers.tid, crashed=first and bool(self.core.signal)
        )

    def frame(self, address: int, trust: Trust) -> Frame:
        """Return the frame at an address: the function where the file is here, else library and offset."""
        module = self._module(address)
        if module is None:
            return Frame(address=address, trust=trust)
        offset = address - module.bias
        symbols = self.files.symbols(module)
        symbol = symbols.at(offset) if symbols is not None else None
        return Frame(
            function=demangle(symbol[0]) if symbol else "",
            module=module.path,
            offset=offset,
            address=address,
            plus=symbol[1] if symbol else None,
            build_id=module.build_id,
            trust=trust,
        )

    def _module(self, address: int) -> Module | None:
        index = bisect_right(self._starts, address) - 1
        module = self.core.modules[index] if index >= 0 else None
        return module if module is not None and address < module.end else None

    def _scan(self, sp: int) -> list[Frame]:
        """The frames of words on the stack that are return addresses."""
        data = self.memory.read(sp & ~7, _SCANNED_BYTES)
        above = self.memory.segment_above(sp)
        if not data and above is not None and above.start - sp < _MAX_OVERFLOW:  # the stack is full, sp is below it
            data = self.memory.read(above.start, _SCANNED_BYTES)
        frames: list[Frame] = []
        for (address,) in struct.iter_unpack("<Q", data[: len(data) // 8 * 8]):
            if address < 4096 or not self._is_return(address):
                continue
            frame = self.frame(address - 1, "scan")
            frames.append(frame)
            if len(frames) >= _MAX_FRAMES or frame.function in _OUTERMOST:
                break
        return frames

    def _is_return(self, address: int) -> bool:
        module = self._module(address)
        segment = self.core.segment_at(address) if module is not None else None
        if module is None or segment is None or not segment.is_executable:
            return False
        symbols = self.files.symbols(module)
        if symbols is None:
            return True
        code = symbols.code_before(address - module.bias, 7)
        return not code or (_arm_call(code) if self.core.machine == "aarch64" else _x86_call(code))


def _x86_call(code: bytes) -> bool:
    """Whether the code ends with call rel32, or with a call through a register or memory (ff /2)."""
    if code[-5] == 0xE8:
        return True
    return any(code[-length] == 0xFF and code[-length + 1] >> 3 & 7 == 2 for length in (2, 3, 4, 6, 7))


def _arm_call(code: bytes) -> bool:
    """Whether the code ends with bl or blr."""
    instruction: int = struct.unpack("<I", code[-4:])[0]
    return instruction >> 26 == 0x25 or instruction & 0xFFFFFC1F == 0xD63F0000


def read_abort_message(core: Core, memory: Memory, files: LocalFiles) -> str:
    """Return the message of glibc before it aborted: `__abort_msg` of libc points to a length and the text."""
    for module in core.modules:
        if not module.path.rsplit("/", 1)[-1].startswith(("libc.so", "libc-2")):
            continue
        symbols = files.symbols(module)
        place = symbols.objects.get("__abort_msg") if symbols is not None else None
        pointer = memory.read(module.bias + place, 8) if place is not None else b""
        if len(pointer) == 8 and any(pointer):
            return memory.string(int.from_bytes(pointer, "little") + 4, 1024).strip()
    return ""
