"""A real core of aarch64, written by Linux 6.12 on an emulated Cortex-A72 for the program cores/aarch64-program.c."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import zstandard

import triage
from triage.artifacts.cores import gdb
from triage.artifacts.cores.local_files import SearchPaths
from triage.artifacts.cores.report import read_core

CORES = Path(__file__).parent / "cores"
PROGRAM = "/opt/app/crash"
READ_HEADER, WORK = 0x838, 0x840  # from `nm`


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the core, and a root directory with the program."""
    root = tmp_path_factory.mktemp("aarch64")
    program = root / "root" / PROGRAM.lstrip("/")
    program.parent.mkdir(parents=True)
    for name, target in (("core", root / "core"), ("program", program)):
        target.write_bytes(zstandard.decompress((CORES / f"aarch64-{name}.zst").read_bytes(), max_output_size=1 << 24))
    return root


def test_signal_address_and_offsets_without_the_program(directory: Path) -> None:
    """The notes alone give signal, address, and every thread as module and offset with the build-id."""
    report = read_core(str(directory / "core"), "core", SearchPaths(sysroot="/nonexistent"), use_gdb=False)
    assert (report.core.machine, report.stacks.signal, report.code, report.core.address) == (
        "aarch64",
        "SIGSEGV",
        "SEGV_MAPERR",
        8,
    )
    assert report.meaning.code == "small-offset"
    first, second = report.stacks.threads[0].frames[:2]
    assert (first.module, first.offset, second.module) == (PROGRAM, READ_HEADER, PROGRAM)
    assert second.offset is not None
    assert WORK <= second.offset < WORK + 0x20
    assert len(first.build_id) == 40
    assert [len(report.stacks.threads), report.stacks.threads[1].frames[0].module] == [2, "/lib/libc.so.6"]


def test_names_with_the_program(directory: Path) -> None:
    """With the program, frames have names; after the link register they come from a scan for return addresses."""
    report = read_core(str(directory / "core"), "core", SearchPaths(sysroot=str(directory / "root")), use_gdb=False)
    assert report.crash.frames == ("read_header", "work", "main")
    assert [frame.trust for frame in report.stacks.threads[0].frames[:3]] == ["context", "context", "scan"]


def test_gdb_of_another_machine_is_not_used(directory: Path) -> None:
    """Only gdb-multiarch reads cores of another machine, and it names the same crash."""
    report = read_core(str(directory / "core"), "core", SearchPaths(sysroot=str(directory / "root")))
    assert report.crash.frames[:2] == ("read_header", "work")
    if gdb.find_gdb() is not None and gdb.find_gdb("aarch64") is None:
        assert any("gdb-multiarch" in sentence for _, sentence in report.remarks)
    elif shutil.which("gdb-multiarch"):
        assert report.engine == "gdb"


def test_ingest_reads_it_compressed() -> None:
    """A compressed core alone is a diagnosis."""
    diagnosis = triage.ingest(CORES / "aarch64-core.zst")
    assert diagnosis.root_cause is not None
    assert diagnosis.root_cause.signature == "crash.segfault"
