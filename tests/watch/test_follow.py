"""Files that grow are scanned as if they had been there whole."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triage import evidence, sources
from triage.base.options import Options
from triage.intake import Intake, writer_key
from triage.scan.interface import Scanned
from triage.scan.run import Scan
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


def fresh(follower: Follower, directory: Path) -> Follower:
    """The same catalog and gate for another directory; compiling them takes longest."""
    follower.paths, follower.files = [str(directory)], {}
    return follower


def whole(directory: Path) -> dict[str, Scanned]:
    """What the scan of `triage ingest` says."""
    found = sources.discover([str(directory)])
    intake = Intake(found.files, [str(directory)])
    forms, _ = evidence.sought(Follower([str(directory)]).catalog.literals) if not whole.forms else (whole.forms, ())  # type: ignore[attr-defined]
    whole.forms = forms  # type: ignore[attr-defined]
    generic = frozenset(range(len(evidence.TRIGGERS)))
    scan = Scan(
        forms,
        writer_key,
        workers=1,
        chunk_bytes=Options().chunk_bytes,
        generic=generic,
        advance=lambda _: None,
        failed=intake.failed,
    )
    return {source.name: scanned for source, scanned in scan.run(intake.containers())[0]}


whole.forms = ()  # type: ignore[attr-defined]


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(LINES), st.integers(0, 3)), min_size=1, max_size=60))
def test_pieces_come_to_the_same_as_the_whole(
    follower: Follower, tmp_path_factory: pytest.TempPathFactory, lines: list[tuple[bytes, int]]
) -> None:
    """Whatever was written between two looks, and wherever it was cut, hits and edges are those of one scan of all."""
    directory = tmp_path_factory.mktemp("job")
    path = directory / "train.log"
    path.touch()
    follow = fresh(follower, directory)
    now = 0.0
    for line, looks in lines:
        data = line + b"\n"
        cut = len(data) * looks // 4
        for piece in (data[:cut], data[cut:]):
            with path.open("ab") as file:
                file.write(piece)
            if looks:
                now += 0.1
                follow.find(now)
                follow.grow(now)
    follow.find(now)
    while follow.grow(now := now + 0.1).behind:
        pass
    assert {source.name: scanned for source, scanned in follow.seen().scanned} == whole(directory)


def test_a_last_line_without_its_end_is_read_when_nothing_follows(follower: Follower, tmp_path: Path) -> None:
    """A process killed amid a line leaves one; it counts after a second of rest."""
    (tmp_path / "a.log").write_bytes(b"step 1\nRuntimeError: CUDA error: device-side assert triggered")
    follow = fresh(follower, tmp_path)
    follow.find(0.0)
    assert follow.grow(0.1).hits == 0
    assert follow.grow(2.0).hits == 1


def test_a_rotated_file_is_followed_under_its_new_name_and_the_new_one_anew(follower: Follower, tmp_path: Path) -> None:
    """Nothing of either is lost or read twice."""
    log, line = tmp_path / "train.log", b"RuntimeError: CUDA error: device-side assert triggered\n"
    log.write_bytes(line)
    follow = fresh(follower, tmp_path)
    follow.find(0.0)
    assert follow.grow(0.0).hits == 1
    os.rename(log, tmp_path / "train.log.1")
    with (tmp_path / "train.log.1").open("ab") as old:
        old.write(line)
    log.write_bytes(line * 3)
    follow.find(1.0)
    assert follow.grow(1.0).hits == 4
    assert follow.grow(2.0).hits == 0
    assert sorted((Path(file.name).name, file.place) for file in follow.files.values()) == [
        ("train.log", 3 * len(line)),
        ("train.log.1", 2 * len(line)),
    ]


def test_a_file_that_was_emptied_starts_anew(follower: Follower, tmp_path: Path) -> None:
    """After a truncation what is written then is read, from the first byte."""
    log, line = tmp_path / "train.log", b"RuntimeError: CUDA error: device-side assert triggered\n"
    log.write_bytes(line * 2)
    follow = fresh(follower, tmp_path)
    follow.find(0.0)
    follow.grow(0.0)
    log.write_bytes(line)
    assert follow.grow(1.0).hits == -1 or follow.seen().scanned[0][1].size == len(line)
    assert len(follow.seen().scanned[0][1].hits) == 1


def test_a_directory_may_be_empty_at_first_and_vanish(follower: Follower, tmp_path: Path) -> None:
    """No error: files that come are found, files that go are forgotten."""
    follow = fresh(follower, tmp_path / "later")
    assert not follow.find(0.0)
    (tmp_path / "later").mkdir()
    (tmp_path / "later" / "a.log").write_text("step 1\n")
    assert follow.find(1.0)
    (tmp_path / "later" / "a.log").unlink()
    (tmp_path / "later" / "b.log").write_text("step 1\n")
    follow.find(2.0)
    follow.find(2000.0)
    assert [Path(file.name).name for file in follow.files.values()] == ["b.log"]
