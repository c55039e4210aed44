"""Dumps that are read by several processes give the answer of one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.artifacts.flight.making import Call, Job, as_json, as_pickle, write
from tests.artifacts.flight.test_load import HOSTILE
from triage.artifacts.flight.shares import shares

PROGRAM = """
import json, os, sys
from triage.artifacts.flight import shares
from triage.artifacts.flight.gather import gather
from triage.artifacts.flight.analyse import analyse
from triage.artifacts.flight.view import view
from triage.render.flight import as_json
shares.WORTH, shares._processors = 1, lambda: int(sys.argv[2])
forked, fork = [], os.fork
os.fork = lambda: forked.append(1) or fork()
if sys.argv[3] == "die":
    shares._send = lambda *_: os._exit(1)
recording, warnings = gather([sys.argv[1]])
told = json.loads(as_json(view(recording, analyse(recording), warnings=warnings)))
told["warnings"].sort(key=str)
print(json.dumps([len(forked), told, [str(group) for group in recording.groups], recording.table.seq.tolist()]))
"""


def answer(directory: Path, count: int, how: str = "") -> list[object]:
    command = [sys.executable, "-W", "error", "-c", PROGRAM, str(directory), str(count), how]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)  # type: ignore[no-any-return]


@pytest.fixture
def dumps(tmp_path: Path) -> Path:
    """Two groups, a missing rank, point to point, a twin, a damaged dump and one of a newer format in each half."""
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


def test_the_answer_is_that_of_one_process(dumps: Path) -> None:
    """Faults, pictures, groups and warnings are the same, whoever read the dumps."""
    alone, shared = answer(dumps, 1), answer(dumps, 3)
    assert (alone[0], shared[0]) == (0, 2)
    assert alone[1:] == shared[1:]
    assert "global posix.system" in json.dumps(shared[1])


def test_what_a_copy_did_not_hand_over_is_read_here(dumps: Path) -> None:
    """A copy that dies (for want of memory, mostly) costs time, not the answer."""
    assert answer(dumps, 1)[1:] == answer(dumps, 3, "die")[1:]


def test_small_jobs_are_not_shared_out() -> None:
    """A copy is made for what takes longer than making it."""
    assert shares([1 << 20] * 8, lambda size: size) == [[1 << 20] * 8]
    assert shares([], lambda size: size) == [[]]
