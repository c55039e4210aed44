"""A real core of aarch64, written by Linux 6.12 on an emulated Cortex-A72; cores/aarch64-program.c is what crashed in
it.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import zstandard

import triage
from triage.artifacts.cores import gdb
from triage.artifacts.cores.files import Where
from triage.artifacts.cores.report import read

CORES = Path(__file__).parent / "cores"
PROGRAM = "/opt/app/crash"
READ_HEADER, WORK = 0x838, 0x840  # as `nm` says


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the core, and a root directory with the program."""
    directory = tmp_path_factory.mktemp("aarch64")
    program = directory / "root" / PROGRAM.lstrip("/")
    program.parent.mkdir(parents=True)
    for name, target in (("core", directory / "core"), ("program", program)):
        target.write_bytes(zstandard.decompress((CORES / f"aarch64-{name}.zst").read_bytes(), max_output_size=1 << 24))
    return directory


def test_signal_address_and_offsets_without_the_program(place: Path) -> None:
    """The kernel's notes alone: signal, address, and every thread as module and offset with the build-id."""
    report = read(str(place / "core"), "core", Where(sysroot="/nonexistent"), use_gdb=False)
    assert (report.core.machine, report.stacks.signal, report.code, report.core.address) == (
        "aarch64",
        "SIGSEGV",
        "SEGV_MAPERR",
        8,
    )
    assert report.meaning.word == "small-offset"
    first, second = report.stacks.threads[0].frames[:2]
    assert (first.module, first.offset, second.module) == (PROGRAM, READ_HEADER, PROGRAM)
    assert second.offset is not None
    assert WORK <= second.offset < WORK + 0x20
    assert len(first.build_id) == 40
    assert [len(report.stacks.threads), report.stacks.threads[1].frames[0].module] == [2, "/lib/libc.so.6"]


def test_names_with_the_program(place: Path) -> None:
    """The program's own symbols; behind the link register the stack is scanned for places behind a `bl`."""
    report = read(str(place / "core"), "core", Where(sysroot=str(place / "root")), use_gdb=False)
    assert report.crash.frames == ("read_header", "work", "main")
    assert [frame.trust for frame in report.stacks.threads[0].frames[:3]] == ["context", "context", "scan"]


def test_gdb_of_this_machine_is_not_asked(place: Path) -> None:
    """gdb knows one machine; gdb-multiarch, where it is installed, knows them all and names the same crash."""
    report = read(str(place / "core"), "core", Where(sysroot=str(place / "root")))
    assert report.crash.frames[:2] == ("read_header", "work")
    if gdb.program() is not None and gdb.program("aarch64") is None:
        assert any("gdb-multiarch" in sentence for _, sentence in report.remarks)
    elif shutil.which("gdb-multiarch"):
        assert report.engine == "gdb"


def test_ingest_reads_it_compressed() -> None:
    """A compressed core alone is a diagnosis."""
    found = triage.ingest(CORES / "aarch64-core.zst")
    assert found.root_cause is not None
    assert found.root_cause.signature == "crash.segfault"
