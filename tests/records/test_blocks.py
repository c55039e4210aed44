"""triage.records.blocks"""

from __future__ import annotations

import pytest
from hypothesis import example, given, strategies as st

from triage.records.blocks import FORMS, build_blocks
from triage.records.text import Text

from .factories import HEADER, block, blocks, text_of

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


def test_the_last_form_takes_any_line() -> None:
    """Names of forms are unique."""
    assert len({form.name for form in FORMS}) == len(FORMS)
    assert FORMS[-1].name == "line"


@given(LOGS)
def test_each_line_belongs_to_at_most_one_block(data: str) -> None:
    """For any mix of writers and forms."""
    numbered = "\n".join(
        f"{line} #{index}" if line and not line.endswith(":") else line for index, line in enumerate(data.split("\n"))
    )
    lines = [
        line
        for result in blocks(numbered, *LITERALS)
        for line in result.lines
        if "#" in line and "frame #" not in line and "|#" not in line
    ]
    assert len(lines) == len(set(lines))


@given(LOGS)
@example("Traceback (most recent call last):\nTraceback (most recent call last):\nRuntimeError: boom\n  what():  boom")
@example("Traceback (most recent call last):\n  what():  boom\nTraceback (most recent call last):\nRuntimeError: boom")
def test_every_hit_line_is_in_a_block(data: str) -> None:
    """The text of every hit is in some block."""
    lines = {line for result in blocks(data, *LITERALS) for line in result.lines}
    for line in text_of(data).lines_from(0, len(data.encode())):
        if any(literal in line.raw for literal in LITERALS):
            assert line.parsed.text in lines


@given(LOGS)
def test_a_block_has_the_offsets_of_its_lines(data: str) -> None:
    """It starts with its first line, holds its headline, ends with its last, and names its source."""
    raw = data.encode()
    for result in blocks(data, *LITERALS):
        assert result.source == "job.log"
        assert 0 <= result.offset <= result.headline <= result.end <= len(raw)
        assert raw[result.offset :].split(b"\n")[0].split(b"\r")[0].decode().endswith(result.lines[0])
        assert raw[: result.end].split(b"\n")[-1].split(b"\r")[-1].decode().endswith(result.lines[-1])


def test_omitted_lines_are_counted_once() -> None:
    """The count of a hit goes with its first block."""
    data = b"boom\nboom\n"
    counts = [more for _, more in build_blocks(text_of(data), [(0, 4, ("boom",), 7), (5, 9, ("boom",), 0)])]
    assert counts == [7, 0]


def test_an_error_behind_a_progress_bar_is_a_line_of_its_own() -> None:
    """tqdm does not end its line; what follows belongs to its own writer."""
    bar = "\rEpoch 1:  10%|#  | 1/10\rEpoch 1:  20%|## | 2/10"
    lines = [f"{HEADER}:", '  File "train.py", line 3, in step', "RuntimeError: boom"]
    glued = block(bar + "\n".join(f"[rank3]: {line}" for line in lines) + "\n", HEADER)
    assert (list(glued.lines), glued.origin.rank) == (lines, 3)
    redrawn = block(bar + "\r" + "\n".join(lines) + "\n", HEADER)
    assert list(redrawn.lines) == lines


def test_a_nccl_warning_includes_its_chain() -> None:
    """The return codes that the same process prints after it, among lines of others, until another line of its own."""
    lines = [
        "node1:41:50 [0] misc/socket.cc:50 NCCL WARN socketStartConnect: Connect to 10.0.0.2<4711> failed",
        "node1:42:51 [1] NCCL INFO misc/socket.cc:55 -> 2",
        "node1:41:50 [0] NCCL INFO misc/socket.cc:55 -> 6",
        "step 3",
        "node1:41:50 [0] NCCL INFO transport/net.cc:55 -> 6",
        "node1:41:50 [0] NCCL INFO Channel 00",
        "node1:41:50 [0] NCCL INFO late.cc:55 -> 6",
    ]
    result = block("\n".join(lines) + "\n", "NCCL WARN ")
    assert result.lines == tuple(lines[index].split("] ", 1)[1] for index in (0, 2, 4))
    assert (result.form, result.origin.host, result.origin.pid) == ("nccl", "node1", 41)


def test_an_entry_of_torchelastics_table_is_one_block() -> None:
    """The fields around `exitcode`, from the number of the entry up to the next."""
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
    result = blocks(data, "exitcode  : ")
    assert [list(entry.lines) for entry in result] == entries
    assert {entry.form for entry in result} == {"elastic"}


def test_terminate_includes_what_and_frames() -> None:
    """Until a line of another shape or writer."""
    lines = [
        "terminate called after throwing an instance of 'c10::DistBackendError'",
        "  what():  boom",
        "Exception raised from x at y.cpp:1",
        "frame #0: a",
        "",
    ]
    result = block("\n".join([*lines, "step 3", "frame #1: late", ""]), "terminate called")
    assert result.form == "terminate"
    assert [line for line in result.lines if line] == lines[:-1]


def test_fatal_python_includes_the_threads() -> None:
    """faulthandler's dump, with the extension modules at its end."""
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
    result = block("\n".join([*lines, "step 3", ""]), "Fatal Python error: ")
    assert (result.form, list(result.lines)) == ("fatal-python", lines)


def test_a_record_of_c10d_includes_its_frames() -> None:
    """Only its first line has `[rank3]:` and the timestamp; the C++ frames follow without."""
    lines = [
        "[rank3]:[E1121 03:07:45.123456789 ProcessGroupNCCL.cpp:607] Watchdog caught collective operation timeout: boom"
    ]
    lines += [
        "Exception raised from checkTimeout at x.cpp:1 (most recent call first):",
        "frame #0: c10::Error",
        "frame #1: clone",
    ]
    result = block("\n".join([*lines, "step 3", ""]), "boom")
    assert (result.form, result.origin.rank, len(result.lines)) == ("c10", 3, 4)


@pytest.mark.parametrize(("others", "is_joined"), [(400, True), (401, False)])
def test_lines_without_a_writer_are_near_their_record(others: int, *, is_joined: bool) -> None:
    """The frames below a record of c10d have no prefix: they are its own unless too many lines of others come first."""
    head = "[rank0]:[E1120 03:07:45.123 ProcessGroupNCCL.cpp:632] [Rank 0] boom"
    data = "\n".join([head, *["[rank1]: x"] * others, "frame #0: c10::Error::Error(x) (0x7f in lib.so)", ""])
    assert ("frame #0" in "\n".join(block(data, "boom").lines)) == is_joined


def test_received_signal_includes_its_stack() -> None:
    """Open MPI's report of a crash, behind the prefix of one host."""
    lines = [
        "[n1:77] *** Process received signal ***",
        "[n1:77] Signal: Segmentation fault (11)",
        "[n1:77] [ 0] libc.so.6(+0x42520)",
        "[n1:77] *** End of error message ***",
    ]
    result = block("\n".join([*lines, "step 3", ""]), "Process received signal")
    assert (result.form, list(result.lines)) == ("received-signal", lines)


@pytest.mark.parametrize(
    "frames", [["    0x7fe0922a3f16 (libc.so.6)", "    Pool.get (pool.py:33)"], ["    <module> (a.py:7)"]]
)
def test_a_stamp_on_every_line_does_not_cut_a_stack_of_py_spy(frames: list[str]) -> None:
    """The frames stay indented behind the timestamp that a collector wrote, also those that begin with a capital."""
    lines = [
        "Process 8470: python train.py",
        "Python v3.11.7 (/usr/bin/python3)",
        "",
        'Thread 8470 (idle): "MainThread"',
    ]
    text = "".join(f"2026-11-21 02:30:00 {line}\n" for line in (*lines, *frames))
    result = block(text, 'Thread 8470 (idle): "MainThread"')
    assert (result.form, list(result.lines)) == ("backtrace", [*lines, *frames])


def test_a_block_without_a_time_has_the_time_before_it() -> None:
    """Tracebacks have no timestamp: the nearest one before by the same writer is the earliest possible time."""
    trace = f'{HEADER}:\n  File "a.py", line 1, in f\nRuntimeError: boom\n'
    result = block("2026-11-21 03:07:45 INFO step 3\n" + trace, HEADER)
    assert result.origin.time == 1_795_230_465.0
    tagged = trace.replace("\n", "\n[rank1]: ").removesuffix("[rank1]: ")
    other = block("[rank2]: 2026-11-21 03:07:45 INFO step 3\n[rank1]: " + tagged, HEADER)
    assert (other.origin.time, other.origin.rank) == (None, 1)
    logged = block("2026-11-21 03:07:45 [rank1] INFO step 3\n[rank1]: " + tagged, HEADER)
    assert (logged.origin.time, logged.has_own_time) == (1_795_230_465.0, False)
    assert block("2026-11-21 03:07:45 ERROR " + trace, HEADER).has_own_time


def test_a_logged_exception_has_the_origin_of_its_record() -> None:
    """`logging.exception` prints the traceback without a prefix, directly behind the record with the rank."""
    result = block(
        "2026-11-21 03:07:45,372 [rank2] ERROR step failed\n"
        f'{HEADER}:\n  File "a.py", line 1, in f\nRuntimeError: boom\n',
        HEADER,
    )
    assert (result.origin.rank, result.origin.time) == (2, pytest.approx(1_795_230_465.372))


@pytest.mark.parametrize(("between", "is_own"), [("", True), ("retry loop\n", False), ("[rank1]: step 3\n", True)])
def test_a_record_farther_above_does_not_date_a_traceback(between: str, is_own: bool) -> None:
    """An earlier warning of the same rank is no record of the exception where an unprefixed line stands between."""
    warning = "[rank2]:[W1121 03:07:45.372000000 Utils.hpp:164] Warning: ASYNC_ERROR is deprecated\n"
    trace = f'[rank2]: {HEADER}:\n[rank2]:   File "a.py", line 1, in f\n[rank2]: RuntimeError: boom\n'
    assert block(warning + between + trace, HEADER).has_own_time is is_own


@pytest.mark.parametrize(
    ("before", "prefix", "rank"),
    [
        ("[default1]:2026-11-21 03:07:45 [rank2] ERROR step failed", "[default1]:", 2),
        ("[default1]:2026-11-21 03:07:45 [rank2] WARNING no index", "[default1]:", 2),
        ("[default1]:2026-11-21 03:07:45 [rank2] INFO step 3", "[default1]:", None),
        ("[default1]:2026-11-21 03:07:45 [rank2] ERROR step failed", "[default3]:", None),
    ],
)
def test_a_logged_exception_has_the_origin_of_its_record_behind_a_prefix(
    before: str, prefix: str, rank: int | None
) -> None:
    """A collector puts the same prefix before the record and the lines of its traceback."""
    trace = (f"{HEADER}:", '  File "a.py", line 1, in f', "RuntimeError: boom")
    assert block(f"{before}\n" + "".join(f"{prefix}{line}\n" for line in trace), HEADER).origin.rank == rank


@pytest.mark.parametrize(
    ("prefix", "steps", "expected"),
    [("[default1]:", 1, True), ("[default1]:", 0, False), ("", 30, True), ("", 3, False)],
)
def test_progress_afterwards_means_continued(prefix: str, steps: int, expected: bool) -> None:
    """One step of the same rank is enough; without a known writer, much progress is needed."""
    lines = [f"{HEADER}:", '  File "a.py", line 1, in f', "RuntimeError: boom", *(["step 4 loss 0.1"] * steps)]
    others = "[default2]:step 5\n" * 40
    assert block("".join(f"{prefix}{line}\n" for line in lines) + others, HEADER).continued is expected


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        ("03:07:46 INFO step 4", True),
        ("03:07:45 INFO step 4", True),
        ("03:07:44 INFO step 4", False),
        ("03:07:46 INFO step 4 [repeated 3x across cluster]", False),
    ],
)
def test_late_lines_are_no_progress(step: str, expected: bool) -> None:
    """A step that is older than the exception above it, or that Ray printed for several workers, shows nothing."""
    ray = "(RayTrainWorker pid=71) "
    lines = ["2026-11-21 03:07:45 ERROR failed", f"{HEADER}:", '  File "a.py", line 1, in f', "RuntimeError: boom"]
    text = "".join(f"{ray}{line}\n" for line in [*lines, f"2026-11-21 {step}"])
    assert block(text, HEADER).continued is expected


@pytest.mark.parametrize(("stamp", "expected"), [("03:06:45", False), ("03:06:44", True)])
def test_an_earlier_time_is_another_log(stamp: str, expected: bool) -> None:
    """Lines of one log come late by a minute at most; what begins earlier than that is of another writer."""
    trace = ["2026-11-21 03:07:45 ERROR failed", f"{HEADER}:", '  File "a.py", line 1, in f', "RuntimeError: boom"]
    text = "\n".join([*trace, f"2026-11-21 {stamp} INFO begins"])
    assert block(f"{text}\n", HEADER).ends_writer is expected


@pytest.mark.parametrize(("steps", "expected"), [(10, True), (3, False)])
def test_many_steps_without_a_writer_mean_continued(steps: int, expected: bool) -> None:
    """In a plain shared log the other ranks take some steps without the failed rank, but not many."""
    lines = [
        f"{HEADER}:",
        '  File "a.py", line 1, in <module>',
        "RuntimeError: boom",
        *(f"step {4 + at} loss 0.1" for at in range(steps)),
    ]
    assert block("\n".join(lines) + "\n", HEADER).continued is expected


@pytest.mark.parametrize(
    ("before", "nonfatal"),
    [
        ("Exception ignored in: <function f>", "ignored"),
        ("Exception in thread Thread-1 (run):", "thread"),
        ("step 3", ""),
    ],
)
def test_nonfatal_exceptions_are_recognised(before: str, nonfatal: str) -> None:
    """Python announces an exception in a destructor or a thread."""
    assert block(f'{before}\n{HEADER}:\n  File "a.py", line 1, in f\nRuntimeError: boom\n', HEADER).nonfatal == nonfatal


def test_the_name_of_a_signal_belongs_to_the_stack_behind_it() -> None:
    """A handler that prints a signal and then the addresses reports one crash. Without a stack the line is alone."""
    stack = ["./solver(_ZN6Solver4stepEd+0x1b) [0x55d3c8a4b12b]", "./solver(main+0x40) [0x55d3c8a4b2f0]"]
    lines = [f"[rank3]: {line}" for line in ("Segmentation fault, dumping stack", *stack)]
    result = block("\n".join([lines[0], "[rank0]: step 4", *lines[1:]]) + "\n", "Segmentation fault")
    assert (result.form, len(result.lines)) == ("backtrace", 3)
    assert block(lines[0] + "\n[rank3]: step 4\n", "Segmentation fault").form == "line"


def test_a_literal_in_the_middle_of_a_very_long_line_is_shown() -> None:
    """Of a line too long to show, the part around the literal is in the block."""
    result = block("[rank3]: " + "x" * 60_000 + " boom " + "y" * 60_000 + "\nstep 3\n", "boom")
    assert "boom" in result.lines[0]
    assert len(result.lines[0]) < 40_000
    assert result.origin.rank == 3


def test_progress_on_the_other_stream_means_continued() -> None:
    """Open MPI tags both streams of a rank: an exception on one is handled if the other goes on."""
    lines = [
        f"[1,2]<stderr>:{line}"
        for line in ("Traceback (most recent call last):", '  File "a.py", line 1, in f', "    g()", "ValueError: x")
    ]
    after = ["[1,2]<stdout>:step 4 loss 0.1", "[1,3]<stdout>:step 4 loss 0.1"]
    assert block("\n".join([*lines, *after]) + "\n", "Traceback").continued
    assert not block("\n".join([*lines, after[1]]) + "\n", "Traceback").continued


def test_coloured_prefixes_are_separated() -> None:
    """Ray colours the name before each line: interleaved tracebacks of two workers come out whole."""
    stacks = [[f"{HEADER}:", f'  File "{name}.py", line 3, in {name}', f"ValueError: boom {name}"] for name in "ab"]
    lines = [
        f"\x1b[36m(Worker pid={pid})\x1b[0m {stack[at]}"
        for at in range(3)
        for pid, stack in zip((41, 52), stacks, strict=True)
    ]
    result = blocks("".join(f"{line}\n" for line in lines), HEADER)
    assert [(list(block.lines), block.origin.pid) for block in result] == [(stacks[0], 41), (stacks[1], 52)]


LIST = "ERROR load: keys are missing below:\n    a.weight\n    b.weight\n"


@pytest.mark.parametrize("hit", ["ERROR load", "b.weight"])
def test_a_list_belongs_to_the_line_that_announces_it(hit: str) -> None:
    """Whether the announcing line is hit or an entry, they are one block; the next sentence is none of it."""
    whole = block(f"step 1\n{LIST}step 2\n", hit)
    assert whole.lines == tuple(LIST.strip().split("\n"))


@pytest.mark.parametrize("entry", ["/job:w/task:3", "3", "3, 14"])
def test_unprefixed_entries_belong_to_a_record(entry: str) -> None:
    """A record of glog goes on without its prefix, as that of JAX's coordination service does."""
    head = "E1120 10:15:00.123456 12345 coordination_service.cc:1021] The following tasks are unhealthy:"
    whole = block(f"{head}\n{entry}\nThe tasks have crashed.\n", "unhealthy")
    assert whole.lines == ("The following tasks are unhealthy:", entry)


@pytest.mark.parametrize(
    ("text", "hit", "count"),
    [
        ("the heading below announces:\n    Reason: OOMKilled", "OOMKilled", 2),
        ("three words only:\n    Reason: OOMKilled", "OOMKilled", 1),
        ("this line announces nothing\n    Reason: OOMKilled", "OOMKilled", 1),
        ("the heading below announces:\nReason of it\n    OOMKilled", "OOMKilled", 1),
        ("the list below is long:" + 12 * "\n    entry" + "\n    OOMKilled", "OOMKilled", 1),
        ("the list below is long:" + 11 * "\n    entry" + "\n    OOMKilled", "OOMKilled", 13),
    ],
)
def test_only_a_sentence_announces_a_list(text: str, hit: str, count: int) -> None:
    """The heading of a part of a document does not, nor does a line that the list does not directly follow."""
    assert len(block(f"{text}\n", hit).lines) == count


@pytest.mark.parametrize(
    ("opens", "follows", "most"),
    [
        ("terminate called after throwing an instance", "frame #1: f", 80),
        ("Fatal Python error: Aborted", '  File "a.py", line 1 in f', 400),
        ("mpirun noticed that process rank 3", "with PID 71", 6),
        ("MPI_ABORT was invoked on rank 3", "with errorcode 1", 4),
        ("=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES", "=   EXIT CODE: 9", 5),
        ("  Process name: [[1,1],3]", "  Exit code:    1", 3),
        ("EI0006: boom", "        Solution: wait", 30),
        ("[rank3]:[E1121 03:07:45.123456789 ProcessGroupNCCL.cpp:607] boom", "frame #1: f", 80),
        ("[n1:77] *** Process received signal ***", "[n1:77] [ 0] libc.so.6(+0x42520)", 80),
    ],
)
def test_a_block_has_at_most_so_many_lines(opens: str, follows: str, most: int) -> None:
    """Each form has its own limit, and ends before it at a line of another kind."""
    whole = block("\n".join([opens, *[follows] * (most + 5)]) + "\n", opens)
    assert len(whole.lines) == most
    assert len(block("\n".join([opens, follows, "-----", follows]) + "\n", opens).lines) == 2


@pytest.mark.parametrize(("others", "count"), [(31, 2), (32, 1)])
def test_the_chain_of_a_nccl_warning_is_near(others: int, count: int) -> None:
    """Among the next 32 lines; the lines of another process on the way are skipped."""
    warning, chain = "n1:41:50 [0] a.cc:50 NCCL WARN boom", "n1:41:50 [0] NCCL INFO misc/socket.cc:55 -> 6"
    other = "n1:42:51 [1] NCCL INFO misc/socket.cc:55 -> 2"
    assert len(block("\n".join([warning, *[other] * others, chain]) + "\n", "NCCL WARN").lines) == count
    assert len(block("\n".join([warning, *[chain] * 30]) + "\n", "NCCL WARN").lines) == 17


def test_the_chain_of_a_nccl_warning_is_of_its_process() -> None:
    """A line that names the pid and is none of NCCL does not end it; one of another rank with this pid is not taken."""
    warning, chain = "n1:41:50 [0] a.cc:50 NCCL WARN boom", "n1:41:50 [0] NCCL INFO misc/socket.cc:55 -> 6"
    lines = [warning, "n1:41:50 [0] loads", f"[rank3]: {chain}", chain]
    assert len(block("\n".join(lines) + "\n", "NCCL WARN").lines) == 2
    bare = ["NCCL WARN boom", "step 3", "NCCL INFO misc/socket.cc:55 -> 6"]
    assert len(block("\n".join(bare) + "\n", "NCCL WARN").lines) == 2


def test_an_entry_without_its_number_has_its_nearest_fields() -> None:
    """Five lines above and three below `exitcode`."""
    fields = [f"  field{number}    : x" for number in range(8)]
    data = "\n".join([*fields, "  exitcode  : 1 (pid: 70)", *fields]) + "\n"
    [entry] = blocks(data, "exitcode  : ")
    assert list(entry.lines) == [*fields[3:], "  exitcode  : 1 (pid: 70)", *fields[:3]]


def test_the_settings_of_a_rendezvous_are_one_block() -> None:
    """At most twelve of them, among the next 60 lines of the agent."""
    opens, setting = "[default] Rendezvous complete for workers. Result:", "  restart_count=0"
    assert len(block("\n".join([opens, *[setting] * 20]) + "\n", "Rendezvous complete").lines) == 13
    for others, count in ((59, 2), (60, 1)):
        data = "\n".join([opens, *["step 3"] * others, setting]) + "\n"
        assert len(block(data, "Rendezvous complete").lines) == count


def test_the_failures_of_pytest_are_blocks() -> None:
    """Each with its reason from above, of the same writer, and its exception as the headline."""
    lines = ["____ test_one ____", "E   ValueError: x", "a.py:3: ValueError", "=== short test summary info ==="]
    lines += ["FAILED a.py::test_one - ValueError: x", "FAILED a.py::test_two"]
    other = "[rank1]: E   KeyError: 1"
    data = "".join(f"[rank0]: {line}\n" for line in lines[:2]) + f"{other}\n"
    data += "".join(f"[rank0]: {line}\n" for line in lines[2:])
    first, second = blocks(data, "short test summary info")
    assert list(first.lines) == [lines[1], lines[2], lines[4]]
    assert data.encode()[first.headline :].startswith(b"[rank0]: E   ValueError")
    assert list(second.lines) == [lines[5]]


def test_a_reason_is_in_one_block_only() -> None:
    """A second summary names the test again: its block is the line of the summary, which is its headline."""
    summary = ["=== short test summary info ===", "FAILED a.py::test_one", "=== 1 failed in 0.1s ==="]
    data = "\n".join(["____ test_one ____", "E   ValueError: x", *summary, *summary]) + "\n"
    first, second = blocks(data, "short test summary info")
    assert (first.lines, second.lines) == (("E   ValueError: x", summary[1]), (summary[1],))
    assert second.headline == data.rindex("FAILED")


@pytest.mark.parametrize(
    ("frames", "prefix", "is_mixed"), [("ab", "", False), ("aa", "", True), ("aa", "[rank1]: ", False)]
)
def test_a_frame_that_repeats_without_a_header_is_of_two_writers(frames: str, prefix: str, is_mixed: bool) -> None:
    """Where lines name no writer, the same frame twice means that two writers printed this traceback."""
    lines = [f'{prefix}  File "{name}.py", line 1, in f' for name in frames] + [f"{prefix}ValueError: x"]
    text = text_of("\n".join(lines) + "\n")
    [(result, _)] = build_blocks(text, [], [list(text.lines_from(0, text.size))])
    assert (result.ambiguous or result.writers > 1) is is_mixed


def test_the_rank_of_a_block_may_stand_in_a_later_line() -> None:
    """Where its first line has no prefix and the next ones have a logger's, with the rank."""
    frame = "2026-11-21 03:07:45 {}#0  0x00007f9ba2a969fc in f () at a.c:7\n"
    assert block("Segmentation fault\n" + frame.format("[rank2] "), "0x00007f").origin.rank == 2
    assert block("Segmentation fault\n" + frame.format(""), "0x00007f").origin.rank is None


def test_the_time_of_another_writer_is_not_that_of_a_block() -> None:
    """Even if the ranks of both are unknown."""
    trace = f'{HEADER}:\n  File "a.py", line 1, in f\nRuntimeError: boom\n'
    assert block("[default1]:2026-11-21 03:07:45 INFO step 3\n" + trace, HEADER).origin.time is None


@pytest.mark.parametrize(("name", "is_dated"), [("rank_3.log", True), ("rank_5.log", False), ("job.log", False)])
def test_in_the_file_of_a_rank_lines_without_a_rank_are_its_own(name: str, is_dated: bool) -> None:
    """The program's logger writes no rank there; in another file such a line may be of any rank."""
    raw = b"2026-11-21 03:07:45 INFO step 3\n[rank3]: NCCL WARN boom\n"
    text = Text(name, lambda offset, length: raw[offset : offset + length], len(raw), 2026)
    [(result, _)] = build_blocks(text, [(raw.index(b"[rank3]"), len(raw) - 1, ("boom",), 0)])
    assert (result.origin.time is not None) is is_dated


@pytest.mark.parametrize(
    ("before", "caught"),
    [
        ("step 3", True),
        ("2026-11-21 03:07:45,372 WARNING cache not read", True),
        ("2026-11-21 03:07:45,372 ERROR training failed", False),
    ],
)
def test_an_exception_that_is_logged_as_an_error_is_not_only_caught(before: str, caught: bool) -> None:
    """A program that gives up catches the exception too, and says so."""
    lines = [before, f"{HEADER}:", '  File "train.py", line 9, in load', "    read()", "KeyError: 'a'"]
    (traceback,) = [each for each in blocks("\n".join(lines) + "\n", HEADER) if each.form == "traceback"]
    assert traceback.caught is caught


TAGGED = [f"{HEADER}:", '  File "a.py", line 1, in f', "RuntimeError: boom", "rows of the table: none"]


def lines_of_tagged(before: str) -> int:
    """Return how many lines the traceback of rank 1 has behind other lines; 4 with a message of two lines."""
    return len(block(before + "".join(f"[rank1]: {line}\n" for line in TAGGED), HEADER).lines)


@pytest.mark.parametrize(("distance", "count"), [(1 << 16, 3), ((1 << 16) + 1, 4)])
def test_output_with_a_tag_is_looked_for_in_64_kib(distance: int, count: int) -> None:
    """If a rank tags what it prints before its traceback, a line behind the exception is no part of the message."""
    own = "[rank1]: warm up\n"
    others = "[rank2]: " + "x" * 100 + "\n"
    left = distance - len(own)
    filling = others * (left // len(others)) + "y" * (left % len(others) - 1) + "\n"
    assert len(own + filling) == distance
    assert lines_of_tagged(own + filling) == count


@pytest.mark.parametrize(
    ("before", "count"),
    [
        ("", 4),
        ("[rank1]: warm up\n", 3),
        ("[rank1]: KeyError: a\n[rank1]: \n", 4),
        ("[rank1]: KeyError: a\n[rank2]: warm up\r[rank2]: warm up\n", 4),
    ],
    ids=["nothing", "output", "an empty line", "another rank"],
)
def test_the_nearest_own_line_says_whether_output_is_tagged(before: str, count: int) -> None:
    """An earlier exception shows that only tracebacks have the tag; empty lines and those of others say nothing."""
    assert lines_of_tagged(before) == count


@pytest.mark.parametrize(
    ("behind", "rank"),
    [
        ("[ERROR] 2026-09-14-08:12:21 (PID:7721, Device:3, RankID:11) ERR00100 PTA call acl api failed", 11),
        ("[ERROR] 2026-09-14-08:12:21 (PID:7721, Device:3, RankID:-1) ERR00100 PTA call acl api failed", None),
        ("[ERROR] 2026-09-14-08:12:21 (PID:7721, Device:3, RankID:11) the next step", None),
        ("step 3 loss 0.1", None),
    ],
)
def test_the_error_code_of_torch_npu_names_the_rank_of_the_exception_above(behind: str, rank: int | None) -> None:
    """It ends the message of the exception; another record of that rank does not."""
    text = f'{HEADER}:\n  File "train.py", line 3, in step\nRuntimeError: boom\n{behind}\n'
    assert block(text, HEADER).origin.rank == rank
