"""triage.records.activity"""

from __future__ import annotations

from unittest import mock

import pytest
from hypothesis import given, strategies as st

from triage.ranks.grammars import BY_START
from triage.ranks.layouts import Layout
from triage.records import activity as module
from triage.records.activity import PROGRESS, SILENCE, find_earlier_activity, find_silent_ranks, read_activity

AT = 1_795_230_465.0  # 2026-11-21 03:07:45 UTC


def test_the_last_step_of_every_rank_is_read() -> None:
    """Each of several ranks in one file has its last step, and the time of its line."""
    lines = [f"2026-11-21 03:07:45 [rank{rank}] INFO step {step} loss 0.1" for step in range(50) for rank in range(4)]
    activity = read_activity("\n".join(lines).encode() + b"\n", 0, 2026)
    assert {entry.origin.rank: entry.step for entry in activity} == dict.fromkeys(range(4), 49)
    assert {entry.origin.time for entry in activity} == {AT}


def test_ranks_behind_the_prefix_of_one_writer_are_told_apart() -> None:
    """A collector's prefix, the same before all lines, does not hide the last step of a rank."""
    record = '{{"__REALTIME_TIMESTAMP":"1795230465000000","_HOSTNAME":"n1","_PID":"412","MESSAGE":"[rank {}] step {}"}}'
    lines = [record.format(1, 7), *(record.format(0, step) for step in range(8, 300))]
    layout = Layout(BY_START, wrapper="json")
    activity = read_activity("\n".join(lines).encode() + b"\n", 0, 2026, layout)
    assert {entry.origin.rank: entry.step for entry in activity} == {0: 299, 1: 7}


@given(
    st.lists(
        st.sampled_from(
            ["step 7 loss 0.1", "[rank0]: step 8", "[rank1]: x", "training finished", "", "plain", "   File"]
        ),
        max_size=60,
    ),
    st.booleans(),
)
def test_lines_of_writers_that_were_read_enough_change_nothing(lines: list[str], one: bool) -> None:
    """What is passed over without a closer look would not have been taken."""
    tail = "\n".join(lines).encode()
    quick = read_activity(tail, 0, 2026, one=one)
    with mock.patch.object(module._LineChoice, "is_sated", return_value=False):
        assert read_activity(tail, 0, 2026, one=one) == quick


def test_stamps_of_a_collector_do_not_make_a_stack_informative() -> None:
    """Below a long traceback with a stamp on each line, the lines before it are still read."""
    stamp = "2026-11-21T03:07:45.372001123Z "
    lines = ["[rank0] saving model to /ckpt/a.pt", "[rank0]: Traceback (most recent call last):"]
    lines += [f'[rank0]:   File "/a.py", line {number}, in f' for number in range(6)] + ["[rank0]:     f()"] * 2
    activity = read_activity("".join(f"{stamp}{line}\n" for line in lines).encode(), 0, 2026)
    assert "/ckpt/a.pt" in {entry.path for entry in activity}


def test_a_line_that_says_what_is_saved_is_read_without_a_time() -> None:
    """In the JSON of a collector the stamp is not in the text; another line above the last is not read."""
    record = '{{"__REALTIME_TIMESTAMP":"1795230465000000","_HOSTNAME":"n1","_PID":"412","MESSAGE":"{}"}}'
    lines = [record.format(text) for text in ("warm", "saving to /ckpt/a.pt", "slurmstepd: error: CANCELLED")]
    activity = read_activity("\n".join(lines).encode() + b"\n", 0, 2026, Layout(BY_START, wrapper="json"))
    assert [entry.path for entry in activity] == ["/ckpt/a.pt", ""]


def test_the_last_step_of_a_silent_rank_is_read() -> None:
    """Later lines of other ranks do not hide it."""
    lines = ["[rank1]: step 7", *(f"[rank0]: step {step}" for step in range(8, 300))]
    activity = read_activity("\n".join(lines).encode() + b"\n", 0, 2026)
    assert {entry.origin.rank: entry.step for entry in activity} == {0: 299, 1: 7}


@pytest.mark.parametrize(
    ("text", "step"),
    [
        ("step 3", 3),
        ("step: 12 loss", 12),
        ("global_step=1200", 1200),
        ("iteration 5/10", 5),
        ("[iter 88]", 88),
        ("Batch #4", 4),
        (" iteration      120/ 500 | ", 120),
        ("it 70120 loss 1.55", 70120),
        ("update=9 | loss=1.5", 9),
        ("train: 7/100 [00:10<02:00, loss=1.5]", 7),
        ("tried it 3 times", None),
        ("update 3 packages", None),
        ("loaded 7/100 shards", None),
        ("12/31 10:00:00 loss 1.5", None),
        ("12/31/2026 loss 1.5", None),
        ("footstep 3", None),
        ("stepping 3", None),
        ("loss 3", None),
    ],
)
def test_steps_are_parsed(text: str, step: int | None) -> None:
    """Words that count steps count, words that only contain them do not."""
    assert [entry.step for entry in read_activity(text.encode(), 0, 2026)] == [step]


@pytest.mark.parametrize(
    ("text", "finished"),
    [
        ("Training finished", True),
        ("training is complete", True),
        ("job completed successfully", True),
        ("run done", True),
        ("all ranks finished", True),
        ("step 3", False),
        ("training failed", False),
        ("Training on 8 GPUs", False),
    ],
)
def test_the_end_of_a_job_is_parsed(text: str, finished: bool) -> None:
    """A job that states its end is finished."""
    assert [entry.finished for entry in read_activity(text.encode(), 0, 2026)] == [finished]


@pytest.mark.parametrize(
    ("text", "progress"),
    [
        ("Epoch 1:  10%|#", True),
        ("step 3", True),
        ("3.2it/s", True),
        ("1.5s/it", True),
        ("it 7 loss 1.5", True),
        ("it 7 times", False),
        ("epochs", False),
        ("error", False),
    ],
)
def test_progress_lines_are_recognised(text: str, progress: bool) -> None:
    """Counters and progress bars."""
    assert bool(PROGRESS.search(text)) is progress


def test_a_partial_first_line_is_skipped() -> None:
    """If the tail does not begin with the file, its first line may lack its start."""
    assert [entry.step for entry in read_activity(b"tep 1\nstep 2\n", 100, 2026)] == [2]
    assert [entry.step for entry in read_activity(b"step 1\nstep 2\n", 0, 2026)] == [1, 2]
    cut = b"k1]: step 1\n[rank1]: step 2\n"
    assert [entry.step for entry in read_activity(cut, 100, 2026)] == [2]
    assert [entry.step for entry in read_activity(cut, 100, 2026, whole=True)] == [1, 2]


def test_the_last_redraw_of_a_progress_bar_counts() -> None:
    """Of the parts between carriage returns, the last is what the screen showed."""
    assert [entry.step for entry in read_activity(b"step 1\rstep 2\rstep 3\n", 0, 2026)] == [3]


@given(
    st.lists(
        st.sampled_from(
            ["step 1", "[rank1]: step 2", "", "x\ry", "[default3]:done", "2026-11-21 03:07:45 a", "\0\xff"]
        ),
        max_size=40,
    ),
    st.integers(0, 50),
)
def test_activity_has_the_offset_of_its_line(lines: list[str], offset: int) -> None:
    """Offsets are those of the source, ascending."""
    tail = "\n".join(lines).encode("latin-1")
    activity = read_activity(tail, offset, 2026)
    assert [entry.offset for entry in activity] == sorted({entry.offset for entry in activity})
    for entry in activity:
        at = entry.offset - offset
        assert 0 <= at <= len(tail)
        assert at == 0 or tail[at - 1 : at] in (b"\n", b"\r")


@given(st.dictionaries(st.integers(0, 40), st.floats(0, 10_000), max_size=20), st.sets(st.integers(0, 40)))
def test_silent_ranks_are_a_minority(last: dict[int, float], finished: set[int]) -> None:
    """Never most of the ranks, never a finished one, never one as late as the median."""
    silent = find_silent_ranks(last, finished)
    assert len(silent) <= len(last) / 2
    assert not finished & set(silent)
    assert all(seconds > SILENCE for seconds in silent.values())


def test_one_rank_that_stopped_early_is_silent() -> None:
    """With the seconds that the others went on writing."""
    assert find_silent_ranks({0: 1000.0, 1: 1001.0, 2: 100.0, 3: 999.0}, ()) == {2: 899.5}
    assert find_silent_ranks({0: 1000.0, 1: 100.0}, ()) == {}


@given(st.integers(1, 400), st.integers(0, 400))
def test_earlier_activity_is_found(step: int, others: int) -> None:
    """The last line of each wanted writer, with its offset, however much others wrote after it."""
    lines = [f"[rank{rank}]: step {at}" for at in range(step) for rank in (0, 1)] + [
        f"[rank0]: step {step + at}" for at in range(others)
    ]
    data = "\n".join(lines).encode() + b"\n"
    [activity] = find_earlier_activity(
        lambda offset, length: data[offset : offset + length], len(data), ["[rank1]:", "[rank7]:"], 2026
    )
    assert (activity.origin.rank, activity.step) == (1, step - 1)
    assert data[activity.offset :].startswith(b"[rank1]: step %d\n" % (step - 1))


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("[rank0] INFO saving the checkpoint to /ckpt/step6/model.pt", "/ckpt/step6/model.pt"),
        ("[rank0]: Saved model in '/out/last.safetensors'.", "/out/last.safetensors"),
        ("[rank0] INFO reading /ckpt/step6/model.pt to memory", ""),
    ],
)
def test_the_path_that_a_rank_writes_is_parsed(line: str, path: str) -> None:
    """Only if the line says that something is written there."""
    assert [entry.path for entry in read_activity(line.encode() + b"\n", 0, 2026)] == [path]


@pytest.mark.parametrize(
    ("line", "rank"),
    [
        ("2026-11-19 01:26:11.398 | INFO     | trainer:train:88 | rank 9 | step 9 loss 3.0", 9),
        ("step 9 of rank 3 was slow", None),
    ],
)
def test_a_tag_behind_the_prefix_names_the_rank(line: str, rank: int | None) -> None:
    """Formats of loggers may have the rank between their other columns; a rank in a sentence is no tag."""
    (activity,) = read_activity(line.encode(), 0, 2026)
    assert activity.origin.rank == rank


@pytest.mark.parametrize(
    ("line", "action"),
    [
        ("early stopping: loss is flat for 5 evaluations, stopping", "leaving"),
        ("worker has nothing more to do", "leaving"),
        ("INFO goodbye", "leaving"),
        ("Warning: WARNING: process group has NOT been destroyed before we destruct ProcessGroupNCCL.", "leaving"),
        ("Warning: WARNING: destroy_process_group() was not called before program exit", "leaving"),
        ("summoning the full parameters, this may take a while", "saving"),
        ("collecting full model weights", "saving"),
        ("collecting full coverage", ""),
        ("early stopping patience is 5", ""),
        ("existing files are kept", ""),
    ],
)
def test_lines_that_say_that_a_rank_leaves(line: str, action: str) -> None:
    """Only a line that says that the program ends by its own will is such a line."""
    (activity,) = read_activity(f"{line}\n".encode(), 0, 2026, one=True)
    assert activity.action == action


@pytest.mark.parametrize(
    ("line", "action"),
    [
        ("AUTOTUNE mm(8192x4096, 4096x4096)", "compiling"),
        ("V1104 09:00:01.001 700 torch/_dynamo/guards.py:2997] [0/1] [__recompiles] Recompiling f", "compiling"),
        ("INFO compiling the forward graph", "compiling"),
        ("Compilation of the model took 31 s", ""),
        ("compiling the forward graph ... done", ""),
        ("[2/3] /usr/local/cuda/bin/nvcc -c multi_tensor.cu -o multi_tensor.o", "compiling"),
        ("inductor FX graph cache miss", "compiling"),
        ("page cache miss rate 3 %", ""),
        ("the iterator is exhausted", "epoch-over"),
        ("rank 3 ran out of batches", "epoch-over"),
        ("retries exhausted", ""),
        ("out of patience", ""),
    ],
)
def test_lines_that_say_why_a_rank_does_not_come(line: str, action: str) -> None:
    """A build that runs and data that ended, not a build that is done."""
    (activity,) = read_activity(f"{line}\n".encode(), 0, 2026, one=True)
    assert activity.action == action


@pytest.mark.parametrize(
    ("line", "is_of_runtime"),
    [
        ("[rank3]:[E1104 09:00:01.1 ProcessGroupNCCL.cpp:629] [Rank 3] Watchdog caught collective operation", True),
        ("[PG ID 0 PG GUID 0(default_pg) Rank 8] Observed flight recorder dump signal from another rank", True),
        ("slurmstepd: error: *** STEP 794497.0 ON r8u56 CANCELLED AT 2026-11-03T18:20:36 ***", True),
        ("To avoid data inconsistency, we are taking the entire process down.", True),
        ("[rank3]:", True),
        ("step 7 loss 0.1", False),
        ("rank 3 watches step 7", False),
    ],
)
def test_lines_of_the_runtime_show_nothing_of_the_program(line: str, *, is_of_runtime: bool) -> None:
    """A watchdog, the C++ runtime or srun wrote them, whatever the program does; a number in them is no step."""
    (activity,) = read_activity(line.encode(), 0, 2026, one=True)
    assert activity.is_of_runtime == is_of_runtime
    assert activity.step == (7 if "step 7" in line else None)


@pytest.mark.parametrize("prefix", ["[1,{0}]<stdout>:", "2026-11-21T03:07:45.372001123Z [{0}] ", "[{0}]<stderr>:"])
def test_writers_behind_stamps_and_streams_are_told_apart(prefix: str) -> None:
    """The steps of rank 1 do not hide what rank 0 did last."""
    lines = [prefix.format(0) + "compiling the graph", *(prefix.format(1) + f"step {step}" for step in range(100))]
    activity = read_activity("\n".join(lines).encode() + b"\n", 0, 2026)
    assert "compiling" in {entry.action for entry in activity}


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("saving model to /ckpt/a.pt", "/ckpt/a.pt"),
        ("writing /ckpt/a", "/ckpt/a"),
        ("torch.save -> '/ckpt/a'", "/ckpt/a"),
        ("/ckpt/a.pt was written in 3 s", "/ckpt/a.pt"),
        ("checkpoint /ckpt/a begun", "/ckpt/a"),
        ("step 3 saved, loading /ckpt/b", ""),
        ("writing 3.2 MB/s", ""),
        ("read /ckpt/a: 3 parts", ""),
    ],
)
def test_the_path_that_a_line_says_is_written(line: str, path: str) -> None:
    """Before or behind the verb; a path that is read, or a rate, is none."""
    (activity,) = read_activity(f"{line}\n".encode(), 0, 2026, one=True)
    assert activity.path == path


@pytest.mark.parametrize(
    ("prefix", "one", "count"), [("", True, 8), ("", False, 60), ("[rank1]: ", True, 3), ("[rank1]: ", False, 3)]
)
def test_of_each_writer_the_last_lines_are_read(prefix: str, one: bool, count: int) -> None:
    """Three of a writer with a label; without labels 60, and 8 if all are of one rank."""
    lines = [f"{prefix}step {step}" for step in range(90)]
    activity = read_activity("\n".join(lines).encode(), 0, 2026, one=one)
    assert [entry.step for entry in activity] == list(range(90 - count, 90))


@pytest.mark.parametrize(("end_of_label", "count"), [(96, 3), (97, 60)])
def test_the_label_of_a_rank_ends_within_96_bytes(end_of_label: int, count: int) -> None:
    """Further right it is part of the text: of these lines without a writer more are read."""
    prefix = "x" * (end_of_label - len("[rank1]")) + "[rank1]"
    lines = [f"{prefix} step {step}" for step in range(90)]
    activity = read_activity("\n".join(lines).encode(), 0, 2026)
    assert len(activity) == count


@pytest.mark.parametrize(("later", "is_read"), [(599, True), (600, False)])
def test_the_last_600_lines_are_searched(later: int, is_read: bool) -> None:
    """A writer whose last line is above them has no activity."""
    lines = ["[rank1]: step 7", *(f"[rank0]: step {step}" for step in range(later))]
    activity = read_activity("\n".join(lines).encode(), 0, 2026)
    assert (1 in {entry.origin.rank for entry in activity}) == is_read


@pytest.mark.parametrize(("text", "is_read"), [("Training finished", True), ("exit codes are listed above", False)])
def test_above_the_last_lines_only_an_end_is_read(text: str, is_read: bool) -> None:
    """A line that says that something ended is read however many lines of its writer follow; another is not."""
    lines = [f"[rank0]: {text}", *(f"[rank0]: step {step}" for step in range(5))]
    activity = read_activity("\n".join(lines).encode(), 0, 2026)
    assert [entry.step for entry in activity] == [None, 2, 3, 4][not is_read :]


@pytest.mark.parametrize(("later", "is_read"), [(199, True), (200, False)])
def test_200_lines_are_searched_for_an_end(later: int, is_read: bool) -> None:
    """Above so many lines with a word like `status`, an end is not looked for any more."""
    lines = ["[rank0]: Training finished", *(["[rank0]: status unknown"] * later), *(["[rank0]: step 1"] * 3)]
    assert any(entry.finished for entry in read_activity("\n".join(lines).encode(), 0, 2026)) == is_read


def test_64_ends_are_read() -> None:
    """Of more lines that say that something ended the last ones."""
    lines = [f"[rank0]: run {run} finished" for run in range(100)]
    activity = read_activity("\n".join(lines).encode(), 0, 2026)
    assert len(activity) == 3 + 64


def test_with_three_ranks_there_is_a_majority() -> None:
    """Two ranks are no majority; a rank is silent after more than a minute, not after a minute."""
    assert find_silent_ranks({0: 100.0, 1: 100.0, 2: 100.0 - SILENCE - 1}, ()) == {2: SILENCE + 1}
    assert find_silent_ranks({0: 100.0, 1: 100.0, 2: 100.0 - SILENCE}, ()) == {}


def test_earlier_activity_is_read_in_pieces() -> None:
    """A large file is searched backwards a MiB at a time, at most 16 MiB."""
    lengths: list[int] = []

    def read(_offset: int, length: int) -> bytes:
        lengths.append(length)
        return b"x" * length

    assert find_earlier_activity(read, 40 << 20, ["[rank1]:"], 2026) == []
    assert lengths == [1 << 20] * 16


def test_only_a_program_has_the_text_of_its_end() -> None:
    """Without its numbers, as equal texts are compared; what else a rank wrote last has none."""
    (end, other) = read_activity(b"Training finished after 40 steps\nstep 3\n", 0, 2026)
    assert (end.end_text, other.end_text) == ("Training finished after  steps", "")
