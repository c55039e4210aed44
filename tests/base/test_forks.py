"""Work shared among forked processes."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import TypeVar

import pytest

from triage.base import forks
from triage.base.forks import map_forked
from triage.base.options import Options
from triage.evidence.extracted import ExtractedSource, pack, unpack
from triage.model.diagnosis import Diagnosis
from triage.model.evidence import Evidence, Origin
from triage.pipeline import ingest
from triage.records.activity import Activity
from triage.render import render

T = TypeVar("T")
ROOT = Path(__file__).resolve().parents[2]
PARENT = os.getpid()


def map_plain(work: Callable[[int], T], count: int, processes: int) -> Iterator[T]:
    """Yield the results of `map_forked` for work whose results JSON carries as they are."""
    return map_forked(work, count, processes, lambda result: result, lambda result: result)


def all_reaped(pids: list[int]) -> bool:
    """Return whether none of these is a process any more, not even a zombie."""
    return not any(Path(f"/proc/{pid}").exists() for pid in pids)


@pytest.mark.parametrize("processes", [2, 3, 200])
def test_results_come_in_order(forked: list[int], processes: int) -> None:
    """Any number of processes gives the results in order; each does its part, and none is left behind."""
    results = list(map_plain(lambda number: [number * number, os.getpid()], 100, processes))
    assert [square for square, _ in results] == [number * number for number in range(100)]
    assert {pid for _, pid in results} == set(forked)
    assert len(forked) == min(processes, 100)
    assert all_reaped(forked)
    assert list(map_plain(str, 0, processes)) == []


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="needs the C library of Linux")
def test_freed_memory_is_given_back_before_a_fork() -> None:
    """What the parent freed below memory that it still uses is no part of the children."""
    script = (
        "from triage.base.forks import map_forked\n"
        "def resident(): return int(open('/proc/self/statm').read().split()[1]) * 4096\n"
        "blocks = [bytes(5000) for _ in range(20_000)]\n"
        "blocks = blocks[-1:]\n"
        "same = lambda one: one\n"
        "before = resident()\n"
        "print(before, *map_forked(lambda number: resident(), 2, 2, same, same))\n"
    )
    output = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, check=True, timeout=60
    ).stdout
    before, *children = map(int, output.split())
    assert before > 100_000_000 > 2 * max(children)


def test_no_fork_for_one_item_or_one_process_or_with_other_threads(
    forked: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One item, one process, or other threads, whose locks a child would inherit: the work is done without forking."""
    for count, processes in ((100, 1), (1, 3)):
        assert list(map_plain(lambda number: os.getpid(), count, processes)) == [PARENT] * count
    monkeypatch.setattr(forks.threading, "active_count", lambda: 2)
    assert list(map_plain(lambda number: os.getpid(), 9, 3)) == [PARENT] * 9
    assert forked == []


@pytest.mark.parametrize("processes", [1, 2])
def test_an_error_of_a_child_is_raised_in_the_parent(forked: list[int], processes: int) -> None:
    """The parent yields the results before the error, then raises it."""
    results = map_plain(lambda number: number // (number != 7), 20, processes)
    assert list(islice(results, 7)) == list(range(7))
    with pytest.raises(ZeroDivisionError):
        next(results)
    assert len(forked) == (0 if processes == 1 else processes)
    assert all_reaped(forked)


def test_the_parent_finishes_the_work_of_a_killed_child(forked: list[int]) -> None:
    """Every result comes exactly once; the parent computes what the child left undone."""

    def die_at_30(number: int) -> list[int]:
        if number == 30 and os.getpid() != PARENT:
            os.kill(os.getpid(), signal.SIGKILL)
        return [number, os.getpid()]

    results = list(map_plain(die_at_30, 64, 2))
    assert [number for number, _ in results] == list(range(64))
    assert [number for number, pid in results if pid == PARENT] == list(range(30, 64, 2))
    assert {pid for number, pid in results if number % 2} == {forked[1]}


def test_an_incomplete_result_is_computed_again(forked: list[int]) -> None:
    """A child that is killed while it writes a result larger than the pipe: the parent computes this result."""
    results = map_plain(lambda number: [os.getpid(), "x" * 10**6 * (number == 2)], 4, 2)
    assert [pid for pid, _ in islice(results, 2)] == forked
    time.sleep(0.1)
    os.kill(forked[0], signal.SIGKILL)
    assert list(results) == [[PARENT, "x" * 10**6], [forked[1], ""]]


def test_the_parent_does_the_work_of_a_failed_fork(forked: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the system refuses more processes, the forked ones do their part and the parent the rest."""
    fork = os.fork

    def fork_once() -> int:
        if forked:
            raise BlockingIOError(11, "Resource temporarily unavailable")
        return fork()

    monkeypatch.setattr(os, "fork", fork_once)
    results = list(map_plain(lambda number: [number, os.getpid()], 10, 3))
    assert [number for number, _ in results] == list(range(10))
    assert {pid for number, pid in results if number % 3} == {PARENT}
    assert {pid for number, pid in results if number % 3 == 0} == set(forked)


def test_ignored_sigchld_does_not_change_the_results(forked: list[int]) -> None:
    """With SIGCHLD ignored the system reaps the children itself, and the results are the same."""
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        results = list(map_plain(lambda number: os.getpid(), 4, 2))
        while not all_reaped(forked):
            time.sleep(0.01)
        assert results == forked * 2
    finally:
        signal.signal(signal.SIGCHLD, before)


def test_a_caller_that_stops_early_leaves_no_process(forked: list[int]) -> None:
    """A child that waits for room in its pipe is ended when the caller stops iterating."""
    for pid, _ in map_plain(lambda number: [os.getpid(), "x" * 100_000], 100, 2):
        assert pid == forked[0]
        break
    assert len(forked) == 2
    assert all_reaped(forked)


def test_an_interrupt_ends_all_at_once() -> None:
    """Ctrl-C, sent to every process of the terminal, leaves no process and one traceback, that of the program."""
    code = (  # a shell's background jobs ignore interrupts: this one does not
        "import os, signal, time; from triage.base.forks import map_forked\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "def work(n): os.write(1, b'%d\\n' % os.getpid()); time.sleep(0.5); return n\n"
        "list(map_forked(work, 200, 2, int, int))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    at_work = {int(process.stdout.readline()) for _ in range(4)}
    assert len(at_work) == 2
    assert process.pid not in at_work
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=20)  # both hundred would take 50 s
    assert errors.count("Traceback") == 1
    assert errors.rstrip().endswith("KeyboardInterrupt")
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)


def test_an_interrupt_while_forking_leaves_no_process(forked: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupt right after the first fork is raised once every child is known, so that all are ended."""
    fork = os.fork

    def interrupt_after_fork() -> int:
        pid = fork()
        if pid:
            signal.raise_signal(signal.SIGINT)
        return pid

    monkeypatch.setattr(os, "fork", interrupt_after_fork)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            list(map_plain(time.sleep, 200, 2))
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(forked) == 2
    assert all_reaped(forked)


def test_packing_keeps_every_field() -> None:
    """Extracted activities and evidence survive JSON unchanged, including text that UTF-8 cannot encode."""
    origin = Origin(3, 1, "node1", 412, "stderr", 1.5, 2)
    activity = Activity(origin, 7, "[rank3]:", None, True, "checkpoint", "/mnt/x")
    evidence = Evidence("exception", "python", "é \udc80\n", origin, "a.log", 1, 9, {"type": "E"}, "x", 4, 5, 6)
    extracted = ExtractedSource((activity,), (), (activity, activity), (evidence,), 8, True)
    assert unpack(json.loads(json.dumps(pack(extracted)))) == extracted


def test_forked_processes_give_the_same_report(tmp_path: Path) -> None:
    """A job of 64 files gives the same report by one process and by two."""
    for rank in range(64):
        lines = [
            f"[rank{rank}]:[E1120 10:15:{n:02d}.1 ProcessGroupNCCL.cpp:632] [Rank {rank}] "
            f"Watchdog caught collective operation timeout: WorkNCCL(SeqNum={n}, OpType=ALLREDUCE, NumelIn=4, "
            f"NumelOut=4, Timeout(ms)=600000) ran for 600012 milliseconds before timing out."
            for n in range(3)
        ]
        (tmp_path / f"rank_{rank}.log").write_text("\n".join(lines) + "\n")

    def report_without_stats(diagnosis: Diagnosis) -> str:
        report = render(diagnosis, "json")
        return report[: report.index('"stats"')] if isinstance(report, str) else ""

    expected = report_without_stats(ingest([str(tmp_path)], Options(workers=2)))
    code = (
        "import os, sys; from triage.base.options import Options; from triage.pipeline import ingest;"
        "from triage.render import render; fork = os.fork; os.fork = lambda: sys.stderr.write('forks ') and fork();"
        f"print(render(ingest([{str(tmp_path)!r}], Options(workers=2, fork=True)), 'json'))"
    )
    forked = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert forked.stdout[: forked.stdout.index('"stats"')] == expected
    assert "Watchdog" in expected
    assert forked.stderr == "forks forks "
