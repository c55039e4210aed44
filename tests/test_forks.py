"""Work by forked processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from triage.evidence.collect import Told, pack, unpack
from triage.forks import each as each_packed
from triage.model import Diagnosis, Evidence, Origin
from triage.options import Options
from triage.pipeline import ingest
from triage.ranks.last import Word
from triage.render import render

T = TypeVar("T")
ROOT = Path(__file__).resolve().parents[1]


def each(work: Callable[[int], T], count: int, processes: int) -> Iterator[T]:
    """Where JSON carries what the work gives."""
    return each_packed(work, count, processes, lambda found: found, lambda found: found)


@pytest.mark.parametrize("processes", [1, 3])
def test_results_come_in_order(processes: int) -> None:
    """Whatever the number of processes."""
    assert list(each(lambda number: number * number, 100, processes)) == [number * number for number in range(100)]
    assert list(each(str, 0, processes)) == []


@pytest.mark.parametrize("processes", [1, 2])
def test_what_it_raises_is_raised_here(processes: int) -> None:
    """An error is not lost with its process."""

    def fails(number: int) -> int:
        return 1 // (number - 7)

    with pytest.raises(ZeroDivisionError):
        list(each(fails, 20, processes))


def test_the_rest_is_done_where_a_process_dies() -> None:
    """Killed for want of memory, say: every result is there all the same, once."""
    here = os.getpid()

    def dies(number: int) -> int:
        if number == 30 and os.getpid() != here:
            os.kill(os.getpid(), signal.SIGKILL)
        return number

    assert list(each(dies, 64, 2)) == list(range(64))


def test_an_interrupt_ends_all_at_once() -> None:
    """Ctrl-C, which every process of the terminal gets, leaves none behind and one traceback, that of the program."""
    code = (  # a shell's background jobs ignore interrupts: this one does not
        "import signal, time; from triage.forks import each; signal.signal(signal.SIGINT, signal.default_int_handler);"
        "print('on', flush=True); list(each(lambda n: time.sleep(0.5), 200, 2, int, int))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(0.7)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=20)  # both hundred would take 50 s
    assert errors.count("Traceback") == 1
    assert errors.rstrip().endswith("KeyboardInterrupt")
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)


def test_what_is_packed_comes_out_whole() -> None:
    """Through JSON and back, every field of words and facts is as it was, text that no UTF-8 can carry included."""
    origin = Origin(3, 1, "node1", 412, "stderr", 1.5, 2)
    word = Word(origin, 7, "[rank3]:", None, True, "checkpoint", "/mnt/x")
    fact = Evidence("exception", "python", "é \udc80\n", origin, "a.log", 1, 9, {"type": "E"}, "x", 4, 5, 6)
    told = Told((word,), (), (word, word), (fact,), 8, True)
    assert unpack(json.loads(json.dumps(pack(told)))) == told


def test_forked_reading_says_the_same(tmp_path: Path) -> None:
    """A job of many files gives the same report by one process and by several, and the command leaves none behind."""
    for rank in range(24):
        lines = [
            f"[rank{rank}]:[E1120 10:15:{n:02d}.1 ProcessGroupNCCL.cpp:632] [Rank {rank}] Watchdog caught collective operation timeout: "
            f"WorkNCCL(SeqNum={n}, OpType=ALLREDUCE, NumelIn=4, NumelOut=4, Timeout(ms)=600000) ran for 600012 milliseconds before timing out."
            for n in range(20)
        ]
        (tmp_path / f"rank_{rank}.log").write_text("\n".join(lines) + "\n")

    def told(diagnosis: Diagnosis) -> str:
        report = render(diagnosis, "json")
        return report[: report.index('"stats"')] if isinstance(report, str) else ""

    alone = told(ingest([str(tmp_path)], Options(workers=2)))
    code = (
        "import sys; from triage.options import Options; from triage.pipeline import ingest; from triage.render import render;"
        f"print(render(ingest([{str(tmp_path)!r}], Options(workers=2, fork=True)), 'json'))"
    )
    forked = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert forked.stdout[: forked.stdout.index('"stats"')] == alone
    assert "Watchdog" in alone
