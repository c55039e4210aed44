"""Dumps of the processes of a job → the ranks and helpers that they are."""

from __future__ import annotations

from tests.artifacts.stacks.factories import compare, dump_text, one_process, ranked
from triage.artifacts.stacks.reader import parse_processes

STEP, SAVE = ("step (train.py:40)", "<module> (train.py:61)"), ("save (ckpt.py:12)", "<module> (train.py:61)")
WORKER = ("_worker_loop (torch/utils/data/_utils/worker.py:330)", "<module> (train.py:1)")


def test_only_helpers() -> None:
    """Where all stacks are of helpers, a note says that no rank is among them."""
    comparison = compare([one_process(*WORKER, pid=200), one_process(*WORKER, pid=201)])
    assert comparison.groups == ()
    assert len(comparison.helpers) == 2
    assert comparison.notes == ("the stacks are only of helpers (2 processes), not of a rank",)


def test_dumps_of_one_process() -> None:
    """A dump without a rank belongs to the rank of another dump of the same process; that of a helper to none."""
    dumps = [*ranked(STEP, SAVE), *parse_processes(dump_text(*STEP, pid=101).encode(), "later.txt")]
    comparison = compare(dumps)
    assert sorted(member.label for group in comparison.groups for member in group.members) == ["rank 0", "rank 1"]
    assert comparison.notes == ("rank 1 moved between two dumps, so it is slow, not stuck",)
