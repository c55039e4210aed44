"""Recordings of py-spy as artifacts: they count only where the main thread stood still."""

from __future__ import annotations

from pathlib import Path

import pytest

from triage.artifacts.interface import ArtifactError
from triage.artifacts.stacks.reader import parse_processes
from triage.sources.classify import classify
from triage.stacks.live.model import format_state
from triage.stacks.live.states import state_of

RECORDED = Path(__file__).parent / "recorded"
STAYS = "<module> (train.py:9);main (train.py:5);read_index (train.py:3)"
MOVES = "<module> (train.py:9);main (train.py:6);step (train.py:2)"
BESIDE = "Thread._bootstrap (threading.py:1002);Thread.run (threading.py:982);beat (train.py:1)"


@pytest.mark.parametrize(("name", "pid"), [("py_spy_record_raw.txt", None), ("py_spy_record_speedscope.json", 9500)])
def test_a_recording_of_a_hung_process_shows_where_it_stands(name: str, pid: int | None) -> None:
    """Real recordings of a process in `recv`, in both forms, count as two dumps that are equal."""
    data = (RECORDED / name).read_bytes()
    assert classify(data) == ("live-stacks", "utf-8")
    processes = parse_processes(data, "rank2.txt")
    assert [(one.rank, one.pid, format_state(state_of(one))) for one in processes] == [
        (2, pid, "in download_shard at train.py:22")
    ] * 2


@pytest.mark.parametrize(
    ("text", "pid"),
    [
        (f"{BESIDE} 19\n{STAYS} 19\n", None),
        (f"thread (71): MainThread;{STAYS} 19\nthread (72): hb;{BESIDE} 19\n", 71),
        (f'process 70:"python train.py";{STAYS} 19\n', 70),
        (f'process 70:"python train.py";thread (70): MainThread;{STAYS} 10\n', 70),
        (f"{STAYS} 95\n{MOVES} 5\n", None),
    ],
)
def test_the_main_thread_that_stands_still_counts(text: str, pid: int | None) -> None:
    """Options of py-spy name process and thread; one of twenty samples may be elsewhere."""
    assert classify(text.encode()) == ("live-stacks", "utf-8")
    first, second = parse_processes(text.encode(), "hang.txt")
    assert first == second
    assert (first.pid, format_state(state_of(first))) == (pid, "in read_index at train.py:3")


@pytest.mark.parametrize("text", [f"{STAYS} 9\n", f"{STAYS} 94\n{MOVES} 6\n", f"{BESIDE} 500\n"])
def test_a_recording_of_a_program_that_moves_shows_no_hang(text: str) -> None:
    """Too few samples, a main thread that moves, or no main thread: the file is named in a warning."""
    with pytest.raises(ArtifactError, match="without a main thread that stands still"):
        parse_processes(text.encode(), "profile.txt")


@pytest.mark.parametrize(
    "text",
    [
        '{"$schema":"https://www.speedscope.app/x","profiles":[{"samples":[[7]]}]}',
        '{"$schema":"https://www.speedscope.app/x","profiles":',
    ],
)
def test_a_damaged_recording_is_a_warning(text: str) -> None:
    """A recording that was cut, or whose samples name no frame, raises no other error."""
    with pytest.raises(ArtifactError):
        parse_processes(text.encode(), "profile.json")


@pytest.mark.parametrize("line", ["step (train.py:7) took 12", "loss;acc (a.py:3) x", "main (app.go:7) 19"])
def test_a_log_is_no_recording(line: str) -> None:
    """Lines of a log that mention a place of the program stay text."""
    assert classify(f"{line}\n".encode()) == ("text", "utf-8")
