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
