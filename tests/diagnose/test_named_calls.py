"""How sentences name the call in which ranks wait, and the place of those that do not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from diagnose.factories import fact
from diagnose.watchdog_lines import context_of, timed_out
from triage.diagnose.open_calls import describe_stacks, name_wait
from triage.model import Evidence, ExceptionDetail, Origin, StackDetail

PLACE = {"file": "/w/train.py", "line": "31", "function": "evaluate", "op": "all_reduce"}
REDUCE = StackDetail("collective", "in all_reduce", "all_reduce", "train.py:31", key=("evaluate (train.py:31)",))
READ = StackDetail("data", "in read_shard", "read_shard", "data.py:7", key=("read_shard (data.py:7)",))


def stack(rank: int, detail: StackDetail) -> Evidence:
    """Return the stack of a rank."""
    return replace(fact("stack", rank), kind="stack", detail=detail, origin=Origin(rank=rank))


def raised_in(rank: int, **fields: str) -> Evidence:
    """Return an exception of a rank at a place."""
    return replace(fact("Timed out", rank), kind="exception", detail=ExceptionDetail("RuntimeError"), fields=fields)


@pytest.mark.parametrize(
    ("facts", "name"),
    [
        ([timed_out(0), timed_out(1)], "ALLREDUCE #7 of group default_pg"),
        ([timed_out(0), timed_out(1, op="BROADCAST")], "a collective"),
        ([timed_out(0), timed_out(1, seq=8)], "a collective"),
        ([timed_out(0), stack(1, REDUCE)], "a collective"),
        ([stack(0, REDUCE), raised_in(1, **PLACE)], "all_reduce in evaluate at train.py:31"),
        ([stack(0, REDUCE)], "all_reduce in evaluate at train.py:31"),
        ([stack(0, replace(REDUCE, key=("<module> (train.py:31)",)))], "all_reduce at train.py:31"),
        ([stack(0, REDUCE), raised_in(1, **{**PLACE, "line": "32"})], "a collective"),
        ([stack(0, replace(REDUCE, place=""))], "a collective"),
        ([stack(0, READ), raised_in(1, message="x")], "a collective"),
    ],
)
def test_the_call_is_named_where_all_that_show_one_show_the_same(facts: Sequence[Evidence], name: str) -> None:
    """Numbers of watchdogs come first, then lines of the program; with two calls none is named."""
    assert name_wait(context_of(facts), {0, 1}) == name


def test_stacks_outside_of_collectives_are_described() -> None:
    """Of the ranks that are asked for, those in a collective are left out, and at most three are shown."""
    context = context_of([stack(rank, REDUCE if rank == 1 else READ) for rank in range(6)], 6)
    assert describe_stacks(context, {0, 1}) == "; by its stack, rank 0 is in read_shard at data.py:7"
    assert describe_stacks(context, set(range(6))).count("by its stack") == 3
    assert describe_stacks(context, {1}) == ""
