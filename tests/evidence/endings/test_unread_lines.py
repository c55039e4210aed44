"""Endings of writers whose lines the scan of a storm left out."""

from __future__ import annotations

from pathlib import Path

import pytest

import triage
from tests.diagnose.factories import fact
from triage.evidence.endings.unread_lines import find_unread_endings
from triage.scan.edges import HeldEdges
from triage.scan.interface import ScanResult

_TEXT = b"step 1\nboom of rank 3\n"


@pytest.mark.parametrize(
    ("hits", "tail", "unread"),
    [
        ([], _TEXT, [(7, 21, ("boom",), 0)]),
        ([(7, 21, ("boom",), 0)], _TEXT, []),
        ([], _TEXT[8:], []),
    ],
    ids=["left out", "read", "before the tail"],
)
def test_lines_of_endings_that_were_not_read(
    hits: list[tuple[int, int, tuple[str, ...], int]], tail: bytes, unread: list[tuple[int, int, tuple[str, ...], int]]
) -> None:
    """The last line of a writer is a hit by its literals, unless it is one already or lies before the tail."""
    scan = ScanResult((), len(_TEXT), HeldEdges(b"", tail), sampled=1)
    ending = fact("boom of rank 3", 3, kind="ending", offset=7)
    assert find_unread_endings(scan, [ending], hits, ["boom", "bang"]) == unread


def _watchdog_lines(rank: int, group: int, number: int) -> list[str]:
    head = f"[rank{rank}]:[E1104 02:38:00.{rank:09d} ProcessGroupNCCL.cpp:"
    work = f"WorkNCCL(SeqNum={number}, OpType=ALLREDUCE, NumelIn=8, NumelOut=8, Timeout(ms)=600000)"
    name = f"[PG ID {group} PG GUID {group} Rank {rank}]"
    late = f"Watchdog caught collective operation timeout: {work} ran for 600010 milliseconds before timing out."
    status = f"PG status: last enqueued work: {number}, last completed work: {number - 1}"
    return [
        f"{head}632] [Rank {rank}] {late}",
        f"{head}2241] {name} failure detected by watchdog at work sequence id: {number} {status}",
        f"{head}695] [Rank {rank}] To avoid data inconsistency, we are taking the entire process down.",
        f"{head}1858] {name} Process group watchdog thread terminated with exception: [Rank {rank}] {late}",
    ]


def test_a_rank_behind_is_named_among_hundreds_in_one_file(tmp_path: Path) -> None:
    """300 ranks time out in one file of more than 1,024 failure lines; the last of them waits in an earlier call."""
    ranks = range(300)
    lines = [f"[rank{rank}]: step 100 loss 2.1" for rank in ranks]
    lines += [line for rank in ranks for line in _watchdog_lines(rank, 0, 100 if rank == 299 else 101)]
    (tmp_path / "train.log").write_text("\n".join(lines), encoding="utf-8")
    root = triage.ingest(tmp_path).root_cause
    assert root is not None
    assert (root.signature, root.ranks) == ("torch.lagging-rank", (299,))


def test_numbers_of_literals_count() -> None:
    """Endings are compared without their numbers first; a literal with another number is none of theirs."""
    scan = ScanResult((), len(_TEXT), HeldEdges(b"", _TEXT), sampled=1)
    ending = fact("boom of rank 3", 3, kind="ending", offset=7)
    assert find_unread_endings(scan, [ending], [], ["rank 4", "rank 3"]) == [(7, 21, ("rank 3",), 0)]
