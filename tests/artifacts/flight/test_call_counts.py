"""How many calls of another group a rank had made: what decides in a ring of waits, and what the dumps lack."""

from __future__ import annotations

from typing import Any

from tests.artifacts.flight.factories import Call, Job, analyse_dumps
from triage.artifacts.flight.model import Fault

A, B, C = (Call(group=name, place=("train.py", line, "step")) for line, name in enumerate("abc", 5))
GROUPS = {"a": [0, 1, 2, 3], "b": [0, 1, 2, 3], "c": [2]}


def ring(of_one: list[Call], records: int) -> dict[int, dict[str, Any]]:
    """Return dumps of ranks that wait for rank 2, which waits for them; its ring buffer has dropped some calls."""
    calls = {rank: [A, B] * 2 + [A] for rank in range(4)}
    calls[2] = of_one
    dumps = Job(calls, GROUPS, window=2).dumps()
    dumps[2]["entries"] = dumps[2]["entries"][-records:]
    return dumps


def roots(dumps: dict[int, dict[str, Any]]) -> list[Fault]:
    """Return the roots among the faults."""
    return [fault for fault in analyse_dumps(dumps).faults if not fault.explained_by]


OTHER_ORDER = [A, B, A, B, C, B, C]


def test_ring_of_two_groups() -> None:
    """The rank that used the groups in another order is at fault, whether or not its dump shows all its calls."""
    for records in (7, 3):
        assert [(fault.rule, fault.ranks) for fault in roots(ring(OTHER_ORDER, records))] == [("group-order", (2,))]


def test_lost_calls_leave_the_count_unknown() -> None:
    """A rank whose dump lacks its earlier calls, and which has no status, is only at fault with uncertainty."""
    dumps = ring(OTHER_ORDER, 3)
    for dump in dumps.values():
        del dump["pg_status"]
    (fault,) = roots(dumps)
    assert (fault.rule, fault.ranks) == ("group-order", (2,))
    assert fault.uncertainty == "the dump does not show what the ranks called earlier"


def test_calls_behind_the_one_in_which_a_rank_stands() -> None:
    """Where the calls before are lost, those queued behind still name the rank of another order."""
    dumps = ring(OTHER_ORDER, 7)
    entries = dumps[2]["entries"]
    dumps[2]["entries"] = [entries[4], entries[5], entries[2]]
    for number, entry in enumerate(dumps[2]["entries"]):
        entry["record_id"] = 10 + number
    assert [(fault.rule, fault.ranks) for fault in roots(dumps)] == [("group-order", (2,))]


def mesh(skipping: int | None) -> dict[int, list[Call]]:
    """Return the calls of a mesh of two rows of four; one rank leaves out the third call of its row, and goes on."""
    row = {rank: Call(group=f"row{rank // 4}", place=("train.py", 5, "step")) for rank in range(8)}
    column = {rank: Call(group=f"column{rank % 4}", place=("train.py", 6, "step")) for rank in range(8)}
    calls = {rank: [row[rank], column[rank]] * 4 + [Call("barrier")] for rank in range(8)}
    if skipping is not None:
        del calls[skipping][4]
    return calls


def test_a_rank_of_a_mesh_that_left_out_a_call() -> None:
    """Most ranks made the last call of its column behind a later call of their row, so it left one out there."""
    groups = {f"row{row}": list(range(row * 4, row * 4 + 4)) for row in range(2)}
    groups |= {f"column{column}": [column, column + 4] for column in range(4)}
    (fault,) = roots(Job(mesh(6), groups).dumps())
    assert (fault.rule, fault.ranks, fault.seq, fault.is_certain) == ("divergent-call", (6,), 4, True)
    assert fault.group.startswith("row1")
    assert "rank 6 entered all_reduce #4 of column2" in fault.text
    assert "after call #3 of its group row1" in fault.text
    assert analyse_dumps(Job(mesh(None), groups).dumps()).faults == ()
