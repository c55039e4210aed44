"""Dumps read by several processes give the same recording as by one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.artifacts.flight.factories import Call, Job, as_json, as_pickle, write
from tests.artifacts.flight.test_load import HOSTILE
from triage.artifacts.flight.process_transfer import split_by_size

PROGRAM = """
import json, os, sys
from triage.artifacts.flight import process_transfer
from triage.artifacts.flight.dump_files import read_dump_files
from triage.artifacts.flight.analyse import analyse
from triage.artifacts.flight.view import view
from triage.render.flight import as_json
process_transfer.BYTES_PER_PROCESS, process_transfer._processors = 1, lambda: int(sys.argv[2])
forks, fork = [], os.fork
os.fork = lambda: forks.append(1) or fork()
if sys.argv[3] == "die":
    process_transfer._send = lambda *_: os._exit(1)
recording, warnings = read_dump_files([sys.argv[1]])
report = json.loads(as_json(view(recording, analyse(recording), warnings=warnings)))
report["warnings"].sort(key=str)
print(json.dumps([len(forks), report, [str(group) for group in recording.groups], recording.table.seq.tolist()]))
"""


def analyse_with(directory: Path, processes: int, failure: str = "") -> list[object]:
    """Return the number of forks, the report, the groups and the sequence numbers."""
    command = [sys.executable, "-W", "error", "-c", PROGRAM, str(directory), str(processes), failure]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)  # type: ignore[no-any-return]


@pytest.fixture
def dumps(tmp_path: Path) -> Path:
    """Write a job with two groups, a late rank, JSON twins, a hostile, a truncated and two newer dumps."""
    calls = {
        rank: [
            Call(place=("a.py", rank % 3, "f")),
            Call("broadcast", group=f"tp{rank // 4}", size=(2, rank // 4)),
            Call(dtype="Half"),
        ]
        * 5
        for rank in range(8)
    }
    calls[6] = calls[6][:7]
    job = Job(calls, {"tp0": range(4), "tp1": range(4, 8)})
    write(job, tmp_path)
    for rank, dump in job.dumps().items():
        if rank in (1, 5):
            (tmp_path / f"fr_rank_{rank}.json").write_bytes(as_json({**dump, "version": "2.99"}))
    (tmp_path / "fr_rank_3").write_bytes(HOSTILE["system"][0])
    (tmp_path / "fr_rank_7").write_bytes(as_pickle(job.dumps()[7])[:-900])
    return tmp_path


def test_result_equals_that_of_one_process(dumps: Path) -> None:
    """Faults, matrix, groups and warnings are the same with one process and with three."""
    one, three = analyse_with(dumps, 1), analyse_with(dumps, 3)
    assert (one[0], three[0]) == (0, 2)
    assert one[1:] == three[1:]
    assert "global posix.system" in json.dumps(three[1])


def test_files_of_a_dead_process_are_read_again(dumps: Path) -> None:
    """The files of a process that dies are read by the main process, with the same result."""
    assert analyse_with(dumps, 1)[1:] == analyse_with(dumps, 3, "die")[1:]


def test_small_jobs_are_read_by_one_process() -> None:
    """Files of a few MB are not split."""
    assert split_by_size([1 << 20] * 8, lambda size: size) == [[1 << 20] * 8]
    assert split_by_size([], lambda size: size) == [[]]
