"""What follows from all stacks of a job, once the rank of each process is known."""

from __future__ import annotations

from dataclasses import replace

from tests.artifacts.stacks.factories import dump_text
from triage.artifacts.stacks.inference import to_dump_state
from triage.artifacts.stacks.reader import parse_processes, to_evidence
from triage.model import Evidence, Origin


def evidence_of(*frames: str) -> Evidence:
    """Return the stack of one process with pid 300 in the log of a rank."""
    (process,) = parse_processes(dump_text(*frames, pid=300).encode(), "node1.log")
    return to_evidence(process)


def complete(source: str, origin: Origin) -> Origin:
    """Give every process of the log the rank that wrote it."""
    return replace(origin, rank=3)


def test_helper_in_the_log_of_a_rank() -> None:
    """A data loader worker whose stack stands in the log of a rank is not that rank; the program itself is."""
    worker = evidence_of("_worker_loop (torch/utils/data/_utils/worker.py:330)", "<module> (train.py:1)")
    program = evidence_of("step (train.py:40)", "<module> (train.py:61)")
    states = [to_dump_state(fact, complete) for fact in (worker, program)]
    assert [(state.process.rank, state.process.pid, state.state.kind) for state in states] == [
        (None, 300, "worker"),
        (3, 300, states[1].state.kind),
    ]
