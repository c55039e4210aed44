"""The state of each rank, from facts."""

from __future__ import annotations

from pathlib import Path

import pytest

import triage
from diagnose.factories import GLOO, TIMEOUT, candidate, exited, fact, job_of, raised, solve
from triage.catalog.model import Catalog
from triage.diagnose import rank_states
from triage.diagnose.causes import Verdict
from triage.diagnose.outcome import Outcome
from triage.diagnose.reason import ReasoningResult
from triage.evidence.inference import make_inferences
from triage.model.details import FlightDetail
from triage.model.evidence import Evidence
from triage.testing.jobs import JobBuilder

PG = "[PG ID 0 PG GUID 0(default_pg) Rank {0}] "
WATCHDOG = PG + (
    "Watchdog caught collective operation timeout: WorkNCCL(SeqNum={1}, OpType=ALLREDUCE, NumelIn=64, "
    "NumelOut=64, Timeout(ms)=600000)"
    " ran for 600041 milliseconds before timing out."
)


def letters(facts: list[Evidence], catalog: Catalog, size: int = 4, present: list[int] | None = None) -> str:
    """Return the first two letters of the state of each rank."""
    result = solve(facts, catalog, size, present)
    return "".join(state.state[:2] for state in rank_states.infer_rank_states(result, job_of(size, present)))


def waiting(rank: int, seq: int = 812) -> Evidence:
    """Return the watchdog's line of a rank that timed out."""
    return fact(WATCHDOG.format(rank, seq), rank, component="c10d")


def test_those_that_wait_and_the_one_waited_for_are_stalled(catalog: Catalog) -> None:
    """A rank that timed out in a collective and was then aborted is stalled, and so is the rank that never came."""
    facts = [one for rank in (0, 1, 3) for one in (waiting(rank), exited(rank, -6, signal="SIGABRT"))]
    assert letters([*facts, exited(2, -15, signal="SIGTERM", by_agent=True)], catalog) == "stststst"


def test_the_rank_that_failed_stands_out_of_those_that_waited(catalog: Catalog) -> None:
    """One rank raised, the others timed out waiting for it: one failed, three stalled."""
    assert letters([raised("ValueError: shard 3 is empty", 2), *map(waiting, (0, 1, 3))], catalog) == "ststfast"


def test_one_behind_in_sequence_numbers(catalog: Catalog) -> None:
    """Everybody waits, one of them in an older collective: all are stalled."""
    status = (
        PG + " failure detected by watchdog at work sequence id: {1} PG status: last enqueued work: {1}, last "
        "completed work: 809"
    )
    facts = [
        one
        for rank in range(4)
        for one in (waiting(rank, 810 + (rank != 1)), fact(status.format(rank, 810 + (rank != 1)), rank))
    ]
    assert letters(facts, catalog) == "stststst"


def test_killed_and_crashed_differ(catalog: Catalog) -> None:
    """A signal from outside kills; one that a process brings upon itself is a failure; one of the launcher's own only
    cleans up.
    """
    assert (
        letters([exited(1, -9, signal="SIGKILL"), exited(2, -15, signal="SIGTERM", by_agent=True)], catalog)
        == "unkikiun"
    )
    assert (
        letters([exited(1, -11, signal="SIGSEGV"), exited(2, -15, signal="SIGTERM", by_agent=True)], catalog)
        == "unfakiun"
    )


def test_a_rank_that_lost_a_peer_has_failed(catalog: Catalog) -> None:
    """A rank that lost a peer has failed; the one that went first without an error is silent."""
    assert letters([raised(GLOO, rank) for rank in (0, 1, 2)], catalog) == "fafafasi"


def test_a_rank_without_a_file_is_silent(catalog: Catalog) -> None:
    """A rank that left no trace is silent, even where the others waited for it."""
    facts = [raised(TIMEOUT, rank) for rank in (0, 1, 2)]
    assert letters(facts, catalog, 5, [0, 1, 2, 4]) == "stststsist"


def test_those_that_a_dump_shows_waiting(catalog: Catalog) -> None:
    """A conclusion from a Flight Recorder dump names who is missing and who waits for it: both are stalled."""
    dump = fact("0 entries", 3, kind="flight", source="dump3")
    (missing,) = make_inferences("never-joined", [3], "rank 3 never joined", dump, waiting=(0, 1))
    assert letters([missing], catalog) == "ststunst"
    last = fact(
        "last call of rank 2: ALLREDUCE #7 of tp, not done",
        2,
        kind="flight",
        component="flight-recorder",
        detail=FlightDetail(waits=True),
    )
    assert letters([missing, last], catalog) == "stststst"
    assert (
        letters([last], catalog) == "unununun"
    )  # nothing failed, as far as is known: the call may be done a moment later


def test_only_the_diagnosed_attempt_counts(catalog: Catalog) -> None:
    """A rank that failed in the first attempt and not in the last is not shown as failed."""
    facts = [raised("ValueError: shard 3 is empty", 0, attempt=1), raised("KeyError: 'x'", 2, attempt=2)]
    assert letters(facts, catalog) == "ununfaun"


def test_the_ranks_of_a_failed_node_differ_from_those_that_were_stopped(tmp_path: Path) -> None:
    """Slurm names the node that it lost and another that reports it: the ranks of the first failed, the others were
    killed with the job.
    """
    lines = [
        f"{rank}: 2026-11-21 02:30:0{step},000 [rank{rank}] INFO trainer: step {step} loss 2.5"
        for step in (1, 2)
        for rank in range(4)
    ]
    slurm = [
        "srun: error: Node failure on node2",
        "slurmstepd: error: *** STEP 7.0 ON node1 CANCELLED AT 2026-11-21T02:30:09 DUE TO NODE FAILURE ***",
    ]
    placed = [
        f"{rank}: node{rank // 2 + 1}:4{rank}:4{rank} [{rank % 2}] NCCL INFO ncclCommInitRank comm 0x{rank} rank "
        f"{rank} nranks 4 cudaDev {rank % 2} busId 1b000 - Init COMPLETE"
        for rank in range(4)
    ]
    (tmp_path / "slurm-7.out").write_text("\n".join([*placed, *lines, *slurm]) + "\n")
    diagnosis = triage.ingest(tmp_path)
    assert diagnosis.root_cause is not None
    assert (diagnosis.root_cause.ranks, diagnosis.root_cause.hosts) == ((2, 3), ("node2",))
    assert [state.state for state in diagnosis.ranks] == ["killed", "killed", "failed", "failed"]


@pytest.mark.parametrize(
    ("name", "ranks", "states"),
    [
        ("slurm.job-held", [], "kikiki"),
        ("launch.interrupted", [], "kikiki"),
        ("storage.disk-full", [], "ununun"),
        ("slurm.job-held", [1], "unkiun"),
    ],
)
def test_a_scheduler_that_names_no_rank_stopped_all_ranks(name: str, ranks: list[int], states: str) -> None:
    """A failure of Slurm or a stop from outside without a rank stopped all ranks; another failure stopped none."""
    root = candidate(name, ranks=ranks)
    outcome = Outcome({}, {}, 0, {}, {}, frozenset())
    result = ReasoningResult(tuple(root.facts), (root,), Verdict(root, (), 0.5), outcome, {})
    assert "".join(one.state[:2] for one in rank_states.infer_rank_states(result, job_of(3))) == states


def test_nobody_is_ok_without_a_reason(tmp_path: Path) -> None:
    """In a failed job a rank that finished is ok, and one that only wrote lines is unclear."""
    job = JobBuilder(tmp_path, layout="perrank", world_size=3).steps(5)
    job.rank(0).log("training finished")
    job.rank(2).traceback("ValueError: no tokens")
    states = {state.rank: state.state for state in triage.ingest(job.write()).ranks}
    assert states == {0: "ok", 1: "unclear", 2: "failed"}


@pytest.mark.parametrize(("stated", "state"), [(True, "silent"), (False, None)])
def test_a_rank_is_absent_only_from_a_stated_world(tmp_path: Path, stated: bool, state: str | None) -> None:
    """A paste of rank 1 alone says nothing of rank 0; with WORLD_SIZE=2 in the text it does."""
    line = "[rank1]: WORLD_SIZE=2\n" if stated else ""
    (tmp_path / "paste.log").write_text(f"{line}[rank1]: Traceback (most recent call last):\n[rank1]: ValueError: no\n")
    states = {one.rank: one.state for one in triage.ingest(tmp_path).ranks}
    assert states.get(0) == state
    assert states[1] == "failed"
