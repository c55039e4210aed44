"""The calls that NCCL logs when they are enqueued: what is read of them, and what follows from them for the ranks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

import triage
from triage.diagnose.context import RuleContext
from triage.diagnose.launches import read_launches
from triage.diagnose.rules.waits import describe_differences, launched_calls, launched_counts
from triage.model import Evidence, InferenceDetail, LaunchedCall, LaunchesDetail, Origin
from triage.model.diagnosis import Diagnosis

TIMEOUT = Evidence("message", "torch", "Watchdog caught collective operation timeout", Origin(rank=0), "log", 0)
STEP = ("AllReduce", "ReduceScatter", "AllGather")


def lines(rank: int, operations: Sequence[str], *, size: int = 4, first: int = 0, counts: bool = True) -> str:
    """Return what the process of a rank logs: its communicator, and a line for each call."""
    head = f"n0:{500 + rank}:{600 + rank} [{rank}] NCCL INFO "
    comm = f"0x55d0{rank:02x}"
    made = f"ncclCommInitRank comm {comm} rank {rank} nranks {size} cudaDev {rank} busId {0x1000 * (rank + 1):x}"
    text = f"{head}{made} commId 0xabcdef12 - Init COMPLETE\n"
    for number, operation in enumerate(operations, first):
        text += (
            f"{head}{operation}: opCount {number if counts else 0:x} sendbuff 0x7f recvbuff 0x7f count 64 datatype 7 "
        )
        text += f"op 0 root 0 comm {comm} [nranks={size}] stream 0x77\n"
    return text


def diagnose(directory: Path, operations: dict[int, Sequence[str]], *, end: str = "", counts: bool = True) -> Diagnosis:
    """Return the diagnosis of a job with one file for each rank."""
    for rank, own in operations.items():
        text = lines(rank, own, size=len(operations), counts=counts) + end.format(rank)
        (directory / f"nccl.n0.{500 + rank}.log").write_text(text)
    return triage.ingest(directory)


def fact(
    rank: int, numbers: Sequence[int], *, total: int | None = None, has_transfers: bool = False, count: int = 64
) -> Evidence:
    """Return the calls of a rank, all of them AllReduce of `count` elements."""
    calls = tuple(LaunchedCall(number, "AllReduce", count, 7) for number in numbers)
    detail = LaunchesDetail("0xab", 3, rank, total, has_transfers, calls)
    return Evidence("launches", "NCCL", "AllReduce: opCount", Origin(rank=rank), f"{rank}.log", 0, detail=detail)


def context(*facts: Evidence, failed: frozenset[int] = frozenset()) -> RuleContext:
    """Return a job of three ranks with these facts."""
    return RuleContext(facts, {}, frozenset(range(3)), 3, failed)


def numbers_of(*facts: Evidence) -> dict[int, tuple[int | None, int | None]]:
    """Return rank to the number of its last call and of the one in which it waits."""
    entries = read_launches(context(*facts)).entries
    return {one.rank: (one.enqueued, one.call.seq if one.call else None) for one in entries}


@pytest.mark.parametrize("counts", [True, False])
def test_another_operation_at_one_number_names_its_rank(tmp_path: Path, *, counts: bool) -> None:
    """It needs no timeout, and no numbers of NCCL where all lines are read."""
    operations = dict.fromkeys(range(4), STEP * 5)
    operations[2] = (*STEP * 4, "AllReduce", "AllGather", "ReduceScatter")
    diagnosis = diagnose(tmp_path, operations, counts=counts)
    assert diagnosis.root_cause is not None
    assert (diagnosis.root_cause.signature, diagnosis.root_cause.ranks) == ("torch.collective-order-mismatch", (2,))
    assert "ReduceScatter" in " ".join(fact.text for fact in diagnosis.root_cause.evidence)


def test_fewer_calls_alone_do_not_show_that_the_job_hung(tmp_path: Path) -> None:
    """A job that was stopped while it ran has ranks some calls apart, too: the verdict is unknown, and says so."""
    diagnosis = diagnose(tmp_path, {rank: STEP * (4 if rank == 1 else 5) for rank in range(4)})
    assert diagnosis.root_cause is not None
    root = diagnosis.root_cause
    assert (diagnosis.verdict, root.signature, root.ranks) == ("unknown", None, ())
    assert root.title == "NCCL's log shows ranks that differ, and not which of them is at fault"
    assert "if it was stopped while it ran" in root.why[0]


def test_the_rank_with_fewer_calls_is_behind_where_others_timed_out(tmp_path: Path) -> None:
    """The watchdogs print a call without its number; the counts show who never came to it."""
    caught = (
        "[rank{0}]:[E1127 10:10:00.123456789 ProcessGroupNCCL.cpp:616] [Rank {0}] Watchdog caught collective operation "
        "timeout: WorkNCCL(OpType=ALLREDUCE, NumelIn=64, NumelOut=64, Timeout(ms)=600000) ran for 600044 milliseconds "
        "before timing out.\n"
    )
    root = diagnose(tmp_path, {rank: STEP * (4 if rank == 1 else 5) for rank in range(4)}, end=caught).root_cause
    assert root is not None
    assert (root.signature, root.ranks) == ("torch.lagging-rank", (1,))
    assert "NCCL does not log when a call ends" in " ".join(root.why)
    assert root.confidence <= 0.6


def test_counts_of_all_lines_compare() -> None:
    """The collectives are counted from the first; the one with fewer is behind in the first call that it lacks."""
    facts = [fact(rank, range(4 if rank == 1 else 6), total=104 if rank == 1 else 106) for rank in range(3)]
    assert numbers_of(*facts) == {0: (105, 104), 1: (103, None), 2: (105, 104)}
    (inference,) = launched_counts(context(*facts, TIMEOUT))
    assert isinstance(inference.detail, InferenceDetail)
    assert (inference.detail.rule, inference.origin.rank) == ("lagging-rank", 1)
    assert "waits for its device" in inference.detail.uncertainty
    assert launched_counts(context(*facts)) == launched_calls(context(*facts, TIMEOUT)) == []
    (difference,) = describe_differences(context(*facts))
    assert difference.origin.rank is None
    assert launched_counts(context(*facts, TIMEOUT, failed=frozenset((1,)))) == []


@pytest.mark.parametrize(
    ("last", "has_transfers", "is_compared"),
    [(range(30, 36), False, True), ((30, 30, 30), False, False), (range(30, 36), True, False), ((30,), False, False)],
)
def test_numbers_of_nccl_compare_where_each_call_counts(
    last: Sequence[int], *, has_transfers: bool, is_compared: bool
) -> None:
    """Of a long file only the end is read: its numbers count if they grow by one and count no transfers."""
    facts = [fact(rank, range(30, 38), has_transfers=has_transfers) for rank in (0, 1)]
    assert bool(numbers_of(*facts, fact(2, last, has_transfers=has_transfers))) == is_compared


def test_another_size_at_one_number_needs_no_timeout() -> None:
    """It is no question of how far a rank came; the count of calls is left to the other rule."""
    facts = [fact(rank, range(6), total=6, count=32 if rank == 2 else 64) for rank in range(3)]
    (inference,) = launched_calls(context(*facts))
    assert isinstance(inference.detail, InferenceDetail)
    assert (inference.detail.rule, inference.origin.rank) == ("shape-mismatch", 2)
    assert launched_counts(context(*facts, TIMEOUT)) == []


def test_equal_counts_say_nothing() -> None:
    """All ranks enqueued the same calls."""
    facts = [fact(rank, range(6), total=6) for rank in range(3)]
    assert numbers_of(*facts) == {}
    assert describe_differences(context(*facts, TIMEOUT)) == []


def test_only_the_ends_of_a_long_file_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The communicator stands at the start, the last calls at the end; what is between them is not needed."""
    monkeypatch.setattr("triage.compare.launched_calls._MOST_PER_TEXT", 1 << 15)
    for rank in range(4):
        operations = [STEP[number % 3] for number in range(2000 - 2 * (rank == 3))]
        if rank == 3:
            operations[-1] = "Broadcast"
        (tmp_path / f"nccl.n0.{500 + rank}.log").write_text(lines(rank, operations))
    root = triage.ingest(tmp_path).root_cause
    assert root is not None
    assert (root.signature, root.ranks) == ("torch.collective-order-mismatch", (3,))
