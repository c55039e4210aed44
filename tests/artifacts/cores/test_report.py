"""The report of a core: which frames it prefers, and what it remarks."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from tests.artifacts.cores.factories import STACK, CoreBytes, CoreFile, CoreThread, StoredRange
from tests.artifacts.crash_factories import require_programs
from triage.artifacts.cores import elf
from triage.artifacts.cores.report import CoreReport, find_owners, read_core

LOCK = STACK + 0x100


def read(core: CoreFile, directory: Path, use_gdb: bool = False) -> CoreReport:
    """Return the report of a core."""
    (directory / "core").write_bytes(core.content())
    return read_core(str(directory / "core"), "core", use_gdb=use_gdb)


def test_stack_overflow_is_known_by_its_address(tmp_path: Path) -> None:
    """An address right below the stack is a stack overflow, even where no function fills the stack."""
    report = read(CoreFile(11, 1, STACK - 8, threads=[CoreThread(sp=STACK + 64)]), tmp_path)
    assert (report.meaning.code, report.crash.kind) == ("stack-overflow", "stack-overflow")
    assert report.crash.notes[0].why == "the faulting address is right below the stack"


def test_missing_gdb_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without gdb the frames are those of the notes, and a remark says what to install."""
    monkeypatch.setenv("PATH", str(tmp_path))
    report = read(CoreFile(), tmp_path, use_gdb=True)
    assert report.engine == "notes"
    assert "gdb is not installed" in dict(report.remarks)["gdb-missing"]


def test_core_that_names_no_program(tmp_path: Path) -> None:
    """The notes are shown where gdb names no function, and a remark says that the core does not name its program."""
    require_programs("gdb")
    report = read(CoreFile(), tmp_path, use_gdb=True)
    assert (report.engine, report.stacks.threads[0].frames[0].address) == ("notes", 0x401136)
    assert dict(report.remarks)["core-program"] == "the core does not name its program"
    assert ("gdb", "gdb lost the stack, so the frames of the notes are shown") in report.remarks


@pytest.mark.parametrize(
    ("state", "owner", "owners"),
    [(2, 78, {77: 78}), (0, 0, {}), (1, 78, {}), (2, 4711, {})],
    ids=["held", "released", "not contended", "holder ended"],
)
def test_owner_of_a_lock(state: int, owner: int, owners: dict[int, int]) -> None:
    """A thread waits for the holder of a lock only while the lock is held with waiters, by a thread of the process."""
    mutex = struct.pack("<iIi", state, 1, owner)
    file = CoreFile(
        threads=[CoreThread(77, lock=LOCK), CoreThread(78)],
        ranges=[StoredRange(STACK, bytes(0x100) + mutex.ljust(4096 - 0x100, b"\0"))],
    )
    core = file.parsed()
    assert find_owners(core, elf.Memory(CoreBytes(file.content()), core.segments)) == owners
