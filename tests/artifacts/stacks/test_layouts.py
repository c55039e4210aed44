"""Dumps of several processes as people put them into files, and which process each of them is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.artifacts.stacks.factories import compare, dump_text
from triage.artifacts.stacks.comparison import DumpState, compare_stacks
from triage.artifacts.stacks.reader import parse_processes
from triage.sources.classify import classify
from triage.stacks.live.model import Process, format_state
from triage.stacks.live.states import key_of, state_of

RECORDED = Path(__file__).parent / "recorded"
REDUCE = ("all_reduce (torch/distributed/distributed_c10d.py:3252)", "step (train.py:80)", "<module> (train.py:99)")
READ = ("read_shard (train.py:22)", "next_batch (train.py:26)", "<module> (train.py:99)")
LOADER = ("_try_get_data (torch/utils/data/dataloader.py:9)", "<module> (train.py:99)")
WORKER = ("read_remote (train.py:71)", "_worker_loop (torch/utils/data/_utils/worker.py:3)", "<module> (train.py:1)")


def find_states(text: str, name: str = "hang.txt") -> list[tuple[int | None, int | None, str]]:
    """Return rank, pid and state of each process in a dump."""
    return [(one.rank, one.pid, format_state(state_of(one))) for one in parse_processes(text.encode(), name)]


def test_pystack_of_three_processes_in_one_file() -> None:
    """A real file without headings: the main thread, printed last, ends each dump and gives the pid."""
    text = (RECORDED / "pystack_three_processes.txt").read_text()
    assert classify(text.encode()) == ("live-stacks", "utf-8")
    assert find_states(text) == [
        (None, 6517, "in all_reduce at train.py:80"),
        (None, 6518, "in all_reduce at train.py:80"),
        (None, 6519, "in download_shard at train.py:22"),
    ]


def test_pystack_below_the_commands_that_printed_it() -> None:
    """`$ pystack remote 6517` is a heading, and the thread that holds the GIL is known."""
    text = (RECORDED / "pystack_three_processes.txt").read_text().replace("(python) []", "(python) [Has the GIL]")
    text = f"$ pystack remote 6517\n{text}"
    assert classify(text.encode()) == ("live-stacks", "utf-8")
    assert [state for _, _, state in find_states(text)][2] == "in download_shard, holding the GIL at train.py:22"


def test_json_dumps_below_each_other() -> None:
    """`for pid in …; do py-spy dump --json --pid $pid; done > all.json` has several arrays."""
    frame = {"name": "read_shard", "short_filename": "train.py", "line": 22}
    dumps = [[{"pid": pid, "thread_id": 1, "thread_name": "MainThread", "frames": [frame]}] for pid in (70, 71)]
    text = "\n".join(json.dumps(dump, indent=2) for dump in dumps)
    assert find_states(text) == [(None, pid, "in read_shard at train.py:22") for pid in (70, 71)]


@pytest.mark.parametrize(
    ("option", "rank"),
    [
        (" --rank 2", 2),
        (" --rank=2 --lr 1", 2),
        (" --global-rank 2", 2),
        (" --node-rank 2", None),
        (" --ranks 2", None),
    ],
)
def test_the_command_line_names_the_rank(option: str, rank: int | None) -> None:
    """py-spy prints the command line, in which launchers and scripts give the rank; a node's rank is none."""
    text = dump_text(*READ).replace("python -u train.py", f"python -u train.py{option}")
    assert find_states(text) == [(rank, 100, "in read_shard at train.py:22")]


def test_gdb_names_the_process_when_it_detaches() -> None:
    """`py-bt` prints no pid, but gdb's last line does."""
    text = 'Traceback (most recent call first):\n  File "/w/train.py", line 3, in <module>\n    wait()\n'
    text += "[Inferior 1 (process 6372) detached]\n"
    assert [pid for _, pid, _ in find_states(f"[Thread debugging using libthread_db enabled]\n{text}")] == [6372]


def still_ranks(*dumps: tuple[str, str, int]) -> list[str]:
    """Return the processes that stand still by their dumps, of which each has a name, a stack and a pid."""
    processes = [
        process
        for name, stack, pid in dumps
        for process in parse_processes(dump_text(*(READ if stack == "read" else REDUCE), pid=pid).encode(), name)
    ]
    states = [DumpState(process, state_of(process), key_of(process)) for process in processes]
    members = [member for group in compare_stacks(states).groups for member in group.members]
    return [member.label for member in members if member.is_still]


def test_a_series_of_files_shows_a_process_that_stands_still() -> None:
    """Names that differ only in numbers are of different moments; other names may be copies of one file."""
    assert still_ranks(("t0/rank2.txt", "read", 70), ("t1/rank2.txt", "read", 70)) == ["rank 2"]
    assert still_ranks(("t0/rank2.txt", "read", 70), ("t1/rank2.txt", "reduce", 70)) == []
    assert still_ranks(("a/rank2.txt", "read", 70), ("backup/rank2.txt", "read", 70)) == []
    assert still_ranks(("t0/rank2.txt", "read", 70), ("t1/rank2.txt", "read", 71)) == []


def test_the_data_loader_shows_where_its_worker_stands() -> None:
    """Of a rank that waits for its loader, the dump of the worker in the same file says why."""
    waits = parse_processes((dump_text(*LOADER, pid=70) + dump_text(*WORKER, pid=71)).encode(), "rank1.txt")
    others = [parse_processes(dump_text(*REDUCE, pid=80).encode(), f"rank{rank}.txt")[0] for rank in (0, 2)]
    (inference, *_) = compare([_as_rank(waits[0]), waits[1], *others]).inferences
    assert inference.text.startswith(
        "rank 1 is in the data loader's queue at train.py:99 (its worker is in read_remote at train.py:71), while"
    )


def _as_rank(process: Process) -> Process:
    return Process(process.source, process.tool, process.pid, process.threads, rank=1)


def test_a_line_and_the_function_belong_together() -> None:
    """A state names the innermost function of the program, or else whose line it is and what called it."""
    (helper,) = parse_processes(dump_text("poll (train.py:4)", *READ).encode(), "rank0.txt")
    assert format_state(state_of(helper)) == "in poll, called from read_shard at train.py:4"


def test_another_thread_of_the_program_is_shown() -> None:
    """Python's locks leave no frame: of two threads that wait for each other, both places are shown."""
    (process,) = parse_processes(dump_text("transfer (train.py:11)", others=("post (train.py:7)",)).encode(), "a.txt")
    assert format_state(state_of(process)) == "in transfer at train.py:11 (thread writer is in post at train.py:7)"
    (process,) = parse_processes(
        dump_text("transfer (train.py:11)", others=("wait (threading.py:7)",)).encode(), "a.txt"
    )
    assert format_state(state_of(process)) == "in transfer at train.py:11"
