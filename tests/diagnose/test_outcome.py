"""How a job ended: failures that were over before the end do not count, in any layout."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import triage
from triage.diagnose.completion import Completion
from triage.diagnose.outcome import Outcome, find_outcome
from triage.model.details import ExceptionDetail
from triage.model.evidence import Evidence, Origin
from triage.records.activity import Activity
from triage.records.completion import Scope
from triage.testing.jobs import JobBuilder, Layout

from .factories import exited, fact, job_of, raised

LAYOUTS: tuple[Layout, ...] = ("tee", "redirects", "perrank", "plain")
layouts = pytest.mark.parametrize("layout", LAYOUTS)


@layouts
def test_a_job_that_finished_is_clean(layout: Layout, tmp_path: Path) -> None:
    """Steps and a line that says that training finished."""
    assert triage.ingest(JobBuilder(tmp_path, layout=layout).steps(5).finish().write()).verdict == "clean"


@layouts
def test_a_job_that_just_stops_is_inconclusive(layout: Layout, tmp_path: Path) -> None:
    """A log that stops at a step shows no failure and proves no good end."""
    diagnosis = triage.ingest(JobBuilder(tmp_path, layout=layout).steps(5).write())
    assert (diagnosis.verdict, diagnosis.root_cause) == ("inconclusive", None)
    assert diagnosis.inconclusive is not None
    assert diagnosis.inconclusive.why[0] == "No line says that the job finished"
    assert all(line.text and line.line for line in diagnosis.inconclusive.last_lines)
    assert "ok" not in {rank.state for rank in diagnosis.ranks}


@layouts
def test_a_job_of_which_some_ranks_finish_is_inconclusive(layout: Layout, tmp_path: Path) -> None:
    """The report names the ranks that do not say so; only those that do are ok."""
    job = JobBuilder(tmp_path, layout=layout, world_size=3).steps(5)
    for rank in (0, 2):
        job.rank(rank).log("training finished")
    diagnosis = triage.ingest(job.write())
    assert diagnosis.verdict == "inconclusive"
    assert diagnosis.inconclusive is not None
    assert diagnosis.inconclusive.why[0] == "Ranks 0, 2 finished; rank 1 does not say so"
    assert [rank.state for rank in diagnosis.ranks] == ["ok", "unclear", "ok"]


LOST = "ConnectionResetError: [Errno 104] Connection reset by peer"


@pytest.mark.parametrize(
    ("own", "lost", "root_ranks"),
    [
        ("KeyError: 'pixel_values'", LOST, (2,)),
        ("KeyError: 'pixel_values'", "BrokenPipeError: [Errno 32] Broken pipe", (2,)),
        ("KeyError: 'pixel_values'", "RuntimeError: redis://cache:6379: connection closed", (0, 1, 3)),
        (LOST, LOST, (0, 1, 2, 3)),
    ],
)
def test_a_rank_that_only_lost_its_peer_began_nothing(
    own: str, lost: str, root_ranks: tuple[int, ...], tmp_path: Path
) -> None:
    """The failure of another rank explains it, unless the other end is a server, or all ranks say the same."""
    job = JobBuilder(tmp_path, layout="perrank").steps(5)
    for rank in range(4):
        job.rank(rank).traceback(own if rank == 2 else lost)
    root = triage.ingest(job.write()).root_cause
    assert root is not None
    assert root.ranks == root_ranks


@layouts
def test_one_rank_that_raises_is_found(layout: Layout, tmp_path: Path) -> None:
    """The rank that raised is the root, and the lost peers of the others follow from it."""
    job = JobBuilder(tmp_path, layout=layout).steps(5)
    job.rank(2).traceback("ValueError: record 'doc-7' has no tokens")
    for rank in (0, 1, 3):
        job.rank(rank).traceback(
            "RuntimeError: [gloo/transport/tcp/pair.cc:553] Connection closed by peer [10.0.0.1]:47"
        )
    if layout != "perrank":
        job.elastic_table({2: 1})
    diagnosis = triage.ingest(job.write())
    root = diagnosis.root_cause
    assert diagnosis.verdict == "unknown"
    assert root is not None
    assert (root.signature, root.ranks, root.title) == (None, (2,), "ValueError: record 'doc-7' has no tokens")
    assert root.cluster in {finding.cluster for finding in diagnosis.unknown}
    (lost,) = [finding for finding in diagnosis.findings if finding.signature == "gloo.connection-closed-by-peer"]
    assert lost.explained_by == (root.cluster,)
    assert lost.ranks == (0, 1, 3)


@pytest.mark.parametrize(
    ("line", "verdict"),
    [
        (
            "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=9, OpType=ALLREDUCE) ran for 600012 ms",
            "unknown",
        ),
        ("[c10d] recvValue failed on SocketImpl(fd=63): failed to recv, got 0 bytes", "clean"),
    ],
)
def test_what_follows_the_last_line_of_a_finished_job(line: str, verdict: str, tmp_path: Path) -> None:
    """A lost connection follows from peers that have ended; any other failure does not."""
    job = JobBuilder(tmp_path, layout="perrank").steps(5).finish()
    for rank in range(4):
        job.rank(rank).log(f"[rank{rank}]:[E304 05:00:00.1 ProcessGroupNCCL.cpp:616] [Rank {rank}] {line}")
    assert triage.ingest(job.write()).verdict == verdict


LOST_STORE = {
    "recv": "TCPStore.cpp:115] [c10d] recvVector failed on SocketImpl(fd=60, addr=[n1]:4, remote=[n1]:5): got 0 bytes",
    "dump": 'ProcessGroupNCCL.cpp:1662] Failed to check the "should dump" flag on TCPStore, with error: got 0 bytes',
    "send": "TCPStore.cpp:106] [c10d] sendBytes failed on SocketImpl(fd=60, addr=[n1]:4, remote=[n1]:5): Broken pipe",
}


@pytest.mark.parametrize("line", LOST_STORE.values(), ids=LOST_STORE)
@pytest.mark.parametrize(
    ("step", "end", "more", "verdict"),
    [
        (5, "[rank0]: Training completed", "", "inconclusive"),
        (5, "Training completed", "", "inconclusive"),
        (3, "[rank0]: Training completed", "", "known"),  # rank 1 had steps left
        (5, "[rank0]: evaluation begins", "", "unknown"),
        (5, "[rank1]: Training completed", "", "unknown"),  # the store is that of rank 0
        (5, "[rank0]: Training completed", "failed (exitcode: -6) local_rank: 1 (pid: 412) of binary: python", "known"),
    ],
)
def test_the_store_is_gone_when_rank_0_has_finished(
    line: str, step: int, end: str, more: str, verdict: str, tmp_path: Path
) -> None:
    """What the store's threads print then is no failure, unless its rank had more to do, or a process failed."""
    lines = ["[rank0]: step 5/5 loss 1.9", f"[rank1]: step {step}/5 loss 1.9", end, f"[rank1]:[W304 10:31:12.1 {line}"]
    lines += [f"E0304 10:31:15.000000 100 torch/distributed/elastic/multiprocessing/api.py:869] {more}"] if more else []
    (tmp_path / "job.log").write_text("\n".join(lines) + "\n")
    assert triage.ingest(tmp_path).verdict == verdict


@pytest.mark.parametrize(
    "failure",
    [
        ["double free or corruption (!prev)", "Aborted (core dumped)"],
        ["libc++abi: terminating due to uncaught exception of type queue::closed: the queue was closed"],
        ["Traceback (most recent call last):", '  File "train.py", line 9, in <module>', "ValueError: no such bucket"],
    ],
)
def test_a_failure_behind_the_end_of_its_program_says_so(failure: list[str], tmp_path: Path) -> None:
    """The reader learns that the training is complete; not of a failure that stands above the line, nor of others."""

    def has_remark(*lines: str) -> bool:
        (tmp_path / "job.log").write_text("\n".join(["step 5/5 loss 1.9", *lines]) + "\n")
        root = triage.ingest(tmp_path).root_cause
        assert root is not None
        return any("had said that it finished" in reason for reason in root.why)

    assert has_remark("Training completed", *failure)
    assert not has_remark("Epoch completed", *failure)
    tagged = [f"[rank3]: {line}" for line in failure]
    assert not has_remark("[rank0]: Training completed", *tagged)


@layouts
def test_handled_exceptions_do_not_make_a_job_fail(layout: Layout, tmp_path: Path) -> None:
    """An exception after which its rank goes on and finishes was handled; a warning names it."""
    job = JobBuilder(tmp_path, layout=layout, tagged=False).steps(5)
    job.rank(1).log("WARNING retry 1 of 3")
    job.rank(1).traceback("ConnectionError: files.example.com does not answer")
    diagnosis = triage.ingest(job.steps(30, first=6).finish().write())
    assert diagnosis.verdict == "clean"
    assert diagnosis.root_cause is None


@pytest.mark.parametrize("layout", ["tee", "redirects", "perrank"])
def test_a_handled_exception_is_not_the_cause_of_a_later_failure(layout: Layout, tmp_path: Path) -> None:
    """A rank that goes on after an exception and is killed much later died of something else."""
    job = JobBuilder(tmp_path, layout=layout, tagged=False).steps(5)
    job.rank(0).traceback("ConnectionError: files.example.com does not answer")
    job.steps(30, first=6)
    job.rank(2).traceback(
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of "
        "79.15 GiB"
    )
    if layout != "perrank":
        job.elastic_table({2: 1})
    root = triage.ingest(job.write()).root_cause
    assert root is not None
    assert (root.signature, root.ranks) == ("cuda.out-of-memory", (2,))


def test_an_exception_after_the_rank_finished_counts(tmp_path: Path) -> None:
    """In another file only the timestamps show it: a traceback that was logged later did not end before."""
    job = JobBuilder(tmp_path, layout="redirects", world_size=2, tagged=False).steps(5).finish()
    job.clock += 60
    job.rank(1).line(f"{job.timestamp()},000 [rank 1] ERROR trainer: cannot upload")
    job.rank(1).traceback("ConnectionError: files.example.com does not answer")
    root = triage.ingest(job.write()).root_cause
    assert root is not None
    assert root.ranks == (1,)


@layouts
@pytest.mark.parametrize(
    "headed", ["Exception ignored in: <function Pool.__del__ at 0x7f01>", "Exception in thread Thread-3 (_monitor):"]
)
def test_nonfatal_exceptions_do_not_make_a_job_fail(headed: str, layout: Layout, tmp_path: Path) -> None:
    """What Python ignores, and what ends a thread only, does not fail a job that finished."""
    job = JobBuilder(tmp_path, layout=layout, tagged=False).steps(5)
    job.rank(1).traceback("RuntimeError: cannot schedule new futures", heading=headed)
    assert triage.ingest(job.finish().write()).verdict == "clean"


def test_ignored_exceptions_are_never_a_cause(tmp_path: Path) -> None:
    """Python says itself that it went on: the failure of another rank is the root, whatever comes first."""
    job = JobBuilder(tmp_path, tagged=False).steps(5)
    job.rank(1).traceback(
        "RuntimeError: cannot schedule new futures", heading="Exception ignored in: <function Pool.__del__ at 0x7f01>"
    )
    job.rank(3).traceback("ValueError: no tokens")
    root = triage.ingest(job.elastic_table({3: 1}).write()).root_cause
    assert root is not None
    assert (root.title, root.ranks) == ("ValueError: no tokens", (3,))


@pytest.mark.parametrize("layout", ["tee", "redirects"])
def test_a_job_that_was_restarted_and_finished_is_clean(layout: Layout, tmp_path: Path) -> None:
    """The last attempt decides."""
    job = JobBuilder(tmp_path, layout=layout).steps(5)
    job.rank(1).traceback("TimeoutError: fetching shard 3 took longer than 30 s")
    diagnosis = triage.ingest(job.restart().steps(5).finish().write())
    assert diagnosis.verdict == "clean"


@pytest.mark.parametrize("layout", ["tee", "redirects"])
def test_a_job_that_was_restarted_and_failed_again_failed(layout: Layout, tmp_path: Path) -> None:
    """A failure of the last attempt is a failure, and the rank is that of the last attempt's."""
    job = JobBuilder(tmp_path, layout=layout).steps(5)
    job.rank(1).traceback("TimeoutError: fetching shard 3 took longer than 30 s")
    job.restart().steps(5)
    job.rank(1).traceback("TimeoutError: fetching shard 3 took longer than 30 s")
    diagnosis = triage.ingest(job.elastic_table({1: 1}).write())
    assert diagnosis.verdict == "unknown"
    assert diagnosis.root_cause is not None
    assert diagnosis.root_cause.ranks == (1,)


def test_killed_and_silent(tmp_path: Path) -> None:
    """A signal from outside is the only evidence: it is the root, on the rank that the table names."""
    diagnosis = triage.ingest(JobBuilder(tmp_path).steps(5).elastic_table({2: -9}).write())
    assert diagnosis.root_cause is not None
    assert (diagnosis.root_cause.signature, diagnosis.root_cause.ranks) == ("host.sigkill", (2,))
    assert [rank.state for rank in diagnosis.ranks] == ["unclear", "unclear", "killed", "unclear"]
    assert diagnosis.ranks[0].last_step == 5


def logged(text: str, step: int | None = None, action: str = "", rank: int | None = None) -> tuple[str, Activity]:
    """Return the activity of a line."""
    return "job.log", Activity(Origin(rank=rank), 0, "", step, finished=False, action=action, is_of_runtime=text == "-")


@pytest.mark.parametrize(
    ("lines", "doing", "unplaced"),
    [
        ([logged("compiling", action="compiling", rank=1), logged("-", rank=1)], {1: "compiling"}, {}),
        ([logged("compiling", action="compiling", rank=1), logged("x", rank=1)], {}, {}),
        ([logged("step", 3), logged("autotune", action="compiling")], {}, {"compiling": 1}),
        ([logged("autotune", action="compiling"), logged("step", 3, rank=0)], {}, {}),
    ],
)
def test_what_the_runtime_prints_does_not_hide_what_a_rank_did(
    lines: list[tuple[str, Activity]], doing: dict[int, str], unplaced: dict[str, int]
) -> None:
    """Its last line of its program counts; of lines without a rank those after the last step of all."""
    outcome = find_outcome([], lines, job_of(2))
    assert (outcome.doing, outcome.unplaced) == (doing, unplaced)


def finished_at(offset: int, *, host: str | None = None, scope: Scope = "program") -> tuple[str, Activity]:
    """Return the line by which the writers of job.log finished."""
    return "job.log", Activity(Origin(host=host), offset, "", None, finished=True, completion=scope)


def test_python_says_itself_that_it_ignored_an_exception() -> None:
    """In a job that did not finish; another exception may have ended it."""
    outcome = Outcome({}, {}, 0, {}, {}, frozenset())
    ignored = replace(raised("RuntimeError: closed", 1), detail=ExceptionDetail("RuntimeError", nonfatal="ignored"))
    assert outcome.why_over(ignored) == "Python ignored it"
    assert not outcome.why_over(raised("RuntimeError: closed", 1))


@pytest.mark.parametrize(("scope", "why"), [("job", "every rank finished"), ("program", "")])
def test_the_success_of_a_launcher_covers_what_stands_behind_the_end(scope: Scope, why: str) -> None:
    """A message behind the last end of its file counts, unless the launcher reports success."""
    completion = Completion((finished_at(50, scope=scope),), is_proved=True)
    ends = {"job.log": 50}
    outcome = Outcome({}, ends, 0, {}, {}, frozenset(), everyone=True, completion=completion)
    assert outcome.why_over(fact("NCCL WARN unhandled", component="nccl", offset=90)) == why


@pytest.mark.parametrize(
    ("source", "why"), [("other.log", "its rank finished, as another file shows"), ("job.log", "")]
)
def test_the_end_of_a_rank_in_another_file_counts_without_times(source: str, why: str) -> None:
    """In the file of the end itself the place shows that the failure came later."""
    outcome = Outcome({1: None}, {"job.log": 50}, 0, {}, {}, frozenset())
    assert outcome.why_over(raised("OSError: cannot upload", 1, source=source, offset=90)) == why


@pytest.mark.parametrize(("host", "why"), [("node1", "the job finished afterwards"), ("node2", "")])
def test_the_end_of_another_host_says_nothing_of_an_exception(host: str, why: str) -> None:
    """Neither line names its rank: a process of another host finished, and this one may have ended here."""
    completion = Completion((finished_at(50, host=host),))
    outcome = Outcome({}, {"job.log": 50}, 0, {}, {}, frozenset(), completion=completion)
    assert outcome.why_over(raised("OSError: cannot upload", offset=10, host="node1")) == why


@pytest.mark.parametrize(
    ("facts", "is_missing"),
    [
        ([exited(1, 1)], True),
        ([exited(1, 1), raised("ValueError: no tokens", 1)], False),
        ([exited(1, 1), raised("ValueError: no tokens", 0)], True),
        ([exited(1, 1), raised("ValueError: no tokens")], False),
        ([exited(1, 1), exited(0, 1), raised("ValueError: no tokens")], True),
        ([exited(1, -9, signal="SIGKILL")], False),
    ],
)
def test_an_exit_code_without_an_exception_is_of_one_that_no_file_has(
    facts: list[Evidence], *, is_missing: bool
) -> None:
    """An exception without a rank may be that of one of them; a kill leaves none."""
    assert find_outcome(facts, [], job_of(2)).has_unlogged_exception is is_missing
