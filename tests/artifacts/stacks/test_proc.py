"""Live threads as files of /proc and as ps show them."""

from __future__ import annotations

from triage.artifacts.stacks.proc import parse_text
from triage.stacks.live.model import Call


def test_files_printed_by_grep() -> None:
    """`grep -r "" /proc/PID/task` gives name, state, wait channel and kernel stack of each thread."""
    text = (
        "/proc/71/task/71/comm:python\n"
        "/proc/71/task/71/status:Name:\tpython\n"
        "/proc/71/task/71/status:State:\tD (disk sleep)\n"
        "/proc/71/task/71/wchan:folio_wait_bit_common\n"
        "/proc/71/task/71/stack:[<0>] folio_wait_bit_common+0x1c3/0x3c0\n"
        "/proc/71/task/71/stack:[<0>] filemap_fault+0x5d2/0xa00\n"
        "/proc/71/task/72/comm:pt_data_worker\n"
        "/proc/71/task/72/stack:[<0>] futex_wait_queue+0x60/0x90\n"
    )
    (process,) = parse_text(text, "rank0.txt")
    assert (process.pid, process.command) == (71, "python")
    assert [(thread.name, thread.tid) for thread in process.threads] == [("MainThread", 71), ("pt_data_worker", 72)]
    call = process.threads[0].call
    assert call is not None
    assert call.run == "D"
    assert call.wait == ("folio_wait_bit_common", "filemap_fault")
    assert process.threads[1].call == Call(wait=("futex_wait_queue",))


def test_files_printed_by_head() -> None:
    """`head /proc/PID/task/*/{comm,wchan,status}` gives name, wait channel and state of a thread."""
    text = (
        "==> /proc/71/task/71/comm <==\npython\n\n"
        "==> /proc/71/task/71/wchan <==\nfutex_do_wait\n\n"
        "==> /proc/71/task/71/status <==\nName:\tpython\nState:\tS (sleeping)\nTgid:\t71\nThreads:\t2\n"
    )
    (process,) = parse_text(text, "rank0.txt")
    assert (process.pid, process.command, len(process.threads)) == (71, "python", 1)
    assert process.threads[0].call == Call(wait=("futex_do_wait",), run="S")


def test_rows_of_ps() -> None:
    """Of the rows of ps only those of programs of a job count, and only those with numbers that a process can have."""
    text = (
        "    PID     TID STAT WCHAN                          COMMAND\n"
        "     71      71 Sl   futex_do_wait                  python\n"
        "     71      72 Sl   -                              pt_data_worker\n"
        "     80      80 Ss   do_wait                        bash\n"
        "      x      81 S    -                              python\n"
        "1234567890    82 S    -                              python\n"
    )
    (process,) = parse_text(text, "ps.txt")
    assert [(thread.tid, thread.call) for thread in process.threads] == [
        (71, Call(wait=("futex_do_wait",), run="S")),
        (72, Call(run="S")),
    ]
