"""triage.ranks.blocks"""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from triage.ranks.blocks import FORMS, build

from .reading import HEADER, block, blocks, text_of

LITERALS = (
    HEADER,
    "terminate called",
    "Fatal Python error: ",
    "exitcode  : ",
    "NCCL WARN ",
    "Segmentation fault",
    "Process received signal",
    "boom",
)

PIECES = [
    f"{HEADER}:",
    '  File "train.py", line 3, in step',
    "    loss.backward()",
    "RuntimeError: boom",
    "",
    "During handling of the above exception, another exception occurred:",
    "terminate called after throwing an instance of 'c10::Error'",
    "  what():  boom",
    "frame #0: c10::Error::Error",
    "Fatal Python error: Segmentation fault",
    "Current thread 0x00007f (most recent call first):",
    "node1:41:50 [0] misc/socket.cc:50 NCCL WARN boom",
    "node1:41:50 [0] NCCL INFO misc/socket.cc:55 -> 6",
    "[0]:",
    "  exitcode  : 1 (pid: 77)",
    "  rank      : 1 (local_rank: 1)",
    "------------------------------",
    "*** Process received signal ***",
    "Signal: Segmentation fault (11)",
    "EI0006: boom",
    "        Solution: wait",
    "[E1121 03:07:45.123456789 ProcessGroupNCCL.cpp:607] boom",
    " 10%|#  | 1/10\r 20%|## | 2/10 boom",
    "step 3 loss 0.1",
    "boom",
]
PREFIXES = ["", "", "[rank1]: ", "[rank2]: ", "[default1]:", "2026-11-21 03:07:45,372 "]
LOGS = st.lists(st.tuples(st.sampled_from(PREFIXES), st.sampled_from(PIECES)).map("".join), max_size=40).map("\n".join)


def test_the_forms_are_tried_in_order_and_the_last_takes_all() -> None:
    """Names are unique, and any line is at least a line."""
    assert len({form.name for form in FORMS}) == len(FORMS)
    assert FORMS[-1].name == "line"


@given(LOGS)
def test_each_line_belongs_to_at_most_one_block(data: str) -> None:
    """However writers and forms mix, no line is told twice."""
    numbered = "\n".join(
        f"{line} #{index}" if line and not line.endswith(":") else line for index, line in enumerate(data.split("\n"))
    )
    told = [
        line
        for found in blocks(numbered, *LITERALS)
        for line in found.lines
        if "#" in line and "frame #" not in line and "|#" not in line
    ]
    assert len(told) == len(set(told))


@given(LOGS)
@example("Traceback (most recent call last):\nTraceback (most recent call last):\nRuntimeError: boom\n  what():  boom")
def test_every_hit_line_is_in_a_block(data: str) -> None:
    """A hit is never lost: its text stands in some block."""
    told = {line for found in blocks(data, *LITERALS) for line in found.lines}
    for line in text_of(data).lines_from(0, len(data.encode())):
        if any(literal in line.raw for literal in LITERALS):
            assert line.parsed.text in told


@given(LOGS)
def test_a_block_lies_where_it_says(data: str) -> None:
    """It starts with its first line, holds its headline, ends with its last, and knows its source."""
    raw = data.encode()
    for found in blocks(data, *LITERALS):
        assert found.source == "job.log"
        assert 0 <= found.offset <= found.headline <= found.end <= len(raw)
        assert raw[found.offset :].split(b"\n")[0].split(b"\r")[0].decode().endswith(found.lines[0])
        assert raw[: found.end].split(b"\n")[-1].split(b"\r")[-1].decode().endswith(found.lines[-1])


def test_lines_that_were_not_kept_are_counted_once() -> None:
    """`more` of a hit goes with its first block."""
    data = b"boom\nboom\n"
    counts = [more for _, more in build(text_of(data), [(0, 4, ("boom",), 7), (5, 9, ("boom",), 0)])]
    assert counts == [7, 0]


def test_an_error_glued_to_a_progress_bar_is_cut_off() -> None:
    """tqdm leaves its line open; what comes behind belongs to its own writer."""
    bar = "\rEpoch 1:  10%|#  | 1/10\rEpoch 1:  20%|## | 2/10"
    lines = [f"{HEADER}:", '  File "train.py", line 3, in step', "RuntimeError: boom"]
    glued = block(bar + "\n".join(f"[rank3]: {line}" for line in lines) + "\n", HEADER)
    assert (list(glued.lines), glued.origin.rank) == (lines, 3)
    redrawn = block(bar + "\r" + "\n".join(lines) + "\n", HEADER)
    assert list(redrawn.lines) == lines


def test_a_nccl_warning_takes_its_chain() -> None:
    """The return codes that the same process prints after it, past the lines of others; then it ends."""
    lines = [
        "node1:41:50 [0] misc/socket.cc:50 NCCL WARN socketStartConnect: Connect to 10.0.0.2<4711> failed",
        "node1:42:51 [1] NCCL INFO misc/socket.cc:55 -> 2",
        "node1:41:50 [0] NCCL INFO misc/socket.cc:55 -> 6",
        "step 3",
        "node1:41:50 [0] NCCL INFO transport/net.cc:55 -> 6",
        "node1:41:50 [0] NCCL INFO Channel 00",
        "node1:41:50 [0] NCCL INFO late.cc:55 -> 6",
    ]
    found = block("\n".join(lines) + "\n", "NCCL WARN ")
    assert found.lines == tuple(lines[index].split("] ", 1)[1] for index in (0, 2, 4))
    assert (found.form, found.origin.host, found.origin.pid) == ("nccl", "node1", 41)


def test_an_entry_of_the_elastic_table_is_whole() -> None:
    """The fields around `exitcode`, from the entry's number on and up to the next."""
    entries = [
        [
            f"[{number}]:",
            "  time      : 2026-11-21_03:07:45",
            "  host      : node1",
            f"  rank      : {number + 4} (local_rank: {number})",
            f"  exitcode  : {number + 1} (pid: 7{number})",
            "  error_file: <N/A>",
            "  traceback : To enable traceback see: https://x",
        ]
        for number in range(3)
    ]
    data = "\n".join(["Failures:", *(line for entry in entries for line in entry), "-" * 60]) + "\n"
    found = blocks(data, "exitcode  : ")
    assert [list(entry.lines) for entry in found] == entries
    assert {entry.form for entry in found} == {"elastic"}


def test_terminate_takes_what_and_frames() -> None:
    """Until a line of another shape, or of another writer's."""
    lines = [
        "terminate called after throwing an instance of 'c10::DistBackendError'",
        "  what():  boom",
        "Exception raised from x at y.cpp:1",
        "frame #0: a",
        "",
    ]
    found = block("\n".join([*lines, "step 3", "frame #1: late", ""]), "terminate called")
    assert found.form == "terminate"
    assert [line for line in found.lines if line] == lines[:-1]


def test_fatal_python_takes_the_threads() -> None:
    """faulthandler's dump, with the extension modules that close it."""
    lines = [
        "Fatal Python error: Segmentation fault",
        "",
        "Thread 0x00007f (most recent call first):",
        '  File "a.py", line 1 in f',
        "",
    ]
    lines += [
        "Current thread 0x00007e (most recent call first):",
        '  File "b.py", line 2 in g',
        "  ...",
        "",
        "Extension modules: numpy (total: 1)",
    ]
    found = block("\n".join([*lines, "step 3", ""]), "Fatal Python error: ")
    assert (found.form, list(found.lines)) == ("fatal-python", lines)


def test_a_record_of_c10d_takes_the_lines_without_its_stamp() -> None:
    """Only the first line of a record has `[rank3]:` and the stamp; the C++ frames follow bare."""
    lines = [
        "[rank3]:[E1121 03:07:45.123456789 ProcessGroupNCCL.cpp:607] Watchdog caught collective operation timeout: boom"
    ]
    lines += [
        "Exception raised from checkTimeout at x.cpp:1 (most recent call first):",
        "frame #0: c10::Error",
        "frame #1: clone",
    ]
    found = block("\n".join([*lines, "step 3", ""]), "boom")
    assert (found.form, found.origin.rank, len(found.lines)) == ("c10", 3, 4)


def test_received_signal_takes_its_stack() -> None:
    """Open MPI's report of a crash, behind the same host's prefix."""
    lines = [
        "[n1:77] *** Process received signal ***",
        "[n1:77] Signal: Segmentation fault (11)",
        "[n1:77] [ 0] libc.so.6(+0x42520)",
        "[n1:77] *** End of error message ***",
    ]
    found = block("\n".join([*lines, "step 3", ""]), "Process received signal")
    assert (found.form, list(found.lines)) == ("received-signal", lines)


def test_a_block_takes_the_time_before_it() -> None:
    """Tracebacks carry no stamp: the nearest one before by the same writer says when at the earliest."""
    trace = f'{HEADER}:\n  File "a.py", line 1, in f\nRuntimeError: boom\n'
    found = block("2026-11-21 03:07:45 INFO step 3\n" + trace, HEADER)
    assert found.origin.time == 1_795_230_465.0
    tagged = trace.replace("\n", "\n[rank1]: ").removesuffix("[rank1]: ")
    other = block("[rank2]: 2026-11-21 03:07:45 INFO step 3\n[rank1]: " + tagged, HEADER)
    assert (other.origin.time, other.origin.rank) == (None, 1)
    logged = block("2026-11-21 03:07:45 [rank1] INFO step 3\n[rank1]: " + tagged, HEADER)
    assert (logged.origin.time, logged.dated) == (1_795_230_465.0, False)
    assert block("2026-11-21 03:07:45 ERROR " + trace, HEADER).dated


def test_a_logged_exception_has_the_origin_of_its_record() -> None:
    """`logging.exception` prints the traceback bare, right behind the record that names the rank."""
    found = block(
        f'2026-11-21 03:07:45,372 [rank2] ERROR step failed\n{HEADER}:\n  File "a.py", line 1, in f\nRuntimeError: boom\n',
        HEADER,
    )
    assert (found.origin.rank, found.origin.time) == (2, pytest.approx(1_795_230_465.372))


@pytest.mark.parametrize(
    ("prefix", "steps", "expected"),
    [("[default1]:", 1, True), ("[default1]:", 0, False), ("", 30, True), ("", 3, False)],
)
def test_progress_afterwards_says_that_it_went_on(prefix: str, steps: int, expected: bool) -> None:
    """One step of the same rank is enough; where nobody knows the writer, much progress is asked for."""
    lines = [f"{HEADER}:", '  File "a.py", line 1, in f', "RuntimeError: boom", *(["step 4 loss 0.1"] * steps)]
    others = "[default2]:step 5\n" * 40
    assert block("".join(f"{prefix}{line}\n" for line in lines) + others, HEADER).goes_on is expected


@pytest.mark.parametrize(("steps", "expected"), [(10, True), (3, False)])
def test_steps_that_go_on_without_a_writer_say_that_it_went_on(steps: int, expected: bool) -> None:
    """In a plain shared log the others take some steps without the failed rank, but not many."""
    lines = [
        f"{HEADER}:",
        '  File "a.py", line 1, in f',
        "RuntimeError: boom",
        *(f"step {4 + at} loss 0.1" for at in range(steps)),
    ]
    assert block("\n".join(lines) + "\n", HEADER).goes_on is expected


@pytest.mark.parametrize(
    ("before", "aside"),
    [
        ("Exception ignored in: <function f>", "ignored"),
        ("Exception in thread Thread-1 (run):", "thread"),
        ("step 3", ""),
    ],
)
def test_python_announces_what_does_not_end_the_process(before: str, aside: str) -> None:
    """An exception in a destructor or a thread is told apart."""
    assert block(f'{before}\n{HEADER}:\n  File "a.py", line 1, in f\nRuntimeError: boom\n', HEADER).aside == aside


def test_the_name_of_a_signal_belongs_to_the_stack_below() -> None:
    """A handler that prints the signal and then the addresses tells of one crash; without a stack the line stands
    alone.
    """
    stack = ["./solver(_ZN6Solver4stepEd+0x1b) [0x55d3c8a4b12b]", "./solver(main+0x40) [0x55d3c8a4b2f0]"]
    lines = [f"[rank3]: {line}" for line in ("Segmentation fault, dumping stack", *stack)]
    found = block("\n".join([lines[0], "[rank0]: step 4", *lines[1:]]) + "\n", "Segmentation fault")
    assert (found.form, len(found.lines)) == ("backtrace", 3)
    assert block(lines[0] + "\n[rank3]: step 4\n", "Segmentation fault").form == "line"


def test_a_literal_in_the_middle_of_a_very_long_line_is_seen() -> None:
    """Of a line too long to show, the part around the literal is what is told, with its writer."""
    found = block("[rank3]: " + "x" * 60_000 + " boom " + "y" * 60_000 + "\nstep 3\n", "boom")
    assert "boom" in found.lines[0]
    assert len(found.lines[0]) < 40_000
    assert found.origin.rank == 3


def test_progress_on_the_other_stream_says_that_it_went_on() -> None:
    """Open MPI tags both streams of a rank; an exception on one is handled when the other goes on."""
    lines = [
        f"[1,2]<stderr>:{line}"
        for line in ("Traceback (most recent call last):", '  File "a.py", line 1, in f', "    g()", "ValueError: x")
    ]
    after = ["[1,2]<stdout>:step 4 loss 0.1", "[1,3]<stdout>:step 4 loss 0.1"]
    assert block("\n".join([*lines, *after]) + "\n", "Traceback").goes_on
    assert not block("\n".join([*lines, after[1]]) + "\n", "Traceback").goes_on


def test_coloured_prefixes_of_several_writers_come_apart() -> None:
    """Ray colours the name before each line: tracebacks of two workers, line by line in turn, come out whole."""
    stacks = [[f"{HEADER}:", f'  File "{name}.py", line 3, in {name}', f"ValueError: boom {name}"] for name in "ab"]
    lines = [
        f"\x1b[36m(Worker pid={pid})\x1b[0m {stack[at]}"
        for at in range(3)
        for pid, stack in zip((41, 52), stacks, strict=True)
    ]
    found = blocks("".join(f"{line}\n" for line in lines), HEADER)
    assert [(list(block.lines), block.origin.pid) for block in found] == [(stacks[0], 41), (stacks[1], 52)]
