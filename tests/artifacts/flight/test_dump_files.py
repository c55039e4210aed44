"""Dumps by path: compressed ones, and those that another process has read."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.artifacts.flight.factories import Call, Job, as_json, as_pickle, write
from tests.artifacts.flight.test_load import HOSTILE
from triage.artifacts.flight import process_transfer
from triage.artifacts.flight.dump_files import read_dump_files
from triage.artifacts.flight.model import Recording
from triage.base import forks

JOB = Job(
    {
        rank: [Call(place=("a.py", rank, "f")), Call("broadcast", group=f"tp{rank // 2}", size=(2, rank // 2))] * 3
        for rank in range(4)
    },
    {"tp0": [0, 1], "tp1": [2, 3]},
)


def contents(recording: Recording) -> dict[str, Any]:
    """Return what a recording holds, with values in place of the numbers of the shared lists."""
    table = recording.table
    lists = {"op": recording.ops, "shape": recording.shapes, "dtype": recording.dtypes, "stack": recording.stacks}
    columns = {name: [values[index] for index in getattr(table, name)] for name, values in lists.items()}
    columns |= {name: getattr(table, name).tolist() for name in ("rank", "seq", "state", "created", "done", "duration")}
    groups = [recording.groups[number] for number in table.group]
    return {**columns, "group": groups, "dumps": dict(recording.dumps), "notes": recording.notes}


@contextmanager
def inline_copies(works: Iterable[Callable[[Any], None]]) -> Iterator[list[io.BytesIO]]:
    """Do the work of forked processes in this one, and give what they write."""
    pipes = []
    for work in works:
        pipes.append(io.BytesIO())
        work(pipes[-1])
        pipes[-1].seek(0)
    yield pipes


def test_compressed_dumps(tmp_path: Path) -> None:
    """Compressed dumps give the same recording; other files are skipped, and progress ends at all bytes."""
    for rank, dump in JOB.dumps().items():
        (tmp_path / f"fr_rank_{rank}.gz").write_bytes(gzip.compress(as_pickle(dump)))
    (tmp_path / "train.log").write_text("step 1 loss 2.5\n")
    progress: list[tuple[int, int]] = []
    recording, warnings = read_dump_files([str(tmp_path)], lambda *bytes_done: progress.append(bytes_done))
    plain, _ = read_dump_files([str(write(JOB, tmp_path / "plain"))])
    assert {**contents(recording), "dumps": None} == {**contents(plain), "dumps": None}
    assert [dump.entries for dump in recording.dumps.values()] == [6] * 4
    assert warnings == []
    assert (
        progress[-1][0] == progress[-1][1] == sum(path.stat().st_size for path in tmp_path.iterdir() if path.is_file())
    )


@pytest.mark.parametrize("processes", [2, 3])
def test_parts_that_other_processes_have_read(processes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What other processes send gives the same recording, notes and warnings as one process."""
    write(JOB, tmp_path)
    for rank in (1, 3):
        dump = {**JOB.dumps()[rank], "version": "2.99"}
        (tmp_path / f"fr_rank_{rank}.json").write_bytes(as_json(dump))
    (tmp_path / "fr_rank_3").write_bytes(HOSTILE["system"][0])
    one = read_dump_files([str(tmp_path)])
    monkeypatch.setattr(process_transfer, "BYTES_PER_PROCESS", 1)
    monkeypatch.setattr(process_transfer, "_processors", lambda: processes)
    monkeypatch.setattr(forks, "forked", inline_copies)
    several = read_dump_files([str(tmp_path)])
    assert contents(several[0]) == contents(one[0])
    assert [(warning.code, Path(warning.source or "").name) for warning in several[1]] == [
        ("damaged-artifact", "fr_rank_3")
    ]
    assert [code for code, _, _ in several[0].notes] == ["new-dump-version"]


@pytest.mark.parametrize("length", [0, 4, 40, -1])
def test_part_of_a_process_that_died(length: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files of a process whose answer ends too soon are read here, with the same recording."""
    write(JOB, tmp_path)
    one, _ = read_dump_files([str(tmp_path)])

    @contextmanager
    def dying_copies(works: Iterable[Callable[[Any], None]]) -> Iterator[list[io.BytesIO]]:
        with inline_copies(works) as pipes:
            yield [io.BytesIO(pipe.getvalue()[:length]) for pipe in pipes]

    monkeypatch.setattr(process_transfer, "BYTES_PER_PROCESS", 1)
    monkeypatch.setattr(process_transfer, "_processors", lambda: 2)
    monkeypatch.setattr(forks, "forked", dying_copies)
    assert contents(read_dump_files([str(tmp_path)])[0]) == contents(one)
