"""Why a process got its signal, from the notes and the memory of its core."""

from __future__ import annotations

import signal

import pytest

from tests.artifacts.cores.factories import CODE, READ_ONLY, STACK, WRITABLE, CoreFile, CoreThread, StoredRange
from triage.artifacts.cores.signal_meaning import code_name, explain_signal, signal_name

DATA, SHARED = 0x7F00_0000_0000, 0x7F11_0000_0000
RANGES = (StoredRange(DATA, flags=READ_ONLY), StoredRange(SHARED), StoredRange(STACK, bytes(1 << 19)))
FILES = ((DATA, DATA + 4096, 0, "/data/tokens.bin"), (SHARED, SHARED + 4096, 0, "/dev/shm/torch_7_0"))
CENTRE = STACK + (1 << 18)


def crash(number: int, code: int | None, address: int = 0, pc: int = 0x401136, sender: int = 0) -> CoreFile:
    """Return the core of a process with a file, shared memory and a stack of half a megabyte."""
    return CoreFile(number, code, address, sender, (CoreThread(pc=pc, sp=CENTRE),), RANGES, FILES)


@pytest.mark.parametrize(
    ("core", "code", "sentence"),
    [
        (crash(15, 0, sender=4711), "sent", "another process (pid 4711) sent the signal"),
        (crash(11, None), "", ""),
        (crash(11, 1, 0x123456789000, pc=0x123456789000), "bad-jump", "jumped to 0x123456789000"),
        (crash(11, 2, DATA + 8), "protected", "is in read-only memory (mapped from /data/tokens.bin)"),
        (crash(11, 2, CENTRE + 64), "protected", "is in protected memory"),
        (crash(11, 1, 0x5555_0000_0000), "unmapped", "nothing is mapped at 0x555500000000"),
        (crash(7, 4, DATA), "memory-error", "uncorrectable memory error"),
        (crash(7, 1, DATA + 1), "misaligned", "not aligned"),
        (crash(7, 2, SHARED + 8), "shm-full", "is in shared memory (mapped from /dev/shm/torch_7_0) that is full"),
        (crash(7, 2, DATA + 8), "truncated-mapping", "has no storage (mapped from /data/tokens.bin)"),
        (crash(8, 3), "arithmetic", "an arithmetic fault"),
    ],
    ids=lambda value: value if isinstance(value, str) and " " not in value else "",
)
def test_meaning_of_a_signal(core: CoreFile, code: str, sentence: str) -> None:
    """Signal, code and address give the meaning, with the file that is mapped at the address."""
    meaning = explain_signal(core.parsed())
    assert meaning.code == code
    assert sentence in meaning.sentence


def test_writable_memory_near_the_stack_pointer_is_no_overflow() -> None:
    """Only an access that hits no writable memory, at the low end of the stack, means that the stack is full."""
    at_the_end = CoreThread(sp=STACK + 64)
    full = CoreFile(11, 1, STACK - 8, threads=[at_the_end], ranges=[StoredRange(STACK, bytes(1 << 19))])
    guarded = CoreFile(11, 2, STACK - 8, threads=[at_the_end], ranges=[StoredRange(STACK - 4096), *full.ranges])
    assert explain_signal(full.parsed()).code == "stack-overflow"
    assert explain_signal(guarded.parsed()).code == "protected"


def test_names_of_signals_and_codes() -> None:
    """Unknown numbers stay numbers, and a core without a signal or code has no name for it."""
    assert [signal_name(number) for number in (signal.SIGSEGV, 250, 0)] == ["SIGSEGV", "signal 250", ""]
    names = [code_name(*pair) for pair in ((11, 1), (11, None), (15, 0), (11, 77))]
    assert names == ["SEGV_MAPERR", "", "SI_USER", "si_code 77"]


def test_flags_of_a_range() -> None:
    """The flags of a segment say whether it holds code and may be written."""
    ranges = [StoredRange(4096 * number, flags=flags) for number, flags in enumerate((READ_ONLY, CODE, WRITABLE), 1)]
    segments = CoreFile(ranges=ranges).parsed().segments
    assert [(each.is_executable, each.is_writable) for each in segments] == [
        (False, False),
        (True, False),
        (False, True),
    ]
