"""The last lines of writers: what is unlike their usual output, and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from triage.evidence.endings.last_lines import MOST_USUAL_BEHIND, find_last_lines, without_usual
from triage.evidence.endings.shapes import shape_of

STEPS = "".join(f"step {n} loss {9 / n:.3f}\n" for n in range(1, 200))


def last_texts(text: str) -> list[str]:
    return [line.data.decode() for group in find_last_lines(b"", text.encode(), 0) for line in group.lines]


def test_a_log_that_ends_in_a_usual_line_has_no_last_lines() -> None:
    """Steps to the end are the usual output."""
    assert last_texts(STEPS) == []


def test_a_new_shape_at_the_end_is_returned() -> None:
    """One line is enough, in any style."""
    assert last_texts(STEPS + "rc=74 stage=feeder\n") == ["rc=74 stage=feeder"]


def test_few_usual_lines_may_follow() -> None:
    """Up to MOST_USUAL_BEHIND lines of others do not hide it; one more does."""
    behind = "".join(f"step {n} loss 0.1\n" for n in range(200, 200 + MOST_USUAL_BEHIND))
    assert last_texts(STEPS + "FATAL: gone\n" + behind) == ["FATAL: gone"]
    assert last_texts(STEPS + "FATAL: gone\n" + behind + "step 300 loss 0.1\n") == []


def test_a_failure_that_was_followed_by_progress_is_usual() -> None:
    """A line that the program survived before ends nothing the second time."""
    line = "ERROR data: sample 17 has no caption\n"
    assert last_texts(STEPS + line + STEPS + line) == []
    assert last_texts(STEPS + line) == [line.strip()]


def test_what_ranks_print_below_their_failures_is_no_usual_output() -> None:
    """Three ranks panic on one console; lines that stand elsewhere too, or below one failure only, can be usual."""
    below = "called `unwrap()` on an `Err` value: Sealed\nnote: run with `RUST_BACKTRACE=1`\n"
    panics = "".join(f"thread 'io-{n}' panicked at src/a.rs:7:{n}:\n{below}" for n in range(3))
    assert len(last_texts(STEPS + panics)) == 9
    assert len(last_texts(STEPS + below * 3 + STEPS + panics)) < 9
    one = "thread 'io-1' panicked at src/a.rs:7:1:\n"
    assert last_texts(STEPS + one + "resumed from 7\n" * (MOST_USUAL_BEHIND + 1)) == []


@pytest.mark.parametrize(
    ("behind", "has_end"),
    [("", True), ("step 51 loss 1.0\n" * (MOST_USUAL_BEHIND + 1), False), ("resumed from 7\n", True)],
)
def test_a_failure_that_many_ranks_print_in_a_few_lines_is_no_usual_output(behind: str, has_end: bool) -> None:
    """Behind a block that repeats up to the end, with a failure in each, nothing went on."""
    block = "lr: mismatched types\n./a.cue:{0}:1\n./b.cue:{0}:2\nlaunch: evaluation failed (exit 1)\n"
    assert (last_texts(STEPS + "".join(map(block.format, range(5))) + behind) != []) is has_end


@pytest.mark.parametrize(
    ("line", "has_end"),
    [
        ("Terminating process {} via signal SIGTERM\n", True),
        ("Killing subprocess {}\n", True),
        ("Finishing process {} via queue\n", False),
    ],
)
def test_the_processes_that_a_launcher_stops_are_no_usual_output(line: str, has_end: bool) -> None:
    """A launcher writes a line for each process that it stops; what a process wrote before them is the end."""
    stopped = "".join(line.format(n) for n in range(82, 82 + MOST_USUAL_BEHIND + 1))
    assert ("FATAL: page 7 is gone" in last_texts(STEPS + "FATAL: page 7 is gone\n" + stopped)) is has_end


def test_a_stream_behind_a_timestamp_stands_before_the_writer() -> None:
    """CloudWatch's stream names no process: the worker behind it does."""
    start = "2026-06-05T20:45:48.047206+00:00 train/algo-1 (RayTrainWorker pid={}) "
    steps = "".join(f"{start.format(pid)}step {step} loss 2.1\n" for step in range(30) for pid in (412, 413))
    frames = "".join(f"tidal3d  00000000a6283{n}  smooth_\n" for n in range(3))
    lines = [f"{start.format(pid)}{line}\n" for pid in (412, 413) for line in ("grid: broken", *frames.split("\n"))]
    assert last_texts(steps + "".join(lines))[0].endswith("grid: broken")


@pytest.mark.parametrize(("stated", "is_failure"), [("rank {0}: ", True), ("rank 7: ", False), ("", False)])
def test_what_each_rank_says_once_is_a_failure_of_each(stated: str, is_failure: bool) -> None:
    """Many lines of one shape are the usual output, unless each names another rank."""
    lines = [f"node3: sitter: {stated.format(rank)}the project exceeds its quota\n" for rank in range(16)]
    assert (last_texts(STEPS + "".join(lines)) != []) is is_failure
    lines = [f"node3: sitter: {stated.format(rank)}the project is within its quota\n" for rank in range(16)]
    assert last_texts(STEPS + "".join(lines)) == []


@pytest.mark.parametrize("before", ["Tue Aug 11 22:49:14 2026[{0}]<stderr>:", "2026-08-11 22:49:14,120 [rank{0}] "])
def test_a_rank_behind_a_stamp_with_blanks_is_a_writer(before: str) -> None:
    """Horovod's and other stamps stand before the tag: rank 1 died, the others went on."""
    steps = [(rank, f"step {n} loss 1.0") for n in range(50) for rank in (0, 1) if rank == 0 or n < 40]
    steps.insert(85, (1, "lease lost"))
    assert last_texts("".join(f"{before.format(rank)}{text}\n" for rank, text in steps)) == [
        f"{before.format(1)}lease lost"
    ]


def test_writers_are_told_apart() -> None:
    """Rank 1 died, the others went on."""
    text = "".join(f"[rank{rank}]: step {n} loss 1.0\n" for n in range(50) for rank in (0, 1) if rank == 0 or n < 40)
    assert last_texts(text.replace("[rank0]: step 45", "[rank1]: lease lost\n[rank0]: step 45")) == [
        "[rank1]: lease lost"
    ]


@pytest.mark.parametrize("before", ["", "2026-12-07T05:18:12+0545 node5 train[412]: "])
def test_numbers_in_brackets_are_writers_where_most_lines_have_one(before: str) -> None:
    """Rank 1 died, the others went on, as Hydra prepends ranks; also behind the prefix of a journal."""
    steps = [(rank, f"step {n} loss 1.0") for n in range(50) for rank in (0, 1) if rank == 0 or n < 40]
    steps.insert(85, (1, "lease lost"))
    assert last_texts("".join(f"{before}[{rank}] {text}\n" for rank, text in steps)) == [f"{before}[1] lease lost"]


def test_lines_with_only_a_timestamp_are_no_usual_output() -> None:
    """They stand behind each record of an export, the last one too."""
    stamped = [f"{line}\n2026-12-04T20:24:{n % 60:02}.5Z\n" for n, line in enumerate(STEPS.split("\n")[:50])]
    assert last_texts("".join(stamped) + "FATAL: gone\n2026-12-04T20:25:01.5Z\n") == ["FATAL: gone"]


def test_what_each_rank_writes_before_it_stops_is_not_usual() -> None:
    """Several ranks of one file report the same failure and stop; many more would be the usual output."""
    failed = "".join(
        f"[agent/drain] rank={rank} ERROR: host was drained\n[agent/drain] rank={rank} stopping\n" for rank in (0, 1, 2)
    )
    assert last_texts(STEPS + failed) == failed.splitlines()


def test_the_shape_of_a_record_is_its_keys_its_level_and_its_message() -> None:
    """Numbers differ between steps; another level is another shape."""
    first, second = (f'{{"level":"info","msg":"step {n}","step":{n}}}'.encode() for n in (3, 14))
    assert shape_of(first) == shape_of(second)
    assert shape_of(first) != shape_of(first.replace(b"info", b"error"))


@given(st.binary(max_size=2000), st.binary(max_size=500))
def test_any_bytes(tail: bytes, head: bytes) -> None:
    """No bytes raise, and every line stands where it says."""
    for group in find_last_lines(head, tail, 0):
        assert all(tail[line.offset : line.end] == line.data for line in group.lines)


def test_a_failure_that_two_ranks_print_is_not_usual_because_of_its_numbers() -> None:
    """Lines that look like progress are usual when they stand twice, unless they say or follow a failure."""
    quota = "sitter: project p{n} has exceeded its quota: step {n}/9\n"
    value = "called `Result::unwrap()` on an `Err` value: Sealed { epoch: {n} }"
    panic = f"thread 'spool-{{n}}' panicked at src/a.rs:7:1:\n{value}\n"
    for text in (quota, panic):
        both = text.replace("{n}", "3") + text.replace("{n}", "5")
        assert last_texts(both) == both.splitlines()
    assert last_texts("epoch: 3 of 9\nepoch: 5 of 9\n") == []


@pytest.mark.parametrize(
    ("first", "lines", "writers"),
    [(120, 5, {b""}), (120, 4, {b"[120] ", b"[121] ", b"[122] ", b"[123] "}), (0, 5, None)],
)
def test_a_counter_of_lines_is_no_writer(first: int, lines: int, writers: set[bytes] | None) -> None:
    """Consoles of CI number their lines; ranks begin with 0, and few numbers in order may be ranks too."""
    tail = "".join(f"[{first + number}] Fatal: cannot go on with part {number}\n" for number in range(lines))
    expected = writers if writers is not None else {b"[%d] " % number for number in range(lines)}
    assert {line.writer for group in find_last_lines(b"", tail.encode(), 0) for line in group.lines} == expected


@pytest.mark.parametrize("count", [1, 3, 8])
def test_tracebacks_of_many_ranks_are_no_usual_output(count: int) -> None:
    """Behind any prefix: the line before them stays among the last lines."""
    frames = ("Traceback (most recent call last):", '  File "a.py", line 3, in f', "    f()", "RuntimeError: closed")
    tracebacks = "".join(f"10:00:0{rank} [rank{rank}]: {frame}\n" for rank in range(count) for frame in frames)
    assert last_texts(f"{STEPS}cannot open the index\n{tracebacks}")[0] == "cannot open the index"


@pytest.mark.parametrize(
    ("message", "is_usual"), [("", False), ("\\n", False), ("-----", False), ("7", True), ("好", True)]
)
def test_records_of_empty_lines_are_no_usual_output(message: str, is_usual: bool) -> None:
    """A collector writes a record for each empty line and rule of an error; records with a text are counted."""
    records = f'{{"log": "{message}", "stream": "stderr"}}\n' * 4
    assert bool(last_texts(f"{STEPS}FATAL: gone\n{records}")) is not is_usual


def test_an_exception_that_stands_in_the_middle_too_stays_below_its_frames() -> None:
    """Many ranks end with it, so it is no usual output; any other line of the middle is."""
    stack = '[0] Traceback (most recent call last):\n[0]   File "a.py", line 8, in f\n[0] '
    (group,) = find_last_lines(b"", f"{stack}ValueError: bad shard\n[0] closing\n".encode(), 0)
    exception, closing = group.lines[-2:]
    lines = without_usual(group.lines, {exception.form.shape, closing.form.shape})
    assert lines == group.lines[:-1]
