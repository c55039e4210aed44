"""Work by forked processes."""

from __future__ import annotations

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
from triage.base.forks import each as each_packed
from triage.base.options import Options
from triage.evidence.collect import Told, pack, unpack
from triage.model.diagnosis import Diagnosis
from triage.model.evidence import Evidence, Origin
from triage.pipeline import ingest
from triage.ranks.last import Word
from triage.render import render

T = TypeVar("T")
ROOT = Path(__file__).resolve().parents[1]
HERE = os.getpid()


def each(work: Callable[[int], T], count: int, processes: int) -> Iterator[T]:
    """Where JSON carries what the work gives."""
    return each_packed(work, count, processes, lambda found: found, lambda found: found)


def gone(pids: list[int]) -> bool:
    """Is none of these a process any more, not even one that nobody waited for?"""
    return not any(Path(f"/proc/{pid}").exists() for pid in pids)


@pytest.mark.parametrize("processes", [2, 3, 200])
def test_results_come_in_order(forked: list[int], processes: int) -> None:
    """Whatever the number of processes; each does its part, and none is left."""
    found = list(each(lambda number: [number * number, os.getpid()], 100, processes))
    assert [square for square, _ in found] == [number * number for number in range(100)]
    assert {pid for _, pid in found} == set(forked)
    assert len(forked) == min(processes, 100)
    assert gone(forked)
    assert list(each(str, 0, processes)) == []


def test_one_process_is_enough(forked: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """For one thing to do, where one is asked for, and beside threads, of which a child would have the locks and not
    the threads.
    """
    for count, processes in ((100, 1), (1, 3)):
        assert list(each(lambda number: os.getpid(), count, processes)) == [HERE] * count
    monkeypatch.setattr(forks.threading, "active_count", lambda: 2)
    assert list(each(lambda number: os.getpid(), 9, 3)) == [HERE] * 9
    assert forked == []


@pytest.mark.parametrize("processes", [1, 2])
def test_what_it_raises_is_raised_here(forked: list[int], processes: int) -> None:
    """An error is not lost with its process, nor what was done before it."""
    found = each(lambda number: number // (number != 7), 20, processes)
    assert list(islice(found, 7)) == list(range(7))
    with pytest.raises(ZeroDivisionError):
        next(found)
    assert len(forked) == (0 if processes == 1 else processes)
    assert gone(forked)


def test_the_rest_is_done_where_a_process_dies(forked: list[int]) -> None:
    """Killed for want of memory, say: every result is there all the same, once, and what was left undone comes from
    here.
    """

    def dies(number: int) -> list[int]:
        if number == 30 and os.getpid() != HERE:
            os.kill(os.getpid(), signal.SIGKILL)
        return [number, os.getpid()]

    found = list(each(dies, 64, 2))
    assert [number for number, _ in found] == list(range(64))
    assert [number for number, pid in found if pid == HERE] == list(range(30, 64, 2))
    assert {pid for number, pid in found if number % 2} == {forked[1]}


def test_half_a_result_is_none(forked: list[int]) -> None:
    """One that is killed while it tells more than the pipe holds."""
    found = each(lambda number: [os.getpid(), "x" * 10**6 * (number == 2)], 4, 2)
    assert [pid for pid, _ in islice(found, 2)] == forked
    time.sleep(0.1)
    os.kill(forked[0], signal.SIGKILL)
    assert list(found) == [[HERE, "x" * 10**6], [forked[1], ""]]


def test_what_cannot_be_forked_is_done_here(forked: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there may be no more processes, those that are there do their part."""
    fork = os.fork

    def once() -> int:
        if forked:
            raise BlockingIOError(11, "Resource temporarily unavailable")
        return fork()

    monkeypatch.setattr(os, "fork", once)
    found = list(each(lambda number: [number, os.getpid()], 10, 3))
    assert [number for number, _ in found] == list(range(10))
    assert {pid for number, pid in found if number % 3} == {HERE}
    assert {pid for number, pid in found if number % 3 == 0} == set(forked)


def test_nobody_need_wait_for_children(forked: list[int]) -> None:
    """A program that was started with SIGCHLD ignored, whose children the system forgets when they end, has the same
    answer.
    """
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        found = list(each(lambda number: os.getpid(), 4, 2))
        while not gone(forked):
            time.sleep(0.01)
        assert found == forked * 2
    finally:
        signal.signal(signal.SIGCHLD, before)


def test_who_listens_no_more_leaves_no_process(forked: list[int]) -> None:
    """One that has more to tell than a pipe holds does not wait for ever."""
    for found in each(lambda number: [os.getpid(), "x" * 100_000], 100, 2):
        assert found[0] == forked[0]
        break
    assert len(forked) == 2
    assert gone(forked)


def test_an_interrupt_ends_all_at_once() -> None:
    """Ctrl-C, which every process of the terminal gets, leaves none behind and one traceback, that of the program."""
    code = (  # a shell's background jobs ignore interrupts: this one does not
        "import os, signal, time; from triage.base.forks import each; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "def work(n): os.write(1, b'%d\\n' % os.getpid()); time.sleep(0.5); return n\n"
        "list(each(work, 200, 2, int, int))"
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


def test_an_interrupt_comes_when_every_child_is_known(forked: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one that comes as soon as the first is there: none is left to itself."""
    fork = os.fork

    def interrupted() -> int:
        pid = fork()
        if pid:
            signal.raise_signal(signal.SIGINT)
        return pid

    monkeypatch.setattr(os, "fork", interrupted)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            list(each(time.sleep, 200, 2))
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(forked) == 2
    assert gone(forked)


def test_what_is_packed_comes_out_whole() -> None:
    """Through JSON and back, every field of words and facts is as it was, text that no UTF-8 can carry included."""
    origin = Origin(3, 1, "node1", 412, "stderr", 1.5, 2)
    word = Word(origin, 7, "[rank3]:", None, True, "checkpoint", "/mnt/x")
    fact = Evidence("exception", "python", "é \udc80\n", origin, "a.log", 1, 9, {"type": "E"}, "x", 4, 5, 6)
    told = Told((word,), (), (word, word), (fact,), 8, True)
    assert unpack(json.loads(json.dumps(pack(told)))) == told


def test_forked_reading_says_the_same(tmp_path: Path) -> None:
    """A job of many files gives the same report by one process and by several, and the command leaves none behind."""
    for rank in range(64):
        lines = [
            f"[rank{rank}]:[E1120 10:15:{n:02d}.1 ProcessGroupNCCL.cpp:632] [Rank {rank}] Watchdog caught collective operation timeout: "
            f"WorkNCCL(SeqNum={n}, OpType=ALLREDUCE, NumelIn=4, NumelOut=4, Timeout(ms)=600000) ran for 600012 milliseconds before timing out."
            for n in range(3)
        ]
        (tmp_path / f"rank_{rank}.log").write_text("\n".join(lines) + "\n")

    def told(diagnosis: Diagnosis) -> str:
        report = render(diagnosis, "json")
        return report[: report.index('"stats"')] if isinstance(report, str) else ""

    alone = told(ingest([str(tmp_path)], Options(workers=2)))
    code = (
        "import os, sys; from triage.base.options import Options; from triage.pipeline import ingest; from triage.render import render;"
        "fork = os.fork; os.fork = lambda: sys.stderr.write('forks ') and fork();"
        f"print(render(ingest([{str(tmp_path)!r}], Options(workers=2, fork=True)), 'json'))"
    )
    forked = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert forked.stdout[: forked.stdout.index('"stats"')] == alone
    assert "Watchdog" in alone
    assert forked.stderr == "forks forks "
