"""Dumps of live processes: read in every form of py-spy, compared across ranks, and told to the diagnosis."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import triage
from tests.artifacts.stacks.test_dumps import stated
from triage import artifacts
from triage.artifacts.interface import Artifact, ArtifactError
from triage.artifacts.stacks.board import board
from triage.artifacts.stacks.reader import processes
from triage.model.evidence import Source
from triage.stacks.live.model import Process, phrase
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


def dump(*frames: str, pid: int = 100, status: str = "idle", others: tuple[str, ...] = ()) -> str:
    """The text of `py-spy dump`."""
    lines = [
        f"Process {pid}: python -u train.py",
        "Python v3.11.7 (/usr/bin/python3.11)",
        "",
        f'Thread {pid} ({status}): "MainThread"',
    ]
    lines += [f"    {frame}" for frame in frames]
    if others:
        lines += [f'Thread {pid + 1} (idle): "writer"', *(f"    {frame}" for frame in others)]
    return "\n".join(lines) + "\n"


def one(*frames: str, **options: object) -> Process:
    (found,) = processes(dump(*frames, **options).encode(), "dump.txt")  # type: ignore[arg-type]
    return found


def ranked(*stacks: tuple[str, ...]) -> list[Process]:
    return [
        found
        for rank, stack in enumerate(stacks)
        for found in processes(dump(*stack, pid=100 + rank).encode(), f"rank{rank}.txt")
    ]


def test_the_rank_that_never_joined_is_named() -> None:
    """A real job of four ranks that hung, whose log says nothing: rank 2 is the root, with the function it is in."""
    found = triage.ingest(SAMPLE)
    assert found.root_cause is not None
    assert (found.root_cause.signature, found.root_cause.ranks) == ("torch.rank-never-joined", (2,))
    assert any("upload_checkpoint" in why for why in found.root_cause.why)
    waiting = next(finding for finding in found.findings if finding.signature == "hang.collective")
    assert waiting.ranks == (0, 1, 3)
    assert waiting.explained_by == ("torch.rank-never-joined",)


@pytest.mark.parametrize("form", ["txt", "native.txt", "json"])
def test_every_form_of_a_dump_says_the_same(form: str) -> None:
    """Text, text with native frames, and JSON of the same process give the same groups."""
    dumps = [
        process
        for path in sorted(SAMPLE.glob(f"stacks/rank?.{form}"))
        for process in processes(path.read_bytes(), path.name)
    ]
    found = board(dumps)
    assert [[member.rank for member in group.members] for group in found.groups] == [[0, 1, 3], [2]]
    assert [group.usual for group in found.groups] == [True, False]
    assert found.groups[0].state.kind == ("collective" if form == "native.txt" else "backward")
    assert [(each.rule, each.ranks) for each in found.conclusions[:1]] == [("never-joined", (2,))]
    assert found.groups[1].state.place.startswith("train.py:")


@pytest.mark.parametrize(
    ("frames", "kind", "words"),
    [
        (IN_ALL_REDUCE, "collective", "in all_reduce at train.py:25"),
        (IN_LOADER, "dataloader", "in the data loader's queue at train.py:22"),
        (("all_gather (torch/distributed/distributed_c10d.py:1)", "all_gather_object (torch/distributed/distributed_c10d.py:9)", *USER),
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
        (("clock_nanosleep (libc.so.6)", "time_sleep (libpython3.11.so.1.0)", *USER), "sleep", "asleep in evaluate at train.py:40"),
        (("Popen.wait (subprocess.py:1264)", "run (subprocess.py:505)", *USER), "subprocess", "waiting for a subprocess in evaluate at train.py:40"),
        (("init_process_group (torch/distributed/distributed_c10d.py:1500)", *USER), "rendezvous", "in init_process_group at train.py:40"),
        (("_wait_for_tstate_lock (threading.py:1116)", "_shutdown (threading.py:1590)"), "exit", "at the end of its program"),
        (USER, "idle", "in evaluate at train.py:40"),
        ((), "idle", "without Python frames"),
    ],
)  # fmt: skip
def test_what_a_process_is_doing(frames: tuple[str, ...], kind: str, words: str) -> None:
    """The frames of the main thread tell the state, in words that follow "the rank is"."""
    found = state_of(one(*frames))
    assert (found.kind, phrase(found)) == (kind, words)


def test_a_holder_of_the_gil_is_told() -> None:
    """py-spy marks the thread that holds the GIL."""
    found = state_of(one(*USER, status="active+gil"))
    assert (found.kind, found.words) == ("holds-gil", "in evaluate, holding the GIL")


def test_a_hook_in_the_autograd_thread_counts() -> None:
    """A main thread in backward waits for what another thread of it does in a collective."""
    found = state_of(one("_engine_run_backward (torch/autograd/graph.py:824)", *USER, others=IN_ALL_REDUCE))
    assert (found.kind, found.op) == ("collective", "all_reduce")


def test_threads_that_wait_for_each_other() -> None:
    """Main thread and another both on a bare lock inside the program: a deadlock. A thread that waits for work is none."""
    lock = ("PyThread_acquire_lock_timed (libpython3.11.so.1.0)", "lock_PyThread_acquire_lock (libpython3.11.so.1.0)")
    both = one(*lock, *USER, others=(*lock, "flush (train.py:70)", "Thread.run (threading.py:982)"))
    idle = one(
        *lock, *USER, others=(*lock, "Condition.wait (threading.py:327)", "Queue._feed (multiprocessing/queues.py:231)")
    )
    assert state_of(both).kind == "deadlock"
    assert "thread writer" in state_of(both).words
    assert state_of(idle).kind == "lock"


def test_why_a_rank_is_absent() -> None:
    """In the loader's queue it waits for data; at its end it left; elsewhere it has never joined; in another collective
    it took another way.
    """
    at_its_end = ("_shutdown (threading.py:1590)",)
    broadcast = (
        "broadcast (torch/distributed/distributed_c10d.py:3151)",
        "train (train.py:21)",
        "<module> (train.py:60)",
    )
    told = {
        stack: board(ranked(IN_ALL_REDUCE, IN_ALL_REDUCE, stack, IN_ALL_REDUCE)).conclusions[0]
        for stack in (IN_LOADER, at_its_end, USER, broadcast)
    }
    rules = [(found.rule, found.ranks) for found in told.values()]
    assert rules == [
        ("blocked-in-dataloader", (2,)),
        ("left-early", (2,)),
        ("never-joined", (2,)),
        ("divergent-call", (2,)),
    ]


def test_collectives_of_a_device_do_not_show() -> None:
    """Most ranks at one line of the program and one stuck elsewhere: that one is missing, though no stack says
    all_reduce.
    """
    found = board(ranked(USER, USER, IN_LOADER, USER)).conclusions
    assert [(each.rule, each.ranks) for each in found] == [("blocked-in-dataloader", (2,))]


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
def test_nothing_is_concluded_from_a_job_that_moves(stacks: tuple[tuple[str, ...], ...]) -> None:
    """Without anybody who waits for others, or with a single dump, nobody is blamed."""
    assert board(ranked(*stacks)).conclusions == ()


def test_a_rank_that_moves_is_slow_not_stuck() -> None:
    """Two dumps of one rank that differ: it is not blamed, and the note says why."""
    dumps = [*ranked(IN_ALL_REDUCE, USER), *processes(dump("load (train.py:50)", pid=101).encode(), "later/rank1.txt")]
    found = board(dumps)
    assert [each.rule for each in found.conclusions if 1 in each.ranks] == []
    assert found.notes == ("rank 1 moved between two dumps, so it is slow rather than stuck",)


def test_a_rank_of_which_only_the_kernel_tells_is_not_blamed() -> None:
    """Without its stack, a rank that sleeps in futex may well wait in the collective of the others; one that writes a
    file does not.
    """
    task = "tid 3 comm python state S (sleeping) wchan futex_do_wait syscall 202 0x1 call {call}\n"
    for call, odd in (("futex", (1,)), ("write 11 /mnt/ckpt.pt", (1, 2))):
        kernel = processes(task.format(call=call).encode(), "rank2.status.txt")
        found = board(
            [*ranked(IN_ALL_REDUCE, USER), *kernel, *processes(dump(*IN_ALL_REDUCE, pid=104).encode(), "rank3.txt")]
        )
        assert {each.rule: each.ranks for each in found.conclusions} == {
            "never-joined": odd,
            "blocked-in-collective": (0, 3),
        }


def test_helpers_are_no_ranks() -> None:
    """A data loader's worker and torchrun's agent stand in no group, whatever their files are called."""
    worker = dump("_worker_loop (torch/utils/data/_utils/worker.py:330)", "<module> (train.py:1)", pid=200)
    agent = dump("_invoke_run (torch/distributed/elastic/agent/server/api.py:900)", pid=201)
    found = board(
        [
            *ranked(IN_ALL_REDUCE),
            *processes(worker.encode(), "rank0.worker.txt"),
            *processes(agent.encode(), "agent.txt"),
        ]
    )
    assert [[member.label for member in group.members] for group in found.groups] == [["rank 0"]]
    assert {member.state.kind for member in found.helpers} == {"worker", "agent"}


def test_a_file_of_many_processes() -> None:
    """Dumps one after the other in one file are as many processes; without a rank they are called by their pid."""
    text = dump(*IN_ALL_REDUCE, pid=1) + "\n" + dump(*USER, pid=2)
    assert [(each.pid, len(each.threads)) for each in processes(text.encode(), "all.txt")] == [(1, 1), (2, 1)]


def test_ranks_are_known_by_pid_from_the_logs(tmp_path: Path) -> None:
    """Dumps whose names say nothing belong to the ranks to which NCCL's lines give their pids."""
    lines = [
        f"node1:{100 + rank}:{100 + rank} [{rank}] NCCL INFO ncclCommInitRank comm 0x5 rank {rank} nranks 3 cudaDev {rank} busId {rank + 1}000 - Init COMPLETE"
        for rank in range(3)
    ]
    (tmp_path / "train.log").write_text("\n".join(lines) + "\n")
    for rank, stack in enumerate((IN_ALL_REDUCE, USER, IN_ALL_REDUCE)):
        (tmp_path / f"dump{'cab'[rank]}.txt").write_text(dump(*stack, pid=100 + rank))
    found = triage.ingest(tmp_path)
    assert found.root_cause is not None
    assert (found.root_cause.signature, found.root_cause.ranks) == ("torch.rank-never-joined", (1,))


def test_the_order_of_files_does_not_matter() -> None:
    """Facts and conclusions are the same however the dumps are given."""
    given_ = [
        Artifact(Source(f"rank{rank}.txt", "py-spy"), dump(*stack, pid=rank).encode())
        for rank, stack in enumerate((IN_ALL_REDUCE, IN_LOADER, IN_ALL_REDUCE, USER))
    ]
    told = artifacts.read(given_)
    for seed in range(5):
        random.Random(seed).shuffle(given_)
        assert artifacts.read(given_) == told


def test_damage_is_a_warning() -> None:
    """A dump that is cut off, of another shape or empty is told, and the rest is read."""
    bad = [
        b"[]",
        b'[{"pid": 1, "thread_id": 2',
        b'[{"pid": {}, "thread_id": 2, "frames": []}]',
        b"Process 5: x\nPython v3\n",
        b"[" * 100_000,
    ]
    for data in bad:
        with pytest.raises(ArtifactError):
            processes(data, "dump")
    found = artifacts.read(
        [Artifact(Source("a", "py-spy"), bad[0]), Artifact(Source("rank1.txt", "py-spy"), dump(*USER).encode())]
    )
    assert [(fact.kind, fact.origin.rank) for fact in found.evidence] == [("stack", 1)]
    assert [warning.code for warning in found.warnings] == ["damaged-artifact"]


@given(st.text(alphabet='Process 1:\nThread()idle"MainThread \t.so[]0x{}', max_size=200), st.integers(0, 300))
def test_nothing_is_read_that_does_not_stand_there(noise: str, at: int) -> None:
    """Whatever stands in a dump, it is read or refused. What is read stands there, and each process is shown once."""
    text = dump(*IN_LOADER)
    text = text[:at] + noise + text[at:]
    try:
        found = processes(text.encode(), "dump")
    except ArtifactError:
        return
    stated(found, text)


@given(
    st.recursive(
        st.none() | st.integers() | st.text(max_size=5),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=8), inner),
    )
)
def test_no_json_breaks_the_reader(value: object) -> None:
    """JSON of any shape is read or refused."""
    with pytest.raises(ArtifactError):
        processes(json.dumps([value]).encode(), "dump")
