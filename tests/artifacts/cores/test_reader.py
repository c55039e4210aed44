"""Cores of a job: copies of compressed ones in memory, warnings, and the lines of the evidence."""

from __future__ import annotations

import io
import os
import random
import tempfile
from pathlib import Path

import pytest

from tests.artifacts.cores.factories import STACK, CoreFile, CoreThread, StoredRange
from triage.artifacts.cores import reader
from triage.artifacts.cores.reader import CoreReader, SpooledArtifact, format_lines, spool_core
from triage.artifacts.cores.report import read_core
from triage.artifacts.interface import Artifact
from triage.model.evidence import Source

NOISE = random.Random(7).randbytes(1 << 20)
MIB = 1 << 20


def source(path: str) -> Source:
    """Return the source of a core file."""
    return Source("cores/core.77", "core", None, path)


def test_system_without_anonymous_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without memfd_create a core is copied into a temporary file that has no name any more."""
    monkeypatch.delattr(os, "memfd_create", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    core, first = spool_core(io.BytesIO(CoreFile().content()))
    assert list(tmp_path.iterdir()) == []
    assert first == CoreFile().content()[:4096]
    assert read_core(core.path, "core", use_gdb=False).stacks.signal == "SIGSEGV"


def test_copy_of_a_large_core_is_limited() -> None:
    """Of a core in which stacks alone exceed the limit, no more than a few times the limit is copied."""
    ranges = [StoredRange(STACK + number * MIB, NOISE) for number in range(6)]
    threads = [CoreThread(70 + number, sp=STACK + number * MIB) for number in range(6)]
    threads += [CoreThread(80 + number, sp=STACK + number * MIB + MIB // 2) for number in range(6)]
    content = CoreFile(threads=threads, ranges=ranges).content()
    core, _ = spool_core(io.BytesIO(content), cap=1 << 16)
    assert core.is_partial
    assert core.size < len(content)
    assert os.stat(core.path).st_blocks * 512 < 3 * MIB
    assert len(read_core(core.path, "core", use_gdb=False).stacks.threads) == 12


def test_stream_that_is_no_core_is_not_copied_whole() -> None:
    """Of a stream that is named like a core and is none, only the limit is copied, and a warning says what it is."""
    core, first = spool_core(io.BytesIO(NOISE * 3), cap=MIB)
    assert core.is_partial
    assert core.size == 3 * MIB
    assert os.stat(core.path).st_blocks * 512 <= MIB
    result = CoreReader().read([SpooledArtifact(source(core.path), first, core=core)])
    assert [(warning.code, warning.message) for warning in result.warnings] == [
        ("damaged-artifact", "it is not an ELF file")
    ]


def test_partial_copy_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    """A core of which only the stacks were copied gives its evidence, and a warning that says so."""
    monkeypatch.setattr(reader, "BUDGET", 0.0)
    ranges = [StoredRange(STACK), StoredRange(STACK + MIB, NOISE * 2)]
    core, first = spool_core(io.BytesIO(CoreFile(ranges=ranges).content()), cap=4096)
    result = CoreReader().read([SpooledArtifact(source(core.path), first, core=core)])
    assert [fact.fields["signal"] for fact in result.evidence] == ["SIGSEGV"]
    assert [warning.message for warning in result.warnings if warning.code == "core-thinned"] == [
        "only its stacks were read, because it is large and compressed; decompress it to read it completely"
    ]


def test_unreadable_core_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A core that cannot be opened gives a warning with the reason, and the others are read."""
    monkeypatch.setattr(reader, "BUDGET", 0.0)
    (tmp_path / "core").write_bytes(CoreFile().content())
    result = CoreReader().read([Artifact(source(str(tmp_path / name)), b"") for name in ("gone", "core")])
    assert len(result.evidence) == 1
    assert ("unreadable", "the core file cannot be read: No such file or directory") in [
        (warning.code, warning.message) for warning in result.warnings
    ]


def test_core_of_a_live_process(tmp_path: Path) -> None:
    """The core that gcore takes of a live process is no crash: its one line says so."""
    (tmp_path / "core").write_bytes(CoreFile(signal=0, code=None).content())
    report = read_core(str(tmp_path / "core"), "core", use_gdb=False)
    assert format_lines(report) == ["The core of a process that did not crash (pid 77): ./train"]
