"""What follows from the stacks of all ranks: which rank is named, what is said, and what is not certain."""

from __future__ import annotations

from pathlib import Path

import pytest

import triage
from tests.artifacts.stacks.factories import compare, dump_text, ranked
from triage.artifacts.stacks.conclusions import StackInference
from triage.artifacts.stacks.reader import parse_processes
from triage.stacks.live.model import Process

RECORDED = Path(__file__).parent / "recorded"
C10D = "torch/distributed/distributed_c10d.py"


def call(name: str, line: int) -> tuple[str, ...]:
    """Return the frames of a collective at a line of the program."""
    return (f"{name} ({C10D}:3252)", f"step (train.py:{line})", "<module> (train.py:60)")


IN_ALL_REDUCE, IN_BARRIER, IN_RECV = call("all_reduce", 25), call("barrier", 31), call("recv", 40)
IN_LOSS = ("log_loss (train.py:50)", "<module> (train.py:60)")
IN_SHARD = ("download_shard (train.py:13)", "<module> (train.py:60)")
ON_DEVICE = ("synchronize (torch/cuda/__init__.py:954)", "<module> (train.py:58)")
IN_FILE_LOCK = ("acquire (filelock/_api.py:30)", "build (train.py:5)", "<module> (train.py:60)")


def first(*stacks: tuple[str, ...]) -> StackInference:
    """Return the first inference from one stack of each rank."""
    return compare(ranked(*stacks)).inferences[0]


def test_program_elsewhere_is_named_with_its_line() -> None:
    """A rank that downloads while the others wait is at fault, unless it is only slow."""
    result = first(IN_ALL_REDUCE, IN_ALL_REDUCE, IN_SHARD)
    assert (result.rule, result.ranks) == ("never-joined", (2,))
    assert result.text == "rank 2 is in download_shard at train.py:13, while ranks 0-1 are in all_reduce at train.py:25"
    assert "slow" in result.uncertainty


def test_line_of_the_program_may_wait_for_the_device() -> None:
    """A stack that ends in a plain line blames its rank only if the others are in one call, and not for certain."""
    named = first(IN_ALL_REDUCE, IN_ALL_REDUCE, IN_LOSS)
    assert (named.rule, named.ranks, "device" in named.uncertainty) == ("never-joined", (2,), True)
    assert first(IN_ALL_REDUCE, IN_ALL_REDUCE, IN_BARRIER, IN_BARRIER, IN_LOSS).ranks == ()
    assert first(ON_DEVICE, ON_DEVICE, ON_DEVICE, IN_LOSS).ranks == ()


@pytest.mark.parametrize(("elsewhere", "ranks"), [(IN_SHARD, (2,)), (IN_LOSS, (2,)), (IN_ALL_REDUCE, (3,))])
def test_a_process_without_frames_is_named_last(elsewhere: tuple[str, ...], ranks: tuple[int, ...]) -> None:
    """It may be at its end already: a rank that stands elsewhere is at fault before it."""
    assert first(IN_ALL_REDUCE, IN_ALL_REDUCE, elsewhere, ()).ranks == ranks


@pytest.mark.parametrize(
    ("stacks", "rule", "ranks"),
    [
        ((IN_ALL_REDUCE, IN_ALL_REDUCE, IN_ALL_REDUCE, IN_BARRIER), "divergent-call", (3,)),
        ((IN_ALL_REDUCE, IN_ALL_REDUCE, IN_BARRIER, IN_BARRIER, IN_RECV, IN_RECV), "hung", ()),
        ((IN_ALL_REDUCE, IN_ALL_REDUCE, *[call("broadcast", 31)] * 2), "hung", ()),
        ((IN_ALL_REDUCE, IN_ALL_REDUCE, IN_ALL_REDUCE, ON_DEVICE), "hung", ()),
    ],
)
def test_other_call_blames_only_by_majority(stacks: tuple[tuple[str, ...], ...], rule: str, ranks: tuple[int]) -> None:
    """Of ranks that all wait, few in another collective are named, not for certain."""
    result = first(*stacks)
    assert (result.rule, result.ranks) == (rule, ranks)
    assert "process groups" in result.uncertainty if ranks else "no rank at fault" in result.text


def test_two_halves_in_calls_that_need_all_ranks_name_nobody() -> None:
    """They called different things, and either half may be wrong; two lines of one operation may be one call."""
    result = first(IN_ALL_REDUCE, IN_BARRIER, IN_ALL_REDUCE, IN_BARRIER)
    assert (result.rule, result.ranks) == ("divergent-call", ())
    assert "ranks 0, 2 are in all_reduce at train.py:25, while ranks 1, 3 are in barrier at train.py:31" in result.text
    assert "either half may be wrong" in result.uncertainty
    assert first(IN_ALL_REDUCE, call("all_reduce", 26), IN_ALL_REDUCE, call("all_reduce", 26)).rule == "hung"


def below(line: int, function: str = "train") -> tuple[str, ...]:
    """Return the frames of an all-reduce inside a helper that a line of the program calls."""
    return (
        f"all_reduce ({C10D}:3252)",
        "average (helper.py:9)",
        f"{function} (train.py:{line})",
        "<module> (train.py:60)",
    )


def test_callers_tell_apart_what_waits_in_one_line_of_a_helper() -> None:
    """Ranks that came to one line from two lines of one function are in two calls; from two functions, in one."""
    result = first(below(30), below(31), below(30), below(30))
    assert (result.rule, result.ranks) == ("divergent-call", (1,))
    assert "rank 1 is in all_reduce at helper.py:9 from train.py:31" in result.text
    assert first(below(30), below(31, "work"), below(30), below(30)).rule == "hung"
    assert first(*[below(30)] * 4).text.startswith(
        "ranks 0-3 are in all_reduce at helper.py:9; all wait in the same call"
    )


def test_a_program_elsewhere_is_named_although_the_others_came_by_two_lines() -> None:
    """The others are at one line of a helper, whichever line called it."""
    named = first(below(30), below(31), below(30), below(31), IN_LOSS)
    assert (named.rule, named.ranks) == ("never-joined", (4,))


def test_native_frames_without_lines_name_no_rank() -> None:
    """Most ranks may be in calls of several groups, which native frames do not tell apart."""
    in_all_reduce = ("c10d::ops::allreduce_ (libtorch_cpu.so)", "c10d::Work::wait (libtorch_cpu.so)")
    in_barrier = ("c10d::ops::barrier (libtorch_cpu.so)", "c10d::Work::wait (libtorch_cpu.so)")
    result = first(*[in_all_reduce] * 3, in_barrier)
    assert (result.rule, result.ranks, "native frames" in result.uncertainty) == ("divergent-call", (), True)


@pytest.mark.parametrize(
    ("stacks", "ranks"),
    [
        ((IN_ALL_REDUCE, IN_ALL_REDUCE, IN_ALL_REDUCE, IN_RECV), (3,)),
        ((IN_ALL_REDUCE, IN_RECV), (1,)),
        ((IN_ALL_REDUCE, IN_RECV, IN_RECV), None),  # more in the transfers than elsewhere
        ((IN_ALL_REDUCE, IN_ALL_REDUCE, IN_ALL_REDUCE, call("send", 41), IN_RECV), None),  # they may be a pair
        ((IN_ALL_REDUCE, IN_ALL_REDUCE, IN_BARRIER, IN_RECV), None),  # the others may wait for each other
        ((IN_ALL_REDUCE, IN_ALL_REDUCE, IN_SHARD, IN_RECV), None),  # rank 2 may be the peer
    ],
)
def test_half_of_a_transfer_is_blamed_where_all_others_are_in_one_call(
    stacks: tuple[tuple[str, ...], ...], ranks: tuple[int, ...] | None
) -> None:
    """Then nobody can be in the other half; which end left it out is not certain."""
    inferences = [one for one in compare(ranked(*stacks)).inferences if one.rule == "p2p-mismatch"]
    assert [one.ranks for one in inferences] == ([ranks] if ranks else [])
    assert all("do not name the peer" in one.uncertainty for one in inferences)


def test_a_rank_without_a_stack_may_be_the_peer() -> None:
    """Then the half of a transfer blames nobody."""
    dumps = [each for each in ranked(*[IN_ALL_REDUCE] * 3, IN_RECV) if each.rank != 1]
    assert [one.rule for one in compare(dumps).inferences if one.rule == "p2p-mismatch"] == []


def test_rank_in_a_call_that_others_may_have_passed_is_not_named() -> None:
    """A broadcast ends on some ranks early, so a rank that left it out may be at fault; an all_gather does not."""
    for name, ranks in (("broadcast", ()), ("all_gather", (3,))):
        result = first(IN_ALL_REDUCE, IN_ALL_REDUCE, IN_ALL_REDUCE, call(name, 31))
        assert (result.rule, result.ranks) == ("divergent-call", ranks)
        assert ("left it out" in result.uncertainty) == (not ranks)


def test_call_without_a_name_is_not_compared() -> None:
    """Native frames that only show a wait blame no rank; those that connect a new group are another call."""
    for function, rule in (
        ("c10d::Work::wait", "hung"),
        ("gloo::transport::tcp::Context::createAndConnectAllPairs", "divergent-call"),
    ):
        unnamed = (f"{function} (libtorch_cpu.so)",)
        named = ("c10d::ops::allreduce_ (libtorch_cpu.so)", "c10d::Work::wait (libtorch_cpu.so)")
        assert first(*[unnamed] * 3, named).rule == rule


def test_all_ranks_on_one_lock() -> None:
    """Ranks that all wait for the same lock are told, and none is at fault."""
    result = first(IN_FILE_LOCK, IN_FILE_LOCK, IN_FILE_LOCK)
    assert (result.rule, result.ranks) == ("hung", ())
    assert result.text == "ranks 0-2 are waiting for a file lock in build at train.py:5"


def test_two_dumps_of_a_log_show_that_a_rank_is_stuck() -> None:
    """A stack that stays the same in one log leaves no doubt; one dump of each of two tools does."""
    once = ranked(IN_ALL_REDUCE, IN_SHARD)
    assert compare(once).inferences[0].uncertainty
    assert not compare([*once, once[1]]).inferences[0].uncertainty


def test_missing_stack_is_said() -> None:
    """A rank without a stack is suspected only if all others wait, and only if the numbers show that it exists."""
    dumps: list[Process] = [each for each in ranked(*[IN_ALL_REDUCE] * 4) if each.rank != 2]
    result = compare(dumps).inferences[0]
    assert (result.rule, result.ranks) == ("hung", (2,))
    assert "no stack of rank 2 is among the files" in result.text
    assert compare(dumps[:2]).inferences[0].ranks == ()


def diagnose(tmp_path: Path, name: str, target: str = "dump.txt") -> tuple[str, str | None, tuple[int, ...], str]:
    """Return verdict, signature, ranks and title for one recorded file."""
    (tmp_path / target).write_bytes((RECORDED / name).read_bytes())
    diagnosis = triage.ingest(tmp_path)
    root = diagnosis.root_cause
    assert root is not None
    return diagnosis.verdict, root.signature, root.ranks, root.title if not root.signature else "; ".join(root.why)


def test_three_processes_in_one_file_of_faulthandler(tmp_path: Path) -> None:
    """Recorded dumps of three processes in one file are three processes, and the job is not clean."""
    verdict, signature, ranks, why = diagnose(tmp_path, "faulthandler_three_processes.txt")
    assert (verdict, signature, ranks) == ("known", "torch.rank-never-joined", ())
    assert (
        "The process of thread 0x7f93ab3f8b80 is in download_shard at train.py:8, "
        "while 2 processes are in all_reduce at train.py:10"
    ) in why


def test_half_of_a_transfer_without_a_rank_is_no_clean_job(tmp_path: Path) -> None:
    """Three processes in one file: the kind is known, and no file shows the rank of the one that receives."""
    stacks = (IN_ALL_REDUCE, IN_RECV, IN_ALL_REDUCE)
    (tmp_path / "stacks.txt").write_text("\n".join(dump_text(*stack, pid=800 + n) for n, stack in enumerate(stacks)))
    root = triage.ingest(tmp_path).root_cause
    assert root is not None
    assert (root.signature, root.ranks) == ("torch.collective-order-mismatch", ())
    assert "pid 801 is in recv" in " ".join(root.why)


def test_headings_of_a_file_with_three_ranks(tmp_path: Path) -> None:
    """Recorded dumps of py-spy below headings in one file belong to the ranks of the headings."""
    verdict, signature, ranks, _ = diagnose(tmp_path, "py_spy_three_ranks.txt")
    assert (verdict, signature, ranks) == ("known", "torch.rank-never-joined", (2,))


def test_headings_above_faulthandler(tmp_path: Path) -> None:
    """Processes that were forked from one have the same main thread: headings tell their ranks apart."""
    frames = (("all_reduce", C10D, 3252), ("step", "train.py", 25)), (("download_shard", "train.py", 13),)
    stacks = [
        f"--- rank {rank} ---\nThread 0x00007f01 (most recent call first):\n"
        + "".join(f'  File "{file}", line {line} in {name}\n' for name, file, line in frames[rank == 2])
        for rank in range(4)
    ]
    (tmp_path / "stacks.txt").write_text("\n".join(stacks))
    root = triage.ingest(tmp_path).root_cause
    assert root is not None
    assert (root.signature, root.ranks) == ("torch.rank-never-joined", (2,))


def test_deadlock_of_two_threads_is_named(tmp_path: Path) -> None:
    """A recorded ABBA deadlock, with its mutexes printed behind the threads, names both threads."""
    _, signature, ranks, why = diagnose(tmp_path, "gdb_abba.txt", "rank1.txt")
    assert (signature, ranks) == ("torch.thread-deadlock", (1,))
    assert "waiting for a lock of thread 31281 (in flush_log)" in why
    assert "that one for one of the main thread (in save_state)" in why


def test_single_dump_is_never_clean(tmp_path: Path) -> None:
    """A dump alone gives the verdict unknown with what it shows; it blames no rank."""
    (tmp_path / "rank2.txt").write_text(dump_text(*IN_SHARD))
    diagnosis = triage.ingest(tmp_path)
    assert diagnosis.root_cause is not None
    assert (diagnosis.verdict, diagnosis.root_cause.ranks) == ("unknown", ())
    assert diagnosis.root_cause.title == "Hung: rank 2 is in download_shard at train.py:13"


@pytest.mark.parametrize(("end", "verdict"), [("training finished\n", "clean"), ("", "unknown")])
def test_debug_dump_of_a_job_that_finished(tmp_path: Path, end: str, verdict: str) -> None:
    """A dump in a log is of a hung job, unless the job went on and finished."""
    dump = dump_text(*IN_SHARD)
    (tmp_path / "rank0.log").write_text(f"step 1 loss 2.0\n{dump}" + ("step 2 loss 1.9\n" + end if end else ""))
    assert triage.ingest(tmp_path).verdict == verdict


def test_debug_dump_behind_the_end_of_another_rank(tmp_path: Path) -> None:
    """What somebody says before a dump proves no good end of who still hangs."""
    (tmp_path / "console.log").write_text(f"step 1 loss 2.0\ntraining finished\n{dump_text(*IN_LOSS)}")
    assert triage.ingest(tmp_path).verdict == "unknown"


def test_py_spy_in_a_log(tmp_path: Path) -> None:
    """Dumps of py-spy between the lines of a log are read, each with its process."""
    text = "".join(f"step {n}\n{dump_text(*stack, pid=100 + n)}" for n, stack in enumerate((IN_LOSS, IN_SHARD)))
    (tmp_path / "job.log").write_text(text + "end of the dumps\n")
    root = triage.ingest(tmp_path).root_cause
    assert root is not None
    assert "pid 101 is in download_shard at train.py:13" in root.title


def test_dumps_of_two_tools_add_up(tmp_path: Path) -> None:
    """The frames of Python say where a rank is, those of gdb what it does there."""
    gdb = "Thread 1 (Thread 0x7f01 (LWP 100)):\n#0  0x00007f01 in __libc_recv (fd=3) from /lib/libc.so.6\n"
    processes = [
        *parse_processes(dump_text(*IN_SHARD).encode(), "rank0.txt"),
        *parse_processes(gdb.encode(), "rank0.gdb.txt"),
    ]
    assert processes[1].rank == 0
    (group,) = compare(processes).groups
    assert group.state.phrase == "in download_shard, waiting for the network"
    assert group.state.place == "train.py:13"


def forked(*lines: int) -> str:
    """Return dumps of faulthandler that share the main thread: line 25 is in all_reduce, others are not."""
    frame = '  File "{}", line {} in {}\n'
    wait = frame.format(f"/venv/{C10D}", 3252, "all_reduce")
    return "".join(
        "Current thread 0x00007fe694e27b80 (most recent call first):\n"
        + (wait if line < 30 else "")
        + frame.format("/w/train.py", line, "step")
        + frame.format("/w/train.py", 60, "<module>")
        for line in lines
    )


@pytest.mark.parametrize(
    ("lines", "title"),
    [
        ((25, 25, 40), "process 3 of 3 is in step at train.py:40, while 2 processes are in all_reduce at train.py:25"),
        ((40, 25), "process 1 of 2 is in step at train.py:40, while process 2 of 2 is in all_reduce at train.py:25"),
        ((25, 26), "they wait in different calls"),
    ],
)
def test_dumps_with_one_main_thread_may_be_of_several_processes(
    tmp_path: Path, lines: tuple[int, ...], title: str
) -> None:
    """Processes forked from one share the address of their main thread: the answer says which dump differs, and why
    that may mean nothing.
    """
    (tmp_path / "stacks.txt").write_text(forked(*lines))
    diagnosis = triage.ingest(tmp_path)
    assert diagnosis.root_cause is not None
    assert (diagnosis.verdict, diagnosis.root_cause.signature) == ("unknown", None)
    assert title in diagnosis.root_cause.title
    assert "of one process that moved" in diagnosis.root_cause.why[0]


@pytest.mark.parametrize(("name", "lines"), [("rank3.txt", (25, 40)), ("stacks.txt", (40, 41))])
def test_dumps_of_one_process_that_moved(tmp_path: Path, name: str, lines: tuple[int, ...]) -> None:
    """Where the file names the rank, or no dump waits for others, different dumps are of one process."""
    (tmp_path / name).write_text(forked(*lines))
    diagnosis = triage.ingest(tmp_path)
    assert any("moved between two dumps" in warning.message for warning in diagnosis.warnings)
    assert diagnosis.root_cause is None or "process 1 of 2" not in diagnosis.root_cause.title


@pytest.mark.parametrize(("second", "ranks"), [((1,), (1,)), ((), ()), ((0, 1), ()), ((0, 1, 2, 3), ())])
def test_a_call_of_a_second_thread_is_that_of_its_rank(second: tuple[int, ...], ranks: tuple[int, ...]) -> None:
    """All main threads wait in one call; few ranks whose other thread is in one too made a call that others did not."""
    texts = [
        dump_text(*IN_ALL_REDUCE, pid=100 + rank, others=IN_BARRIER if rank in second else ()) for rank in range(4)
    ]
    result = compare(
        [one for rank, text in enumerate(texts) for one in parse_processes(text.encode(), f"rank{rank}.txt")]
    ).inferences[0]
    assert (result.ranks if result.rule == "divergent-call" else ()) == ranks
    assert ("another thread of rank 1 is in barrier" in result.text) is bool(ranks)
