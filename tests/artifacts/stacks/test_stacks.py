"""Dumps of live processes: every form of py-spy, the comparison of ranks, and the diagnosis."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

import triage
from tests.artifacts.stacks.factories import compare, dump_text, one_process, ranked
from tests.artifacts.stacks.test_dumps import assert_in_text
from triage import artifacts
from triage.artifacts.interface import Artifact, ArtifactError
from triage.artifacts.stacks.reader import parse_processes
from triage.model.evidence import Source
from triage.stacks.live.model import format_state
from triage.stacks.live.states import state_of

SAMPLE = Path(__file__).resolve().parents[3] / "samples" / "jobs" / "hung_stacks" / "job"
IN_ALL_REDUCE = (
    "all_reduce (torch/distributed/distributed_c10d.py:3252)",
    "_exception_logger.<locals>.wrapper (torch/distributed/c10d_logger.py:83)",
    "train (train.py:25)",
    "<module> (train.py:60)",
)
IN_LOADER = (
    "_PollLikeSelector.select (selectors.py:415)",
    "wait (multiprocessing/connection.py:947)",
    "Queue.get (multiprocessing/queues.py:113)",
    "_MultiProcessingDataLoaderIter._try_get_data (torch/utils/data/dataloader.py:1291)",
    "_BaseDataLoaderIter.__next__ (torch/utils/data/dataloader.py:725)",
    "train (train.py:22)",
    "<module> (train.py:60)",
)
USER = ("evaluate (train.py:40)", "<module> (train.py:61)")


def test_rank_that_never_joined_is_the_root() -> None:
    """In a real hang without log messages, rank 2 is the root cause, with its function."""
    diagnosis = triage.ingest(SAMPLE)
    assert diagnosis.root_cause is not None
    assert (diagnosis.root_cause.signature, diagnosis.root_cause.ranks) == ("torch.rank-never-joined", (2,))
    assert any("upload_checkpoint" in why for why in diagnosis.root_cause.why)
    waiting = next(finding for finding in diagnosis.findings if finding.signature == "hang.collective")
    assert waiting.ranks == (0, 1, 3)
    assert waiting.explained_by == ("torch.rank-never-joined",)


@pytest.mark.parametrize("form", ["txt", "native.txt", "json"])
def test_all_formats_give_the_same_groups(form: str) -> None:
    """Text, text with native frames and JSON of the same processes give the same groups."""
    dumps = [
        process
        for path in sorted(SAMPLE.glob(f"stacks/rank?.{form}"))
        for process in parse_processes(path.read_bytes(), path.name)
    ]
    comparison = compare(dumps)
    assert [[member.rank for member in group.members] for group in comparison.groups] == [[0, 1, 3], [2]]
    assert [group.is_usual for group in comparison.groups] == [True, False]
    assert comparison.groups[0].state.kind == ("collective" if form == "native.txt" else "backward")
    assert [(each.rule, each.ranks) for each in comparison.inferences[:1]] == [("never-joined", (2,))]
    assert comparison.groups[1].state.place.startswith("train.py:")


@pytest.mark.parametrize(
    ("frames", "kind", "phrase"),
    [
        (IN_ALL_REDUCE, "collective", "in all_reduce at train.py:25"),
        (IN_LOADER, "dataloader", "in the data loader's queue at train.py:22"),
        (("all_gather (torch/distributed/distributed_c10d.py:1)",
          "all_gather_object (torch/distributed/distributed_c10d.py:9)", *USER),
         "collective", "in all_gather_object at train.py:40"),
        (("synchronize (torch/cuda/__init__.py:985)", *USER), "device-sync", "waiting for the device at train.py:40"),
        (("write (libc.so.6)", "_save (torch/serialization.py:1200)", "save (torch/serialization.py:964)", *USER),
         "checkpoint", "in a checkpoint write at train.py:40"),
        (("save_checkpoint (utils/ckpt.py:12)", *USER), "checkpoint", "in save_checkpoint at ckpt.py:12"),
        (("compile_fx (torch/_inductor/compile_fx.py:3)", *USER), "compile", "compiling at train.py:40"),
        (("FileBaton.wait (torch/utils/file_baton.py:49)", "load (torch/utils/cpp_extension.py:1)", *USER),
         "build-lock", "waiting for another process's build lock at train.py:40"),
        (("take_gil (libpython3.11.so.1.0)", *USER), "gil", "waiting for the GIL in evaluate at train.py:40"),
        (("pthread_cond_wait (libc.so.6)", *USER), "futex", "in futex in evaluate at train.py:40"),
        (("clock_nanosleep (libc.so.6)", "time_sleep (libpython3.11.so.1.0)", *USER),
         "sleep", "asleep in evaluate at train.py:40"),
        (("Popen.wait (subprocess.py:1264)", "run (subprocess.py:505)", *USER),
         "subprocess", "waiting for a subprocess in evaluate at train.py:40"),
        (("init_process_group (torch/distributed/distributed_c10d.py:1500)", *USER),
         "rendezvous", "in init_process_group at train.py:40"),
        (("_wait_for_tstate_lock (threading.py:1116)", "_shutdown (threading.py:1590)"),
         "exit", "at the end of its program"),
        (USER, "evaluation", "in evaluate at train.py:40"),
        ((), "idle", "without Python frames"),
    ],
)  # fmt: skip
def test_state_of_a_process(frames: tuple[str, ...], kind: str, phrase: str) -> None:
    """The frames of the main thread give the state, with a phrase that follows "is"."""
    state = state_of(one_process(*frames))
    assert (state.kind, format_state(state)) == (kind, phrase)


def test_holder_of_the_gil() -> None:
    """The state of a thread that holds the GIL says so."""
    state = state_of(one_process(*USER, status="active+gil"))
    assert (state.kind, state.phrase) == ("holds-gil", "in evaluate, holding the GIL")


def test_collective_in_the_autograd_thread() -> None:
    """The state of a main thread in backward is the collective of its autograd thread."""
    state = state_of(one_process("_engine_run_backward (torch/autograd/graph.py:824)", *USER, others=IN_ALL_REDUCE))
    assert (state.kind, state.op) == ("collective", "all_reduce")


def test_threads_that_wait_for_each_other() -> None:
    """Two threads on bare locks in the program are a deadlock; a thread that waits for work is not."""
    lock = ("PyThread_acquire_lock_timed (libpython3.11.so.1.0)", "lock_PyThread_acquire_lock (libpython3.11.so.1.0)")
    both = one_process(*lock, *USER, others=(*lock, "flush (train.py:70)", "Thread.run (threading.py:982)"))
    idle = one_process(
        *lock, *USER, others=(*lock, "Condition.wait (threading.py:327)", "Queue._feed (multiprocessing/queues.py:231)")
    )
    assert state_of(both).kind == "deadlock"
    assert "thread writer" in state_of(both).phrase
    assert state_of(idle).kind == "lock"


def test_why_a_rank_is_absent() -> None:
    """The state of an absent rank gives the rule of the inference."""
    at_its_end = ("_shutdown (threading.py:1590)",)
    gather = (
        "all_gather (torch/distributed/distributed_c10d.py:3151)",
        "train (train.py:21)",
        "<module> (train.py:60)",
    )
    inferences = {
        stack: compare(ranked(IN_ALL_REDUCE, IN_ALL_REDUCE, stack, IN_ALL_REDUCE)).inferences[0]
        for stack in (IN_LOADER, at_its_end, USER, gather)
    }
    rules = [(each.rule, each.ranks) for each in inferences.values()]
    assert rules == [
        ("blocked-in-dataloader", (2,)),
        ("left-early", (2,)),
        ("never-joined", (2,)),
        ("divergent-call", (2,)),
    ]


def test_rank_elsewhere_without_a_collective_on_the_stacks() -> None:
    """A rank that is stuck elsewhere is at fault, even if no stack shows the collective of the others."""
    inferences = compare(ranked(USER, USER, IN_LOADER, USER)).inferences
    assert [(each.rule, each.ranks) for each in inferences] == [("blocked-in-dataloader", (2,))]


@pytest.mark.parametrize(
    "stacks",
    [
        (USER, USER, USER),
        (USER, ("step (train.py:9)",), ("loss (train.py:8)",)),
        (IN_LOADER, IN_LOADER, USER),
        (USER,),
        (IN_LOADER,),
    ],
)
def test_no_rank_is_blamed_without_waiting_ranks(stacks: tuple[tuple[str, ...], ...]) -> None:
    """Of ranks that do not wait for others, and of single dumps, it only says where they stand."""
    assert [(each.rule, each.ranks) for each in compare(ranked(*stacks)).inferences] == [("hung", ())]


def test_rank_that_moved_is_not_blamed() -> None:
    """A rank with two different dumps is not at fault, and a note says why."""
    dumps = [
        *ranked(IN_ALL_REDUCE, USER),
        *parse_processes(dump_text("load (train.py:50)", pid=101).encode(), "later/rank1.txt"),
    ]
    comparison = compare(dumps)
    assert [each.rule for each in comparison.inferences if 1 in each.ranks] == ["hung"]
    assert "rank 1 moved between two dumps" in comparison.inferences[0].text
    assert comparison.notes == ("rank 1 moved between two dumps, so it is slow, not stuck",)


def test_sleeping_rank_without_a_stack_is_not_blamed() -> None:
    """Without a stack, a rank that sleeps in futex may be in the collective; one that writes a file is not."""
    task = "tid 3 comm python state S (sleeping) wchan futex_do_wait syscall 202 0x1 call {call}\n"
    for call, odd in (("futex", (1,)), ("write 11 /mnt/ckpt.pt", (1, 2))):
        kernel = parse_processes(task.format(call=call).encode(), "rank2.status.txt")
        comparison = compare(
            [
                *ranked(IN_ALL_REDUCE, USER),
                *kernel,
                *parse_processes(dump_text(*IN_ALL_REDUCE, pid=104).encode(), "rank3.txt"),
            ]
        )
        assert {each.rule: each.ranks for each in comparison.inferences} == {
            "never-joined": odd,
            "blocked-in-collective": (0, 3),
        }


def test_helpers_are_not_ranks() -> None:
    """Data loader workers and torchrun's agent are helpers, whatever the names of their files."""
    worker = dump_text("_worker_loop (torch/utils/data/_utils/worker.py:330)", "<module> (train.py:1)", pid=200)
    agent = dump_text("_invoke_run (torch/distributed/elastic/agent/server/api.py:900)", pid=201)
    comparison = compare(
        [
            *ranked(IN_ALL_REDUCE),
            *parse_processes(worker.encode(), "rank0.worker.txt"),
            *parse_processes(agent.encode(), "agent.txt"),
        ]
    )
    assert [[member.label for member in group.members] for group in comparison.groups] == [["rank 0"]]
    assert {member.state.kind for member in comparison.helpers} == {"worker", "agent"}


def test_file_with_several_processes() -> None:
    """Each dump in a file is one process."""
    text = dump_text(*IN_ALL_REDUCE, pid=1) + "\n" + dump_text(*USER, pid=2)
    assert [(each.pid, len(each.threads)) for each in parse_processes(text.encode(), "all.txt")] == [(1, 1), (2, 1)]


def test_ranks_are_known_by_pid_from_the_logs(tmp_path: Path) -> None:
    """A dump without a rank in its name belongs to the rank whose pid is in the log."""
    lines = [
        f"node1:{100 + rank}:{100 + rank} [{rank}] NCCL INFO ncclCommInitRank comm 0x5 rank {rank} nranks 3 "
        f"cudaDev {rank} busId {rank + 1}000 - Init COMPLETE"
        for rank in range(3)
    ]
    (tmp_path / "train.log").write_text("\n".join(lines) + "\n")
    for rank, stack in enumerate((IN_ALL_REDUCE, USER, IN_ALL_REDUCE)):
        (tmp_path / f"dump{'cab'[rank]}.txt").write_text(dump_text(*stack, pid=100 + rank))
    diagnosis = triage.ingest(tmp_path)
    assert diagnosis.root_cause is not None
    assert (diagnosis.root_cause.signature, diagnosis.root_cause.ranks) == ("torch.rank-never-joined", (1,))


def test_order_of_files_does_not_matter() -> None:
    """The evidence is the same for any order of the dumps."""
    dumps = [
        Artifact(Source(f"rank{rank}.txt", "py-spy"), dump_text(*stack, pid=rank).encode())
        for rank, stack in enumerate((IN_ALL_REDUCE, IN_LOADER, IN_ALL_REDUCE, USER))
    ]
    expected = artifacts.read_artifacts(dumps)
    for seed in range(5):
        random.Random(seed).shuffle(dumps)
        assert artifacts.read_artifacts(dumps) == expected


def test_damage_is_a_warning() -> None:
    """A damaged or empty dump gives a warning, and the others are read."""
    damaged = [
        b"[]",
        b'[{"pid": 1, "thread_id": 2',
        b'[{"pid": {}, "thread_id": 2, "frames": []}]',
        b"Process 5: x\nPython v3\n",
        b"[" * 100_000,
    ]
    for data in damaged:
        with pytest.raises(ArtifactError):
            parse_processes(data, "dump")
    result = artifacts.read_artifacts(
        [
            Artifact(Source("a", "py-spy"), damaged[0]),
            Artifact(Source("rank1.txt", "py-spy"), dump_text(*USER).encode()),
        ]
    )
    assert [(fact.kind, fact.origin.rank) for fact in result.evidence] == [("stack", 1)]
    assert [warning.code for warning in result.warnings] == ["damaged-artifact"]


@given(st.text(alphabet='Process 1:\nThread()idle"MainThread \t.so[]0x{}', max_size=200), st.integers(0, 300))
def test_processes_only_contain_text_of_the_dump(noise: str, start: int) -> None:
    """A changed dump is read or refused, and all names that are read are in its text."""
    text = dump_text(*IN_LOADER)
    text = text[:start] + noise + text[start:]
    try:
        processes = parse_processes(text.encode(), "dump")
    except ArtifactError:
        return
    assert_in_text(processes, text)


@given(
    st.recursive(
        st.none() | st.integers() | st.text(max_size=5),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=8), inner),
    )
)
def test_any_json_is_read_or_refused(value: object) -> None:
    """JSON that is not a dump gives an ArtifactError."""
    with pytest.raises(ArtifactError):
        parse_processes(json.dumps([value]).encode(), "dump")
