"""Where the dump of one process ends and that of the next begins."""

from __future__ import annotations

import pytest

from triage.stacks.live.boundaries import split_dumps

PYTHON = """Thread 0x00007f{handle:02x}0 (most recent call first):
  File "/w/train.py", line 23 in beat
  File "/usr/lib/python3.11/threading.py", line 1002 in _bootstrap

{current}hread 0x00007f{handle:02x}1{name} (most recent call first):
  File "/w/train.py", line {line} in step
  File "/w/train.py", line 30 in {outermost}
"""
GDB = """Thread 2 (Thread 0x7f{n}0 (LWP {n}2) "python"):
#0  0x00007f01 in poll () from /lib/libc.so.6

Thread 1 (Thread 0x7f{n}1 (LWP {n}1) "python"):
#0  0x00007f01 in read () from /lib/libc.so.6
"""


PY_BT = """Traceback (most recent call first):
  File "/w/train.py", line 8, in step
    work()
  File "/w/train.py", line 30, in <module>
    step()
"""


def python_dump(handle: int, line: int = 8, current: str = "T", name: str = "", outermost: str = "<module>") -> str:
    """Return a dump of two threads by faulthandler, the main one last."""
    return PYTHON.format(handle=handle, line=line, current=current, name=name, outermost=outermost)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (python_dump(1), 1),
        (python_dump(1) + python_dump(2), 2),  # without a heading: the main thread comes last
        (python_dump(1) + python_dump(1), 2),  # the same process at two moments
        (python_dump(1, current="Current t", name=" [python]") + python_dump(2, current="Current t"), 2),
        (python_dump(1, outermost="_run_module_as_main") + python_dump(2), 2),
        (python_dump(1, outermost="run") + python_dump(1, outermost="run"), 2),  # a thread that is there already
        (python_dump(1, outermost="run") + python_dump(2, outermost="run"), 1),  # threads without a module
        ("Timeout (0:05:00)!\n" + python_dump(1, outermost="run") + "Timeout (0:05:00)!\n" + python_dump(2), 2),
        (GDB.format(n=1), 1),
        (GDB.format(n=1) + GDB.format(n=1), 1),  # `bt` and then `bt full` of the same threads
        (GDB.format(n=1) + GDB.format(n=2), 2),
        (PY_BT + PY_BT, 2),  # `gdb -batch -ex py-bt` of two processes
        (GDB.format(n=1) + PY_BT, 1),  # `bt` and then `py-bt` of the selected thread
        ("".join(head + "\n" + PY_BT for head in GDB.splitlines() if head.startswith("Thread")), 1),
        (GDB.format(n=1) + "[New LWP 12]\n[New LWP 13]\n" + GDB.format(n=1), 2),  # attached again
    ],
)
def test_number_of_dumps(text: str, count: int) -> None:
    """A dump begins at a heading, behind a main thread, and with a thread that another process has."""
    assert len(split_dumps(text)) == count


@pytest.mark.parametrize(
    ("heading", "rank", "pid", "host"),
    [
        ("===== rank 2 =====", 2, None, None),
        ("--- Rank: 2, pid 4711 ---", 2, 4711, None),
        ("### host=gpu-3 rank=2", 2, None, "gpu-3"),
        ("$ py-spy dump --pid 4711", None, 4711, None),
        ("+ sudo gdb -p 4711 -batch", None, 4711, None),
        ("pid 4711", None, 4711, None),
        ("==> /tmp/stacks/rank_2.txt <==", 2, None, None),
        ("*** local_rank 0 / rank 2 ***", 2, None, None),
        ("worker-5 | rank 2", 2, None, None),
        ("node1: rank 2, pid 4711", 2, 4711, None),
        ("::: rank2 :::", 2, None, None),
        ("local rank 2 of node 1", None, None, None),
        ("step 12: loss 2.0", None, None, None),
    ],
)
def test_headings_name_the_process(heading: str, rank: int | None, pid: int | None, host: str | None) -> None:
    """A line above a dump names rank, pid and host; a local rank is no rank, and a line of a log names nothing."""
    first, second = (split_dumps(f"rank 0\n{GDB.format(n=1)}{heading}\n{GDB.format(n=2)}"))[:2]
    assert (first.rank, first.pid) == (0, None)
    assert (second.rank, second.pid, second.host) == (rank, pid, host)


def test_locals_are_no_headings() -> None:
    """A variable named rank, as `py-spy dump --locals` prints it inside a stack, begins no further dump."""
    values = (
        "    step (train.py:8)\n        Arguments:\n            rank: 3\n            pid: 12\n    main (train.py:30)\n"
    )
    text = f'Process 4711: python train.py\n\nThread 4711 (idle): "MainThread"\n{values}'
    (section,) = split_dumps(text)
    assert (section.text, section.rank, section.pid) == (text, None, None)
