"""Build the lines that watchdogs write."""

from __future__ import annotations

from collections.abc import Sequence

from diagnose.factories import fact
from triage.diagnose.context import RuleContext
from triage.model.evidence import Evidence

DEFAULT = "PG ID 0 PG GUID 0(default_pg)"


def timed_out(
    rank: int,
    *,
    seq: int = 7,
    op: str = "ALLREDUCE",
    numel: int = 64,
    numel_out: int | None = None,
    group: str = DEFAULT,
    local: int | None = None,
    ran: int = 600_010,
    offset: int = 0,
    time: float | None = None,
) -> Evidence:
    """Return the timeout of a call; an empty group is not named, as in torch up to 2.2 and in first lines."""
    own = rank if local is None else local
    head = f"[{group} Rank {own}]" if group else f"[Rank {own}]"
    out = numel if numel_out is None else numel_out
    work = f"WorkNCCL(SeqNum={seq}, OpType={op}, NumelIn={numel}, NumelOut={out}, Timeout(ms)=600000)"
    text = f"{head} Watchdog caught collective operation timeout: {work} ran for {ran} milliseconds before timing out."
    return fact(text, rank, component="c10d", source=f"rank_{rank}.log", offset=offset, time=time)


def failed_at(
    rank: int, seq: int, enqueued: int, completed: int, *, group: str = DEFAULT, local: int | None = None
) -> Evidence:
    """Return the state that torch 2.6 and later print after a timeout."""
    head = f"[{group} Rank {rank if local is None else local}]"
    state = f"last enqueued work: {enqueued}, last completed work: {completed}"
    text = f"{head}  failure detected by watchdog at work sequence id: {seq} PG status: {state}"
    return fact(text, rank, component="c10d", source=f"rank_{rank}.log", offset=500)


def dump_signal(
    rank: int, enqueued: int, completed: int, *, group: str = DEFAULT, local: int | None = None
) -> Evidence:
    """Return the state that a rank prints when another one timed out."""
    head = f"[{group} Rank {rank if local is None else local}]"
    state = f"Last enqueued NCCL work: {enqueued}, last completed NCCL work: {completed}."
    text = f"{head} Received a dump signal due to a collective timeout from  rank 1 and we will try our best. {state}"
    return fact(text, rank, component="c10d", source=f"rank_{rank}.log", offset=900)


def context_of(facts: Sequence[Evidence], size: int = 4) -> RuleContext:
    """Return a context in which all facts are waits."""
    return RuleContext(facts, {"waiting": list(range(len(facts)))}, frozenset(range(size)), size, frozenset())
