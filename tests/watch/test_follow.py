"""Growing files are scanned like complete files."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from triage import evidence, pipeline, sources
from triage.base.options import Options
from triage.evidence import extraction
from triage.model import Diagnosis, Source
from triage.model.diagnosis import Stats
from triage.pipeline import earlier_readings, file_states
from triage.pipeline.intake import Intake, writer_key
from triage.scan import interface, known_spans, lines, one_span, run, spans
from triage.scan.edges import HeldEdges
from triage.scan.interface import ScanResult
from triage.scan.run import Scan
from triage.watch import follow
from triage.watch.follow import Follower

LINES = (
    b"step 12 loss 2.31 lr 1e-4",
    b"[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
    b"Traceback (most recent call last):",
    b"RuntimeError: NCCL error in: ProcessGroupNCCL.cpp:1331, unhandled system error",
    b"\xff\x00 bytes that are no text",
    b"x" * 70_000 + b" CUDA error: an illegal memory access was encountered",
    b"",
)


@pytest.fixture(scope="module")
def follower(tmp_path_factory: pytest.TempPathFactory) -> Follower:
    return Follower([str(tmp_path_factory.mktemp("none"))])


def follow_directory(follower: Follower, directory: Path) -> Follower:
    """Return the follower, set to another directory; compiling a new one takes long."""
    follower.paths, follower.files = [str(directory)], {}
    return follower


def scan_whole(directory: Path) -> dict[str, ScanResult]:
    """Return the scan results that `triage ingest` would get."""
    discovered = sources.discover([str(directory)])
    intake = Intake(discovered.files, [str(directory)])
    forms, _ = (
        evidence.scan_literals(Follower([str(directory)]).catalog.literals)
        if not scan_whole.forms
        else (scan_whole.forms, ())
    )  # type: ignore[attr-defined]
    scan_whole.forms = forms  # type: ignore[attr-defined]
    generic = frozenset(range(len(evidence.TRIGGERS)))
    scan = Scan(
        forms,
        writer_key,
        workers=1,
        chunk_bytes=Options().chunk_bytes,
        generic=generic,
        on_progress=lambda _: None,
        on_failure=intake.warn_unreadable,
    )
    # A text that grows has no digest.
    return {
        source.name: replace(scanned, digest="", edges=HeldEdges(scanned.head, scanned.tail))
        for source, scanned in scan.run(intake.containers())[0]
    }


scan_whole.forms = ()  # type: ignore[attr-defined]


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(LINES), st.integers(0, 3)), min_size=1, max_size=60))
def test_scanning_pieces_equals_scanning_the_whole_file(
    follower: Follower, tmp_path_factory: pytest.TempPathFactory, lines: list[tuple[bytes, int]]
) -> None:
    """Hits, first and last bytes do not depend on where the writes were cut."""
    directory = tmp_path_factory.mktemp("job")
    path = directory / "train.log"
    path.touch()
    follow = follow_directory(follower, directory)
    now = 0.0
    for line, looks in lines:
        data = line + b"\n"
        cut = len(data) * looks // 4
        for piece in (data[:cut], data[cut:]):
            with path.open("ab") as file:
                file.write(piece)
            if looks:
                now += 0.1
                follow.find_files(now)
                follow.read_new_lines(now)
    follow.find_files(now)
    while follow.read_new_lines(now := now + 0.1).is_behind:
        pass
    assert {source.name: scanned for source, scanned in follow.scan_results().scanned} == scan_whole(directory)


def test_a_last_line_without_newline_is_scanned_after_a_pause(follower: Follower, tmp_path: Path) -> None:
    """A killed process may leave an unfinished line; it counts after a second without growth."""
    (tmp_path / "a.log").write_bytes(b"step 1\nRuntimeError: CUDA error: device-side assert triggered")
    follow = follow_directory(follower, tmp_path)
    follow.find_files(0.0)
    assert follow.read_new_lines(0.1).hits == 0
    assert follow.read_new_lines(2.0).hits == 1


def test_rotation_loses_and_repeats_no_line(follower: Follower, tmp_path: Path) -> None:
    """The old file is followed under its new name, the new file from its start."""
    log, line = tmp_path / "train.log", b"RuntimeError: CUDA error: device-side assert triggered\n"
    log.write_bytes(line)
    follow = follow_directory(follower, tmp_path)
    follow.find_files(0.0)
    assert follow.read_new_lines(0.0).hits == 1
    os.rename(log, tmp_path / "train.log.1")
    with (tmp_path / "train.log.1").open("ab") as old:
        old.write(line)
    log.write_bytes(line * 3)
    follow.find_files(1.0)
    assert follow.read_new_lines(1.0).hits == 4
    assert follow.read_new_lines(2.0).hits == 0
    assert sorted((Path(file.name).name, file.position) for file in follow.files.values()) == [
        ("train.log", 3 * len(line)),
        ("train.log.1", 2 * len(line)),
    ]


def test_a_truncated_file_is_read_again_from_its_start(follower: Follower, tmp_path: Path) -> None:
    """Lines written after a truncation are scanned from the first byte."""
    log, line = tmp_path / "train.log", b"RuntimeError: CUDA error: device-side assert triggered\n"
    log.write_bytes(line * 2)
    follow = follow_directory(follower, tmp_path)
    follow.find_files(0.0)
    follow.read_new_lines(0.0)
    log.write_bytes(line)
    assert follow.read_new_lines(1.0).hits == -1 or follow.scan_results().scanned[0][1].size == len(line)
    assert len(follow.scan_results().scanned[0][1].hits) == 1


def test_a_missing_directory_is_no_error(follower: Follower, tmp_path: Path) -> None:
    """New files are found later, and missing files are forgotten."""
    follow = follow_directory(follower, tmp_path / "later")
    assert not follow.find_files(0.0)
    (tmp_path / "later").mkdir()
    (tmp_path / "later" / "a.log").write_text("step 1\n")
    assert follow.find_files(1.0)
    (tmp_path / "later" / "a.log").unlink()
    (tmp_path / "later" / "b.log").write_text("step 1\n")
    follow.find_files(2.0)
    follow.find_files(2000.0)
    assert [Path(file.name).name for file in follow.files.values()] == ["b.log"]


@pytest.mark.parametrize("more", [b"", LINES[3] + b"\n", LINES[0] * 20 + b"\n" + LINES[1] + b"\n"])
def test_a_follower_starts_behind_what_an_earlier_ingest_has_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: bytes
) -> None:
    """Complete spans are not scanned again; hits and what counts as new are those of a follower that reads all."""
    for module in (interface, known_spans, lines, one_span, run, spans, earlier_readings, file_states, follow):
        monkeypatch.setattr(module, "SPAN", 4096)
    monkeypatch.setattr(earlier_readings, "MIN_BYTES", 0)
    monkeypatch.setattr(earlier_readings, "now_ns", lambda: time.time_ns() + 10**10)  # the file was written long ago
    monkeypatch.setattr(earlier_readings, "choose_directory", lambda: tmp_path / "cache")
    job = tmp_path / "job"
    job.mkdir()
    text = (LINES[0] + b"\n") * 100 + LINES[1] + b"\n" + (LINES[0] + b"\n") * 100
    (job / "train.log").write_bytes(text + b"#" * (2 * 4096 - len(text) - 1) + b"\n")
    pipeline.ingest([str(job)], Options(reuse=True))
    with (job / "train.log").open("ab") as file:
        file.write(more)
    results: list[object] = []
    starts: list[list[int]] = []
    for reuse in (True, False):
        new = Follower([str(job)], Options(reuse=reuse))
        assert new.find_files(0.0)
        starts.append([file.position for file in new.files.values()])
        added = new.read_new_lines(1.0)
        assert not new.read_new_lines(1.5).files
        [(_, scan)] = new.scan_results().scanned
        results.append((scan, added.hits, added.new_kinds, len(added.files)))
    assert results[0] == results[1]
    assert starts == [[2 * 4096], [0]]


def test_a_diagnosis_extracts_only_files_that_changed_since_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files that grew, were truncated or are new; the diagnosis is that of a follower that never diagnosed before."""
    extracted: list[str] = []
    extract_source = extraction.extract_source

    def record(source: Source, *arguments: object, **named: object) -> object:
        extracted.append(os.path.basename(source.name))
        return extract_source(source, *arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(extraction, "extract_source", record)
    for name in "abc":
        (tmp_path / f"{name}.log").write_bytes(b"\n".join(LINES[:4]) + b"\n")
    lasting = Follower([str(tmp_path)])

    def diagnose(follower: Follower) -> Diagnosis:
        follower.find_files(0.0)
        follower.read_new_lines(1.0)
        diagnosis = pipeline.ingest_growing(follower.paths, follower.scan_results(), follower.options)
        return replace(diagnosis, stats=Stats())

    def grow() -> None:
        with (tmp_path / "b.log").open("ab") as file:
            file.write(LINES[1] + b"\n")

    def cut() -> None:
        (tmp_path / "c.log").write_bytes(LINES[2] + b"\n" + LINES[3] + b"\n")

    def add() -> None:
        (tmp_path / "d.log").write_bytes(LINES[1] + b"\n")

    for change, expected in [(list, "abc"), (list, ""), (grow, "b"), (cut, "c"), (add, "d"), (list, "")]:
        change()
        extracted.clear()
        diagnosis = diagnose(lasting)
        assert extracted == [f"{name}.log" for name in expected]
        assert diagnosis == diagnose(Follower([str(tmp_path)]))
