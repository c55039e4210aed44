"""Hangs in which the dumps show less or more than it seems: what waits for what, and what is not certain."""

from __future__ import annotations

from typing import Any

import pytest

from tests.artifacts.flight.factories import Call, Job, analyse_dumps, analysis, only_open, without_starts
from triage.artifacts.flight.model import Fault, Group
from triage.artifacts.flight.usual_order import group_kind

TP = {"tp0": [0, 1], "tp1": [2, 3]}
Dumps = dict[int, dict[str, Any]]


def roots(dumps: Dumps, written: float | None = None) -> list[Fault]:
    """Return the roots among the faults."""
    return [fault for fault in analyse_dumps(dumps, written).faults if not fault.explained_by]


def tp(rank: int, **more: Any) -> Call:
    """Return a call in the pair of a rank."""
    return Call(group=f"tp{rank // 2}", place=("layer.py", 9, "forward"), **more)


def mesh(steps: int = 4, window: int = 6) -> Job:
    """Return four ranks in pairs: two calls in the pair and one of all in each step, several of them queued."""
    return Job({rank: [tp(rank), tp(rank), Call()] * steps for rank in range(4)}, TP, window=window)


def stopped(rank: int, calls: int, window: int = 6) -> Job:
    """Return `mesh` with a rank that stops after some calls."""
    job = mesh(window=window)
    return Job({**job.calls, rank: job.calls[rank][:calls]}, TP, window=window)


@pytest.mark.parametrize("forms", [(), (without_starts,), (only_open,), (without_starts, only_open)])
def test_only_the_first_open_call_is_a_root(forms: tuple[Any, ...]) -> None:
    """Ranks that queue calls behind their first open one are no roots, in any form of the dumps."""
    dumps = stopped(3, 4).dumps()
    for form in forms:
        dumps = form(dumps)
    (fault,) = roots(dumps)
    assert (fault.rule, fault.ranks, fault.group, fault.seq) == ("never-joined", (3,), "tp1 (2)", 4)
    assert fault.is_certain


def test_queued_call_is_not_missing_a_start() -> None:
    """A call that has started on some ranks and waits on others behind an earlier open call blames no device."""
    dumps = stopped(3, 4).dumps()
    for rank in (0, 1):
        dumps[rank]["entries"][-1]["state"] = "started"
    assert [fault.rule for fault in roots(dumps)] == ["never-joined"]


def test_status_tells_who_is_past_a_call() -> None:
    """In a dump of open calls, a rank without an entry is past the call if its status says so, else it is missing."""
    dumps = only_open(stopped(3, 4).dumps())
    dumps[3]["entries"] = []
    assert [(fault.rule, fault.ranks) for fault in roots(dumps)] == [("never-joined", (3,))]
    dumps[3]["pg_status"]["2"] = dict.fromkeys(dumps[3]["pg_status"]["2"], 4)
    assert [(fault.rule, fault.ranks) for fault in roots(dumps)] != [("never-joined", (3,))]


def test_no_status_leaves_an_empty_dump_unknown() -> None:
    """Without a status, an empty dump of open calls does not show how far its rank is."""
    dumps = only_open(stopped(3, 4).dumps())
    for dump in dumps.values():
        del dump["pg_status"]
    dumps[3]["entries"] = []
    (fault,) = roots(dumps)
    assert (fault.ranks, fault.is_certain) == ((3,), False)


def test_transfer_hangs_only_if_all_have_started() -> None:
    """A call that all have entered is a hanging transfer where all have started it; else the report says less."""
    broken = Job({rank: [Call(), Call(works=False)] for rank in range(4)})
    (fault,) = roots(broken.dumps())
    assert (fault.rule, fault.is_certain) == ("stuck-in-collective", True)
    assert "the transfer hangs" in fault.text
    (fault,) = roots(without_starts(broken.dumps()))
    assert (fault.rule, fault.is_certain) == ("stuck-in-collective", False)
    assert "the transfer hangs" not in fault.text


def test_later_number_proves_a_call_complete() -> None:
    """An open entry of which the rank has completed a later number is complete; Gloo does not promise that."""
    dumps = Job({rank: [Call()] * 4 for rank in range(2)}).dumps()
    dumps[0]["entries"][1]["state"] = "started"
    assert roots(dumps) == []


def test_batch_has_the_state_of_its_end() -> None:
    """torch leaves the calls of a batch `scheduled`; the entry `coalesced` after them says whether they are done."""
    dumps = Job({0: [Call("send", peer=1), Call()], 1: [Call("recv", peer=0), Call()]}).dumps()
    for dump in dumps.values():
        del dump["pg_status"]
        end = {**dump["entries"][0], "profiling_name": "nccl:coalesced"}
        dump["entries"][0] |= {"state": "scheduled", "retired": False}
        dump["entries"].insert(1, end)
        for number, entry in enumerate(dump["entries"]):
            entry["record_id"] = number
    assert roots(dumps) == []
    dumps[0]["entries"][1] |= {"state": "started", "retired": False}
    dumps[1]["entries"][1] |= {"state": "started", "retired": False}
    dumps[0]["entries"].pop()
    dumps[1]["entries"].pop()
    assert [fault.rule for fault in roots(dumps)] == ["stuck-in-collective"]


def test_swapped_groups_among_many() -> None:
    """Of ranks that wait for each other the one is odd whose absence holds up the fewest, not the smaller group."""
    dp, world = Call(group="dp", place=("a.py", 1, "f")), Call(place=("a.py", 2, "f"))
    calls = {rank: ([dp, world] if rank < 3 else [world]) * 3 for rank in range(6)}
    calls[2] = [dp, world, dp, world, world, dp]
    fault = roots(Job(calls, {"dp": [0, 1, 2]}).dumps())[0]
    assert (fault.rule, fault.ranks) == ("group-order", (2,))
    assert fault.is_certain


def test_two_ranks_in_a_ring_are_both_named() -> None:
    """Of two ranks that wait for each other none is certainly odd without a history."""
    a, b = Call(group="a", place=None), Call(group="b", place=None)
    fault = roots(Job({0: [a, b], 1: [b, a]}, {"a": [0, 1], "b": [0, 1]}).dumps())[0]
    assert (fault.rule, fault.ranks, fault.is_certain) == ("group-order", (0, 1), False)


def test_skipped_call_is_counted() -> None:
    """A rank that entered a call of all after fewer calls of its pair than all others skipped one."""
    job = mesh(window=1)
    calls = {**job.calls, 3: [*job.calls[3][:4], *job.calls[3][5:]]}
    fault = roots(Job(calls, TP).dumps())[0]
    assert (fault.ranks, fault.is_certain) == ((3,), True)
    assert (
        "rank 3 entered all_reduce #2 of default_pg after call #3 of its group tp1 (2), ranks 0-1 after #4"
        in fault.text
    )


def test_pairs_do_not_shift_around_a_missing_dump() -> None:
    """Sends to a rank without a dump say nothing certain, and no receive of another rank is taken for theirs."""
    calls: dict[int, list[Call]] = {
        0: [Call("send", peer=1)] * 3,
        1: [Call("recv", peer=0), Call("send", peer=2)] * 3,
        2: [Call("recv", peer=1)] * 3,
    }
    calls[1] = calls[1][:3]
    (fault,) = [fault for fault in analysis(Job(calls), without=[1]).faults if not fault.explained_by]
    assert (fault.rule, fault.ranks, fault.is_certain) == ("never-joined", (1,), False)


def test_transfers_and_collectives_are_in_one_graph() -> None:
    """A rank that stands in a collective holds up the send to it; the idle rank of the collective is the root."""
    calls = {
        0: [Call("send", peer=1)],
        1: [Call(group="pair"), Call("recv", peer=0)],
        2: [],
    }
    (fault,) = roots(Job(calls, {"pair": [1, 2]}).dumps())
    assert (fault.rule, fault.ranks, fault.group) == ("never-joined", (2,), "pair (1)")


def test_unmatched_call_of_a_batch_holds_its_transfers() -> None:
    """A batch ends as a whole: a pair that both have posted is no hanging transfer beside a call without a partner."""
    calls = {
        0: [Call("send", peer=1, works=False), Call("recv", peer=1)],
        1: [Call("recv", peer=0), Call()],
    }
    dumps = Job(calls, window=2).dumps()
    for dump in dumps.values():
        for entry in dump["entries"]:
            entry |= {"state": "started", "retired": False, "p2p_seq_id": 1 if entry["is_p2p"] else 0}
    assert all(fault.rule != "stuck-in-collective" for fault in roots(dumps))


def test_mixed_versions_are_no_mismatch() -> None:
    """Older torch writes no types and calls a barrier all_reduce: neither is a difference beside a newer dump."""
    dumps = Job({rank: [Call("all_reduce_barrier", size=(1,))] * (2 if rank else 1) for rank in range(3)}).dumps()
    dumps[1]["version"] = "2.2"
    for entry in dumps[1]["entries"]:
        entry |= {"profiling_name": "nccl:all_reduce", "input_dtypes": [], "output_dtypes": []}
    (fault,) = roots(dumps)
    assert (fault.rule, fault.ranks) == ("never-joined", (0,))
    dumps[1]["version"] = dumps[0]["version"]
    assert roots(dumps)[0].rule == "divergent-call"


def test_full_ring_of_open_calls_hides_the_first() -> None:
    """Where a full ring buffer begins with an open call, an earlier one may be lost, and nobody is blamed for it."""
    calls = {0: [Call("send", peer=1)] * 12, 1: [Call()] * 4, 2: [Call()] * 4}
    dumps = Job(calls, window=12, ring=3).dumps()
    assert all(not fault.is_certain for fault in roots(dumps))


@pytest.mark.parametrize(("seconds", "is_certain"), [(2.9, False), (3.1, True), (-5.0, True)])
def test_short_wait_is_not_certain(seconds: float, is_certain: bool) -> None:
    """A wait of less than three seconds when the dumps were written may be a job that goes on."""
    dumps = Job({rank: [Call()] * (2 if rank else 1) for rank in range(3)}).dumps()
    last_wait = max(dump["entries"][-1]["time_created_ns"] for dump in dumps.values()) / 1e9
    (fault,) = roots(dumps, written=last_wait + seconds)
    assert (fault.ranks, fault.is_certain) == ((0,), is_certain)


def test_each_rank_has_one_root() -> None:
    """A rank for which two groups wait is the root once, in the call that was made first."""
    calls = {0: [Call(group="a")], 1: [Call(group="b")], 2: []}
    faults = analysis(Job(calls, {"a": [0, 2], "b": [1, 2]})).faults
    assert [(fault.ranks, fault.group) for fault in faults if not fault.explained_by] == [((2,), "a (1)")]
    assert len(faults) == 2


def test_few_that_wait_for_idle_ranks_are_not_certain() -> None:
    """A rank alone in a call may be early; where the others called something else instead, it is odd."""
    step, evaluate = Call(place=("a.py", 1, "f")), Call(place=("eval.py", 2, "f"))
    calls = {rank: [step] * 3 for rank in range(4)}
    (fault,) = roots(Job({**calls, 1: [*calls[1], step]}).dumps())
    assert (fault.rule, fault.ranks, fault.is_certain) == ("extra-collective", (1,), False)
    (fault,) = roots(Job({**calls, 1: [*calls[1], evaluate]}).dumps())
    assert (fault.rule, fault.ranks, fault.is_certain) == ("rank-conditional", (1,), False)
    (fault,) = roots(Job({**calls, 1: [*calls[1][:2], evaluate, step]}).dumps())
    assert (fault.rule, fault.ranks, fault.is_certain) == ("rank-conditional", (1,), True)


def test_ranks_that_stopped_recording_are_not_said_to_skip_a_call() -> None:
    """One rank waits, and most made no call since: what they do now may not be recorded, as Gloo's send and receive."""
    step, alone = Call(), Call(place=("eval.py", 5, "evaluate"))
    calls = {rank: [step] * 3 for rank in range(4)}
    assert roots(Job({**calls, 0: [step] * 3 + [alone]}, backend="gloo").dumps()) == []
    (fault,) = roots(Job({**calls, 0: [step] * 3 + [alone]}, backend="nccl").dumps())
    assert (fault.rule, fault.ranks, fault.is_certain) == ("rank-conditional", (0,), False)
    assert "ranks 1-3 have made no recorded call since" in fault.text
    (fault,) = roots(Job({**{rank: [step] * 4 for rank in range(4)}, 0: [step] * 3 + [alone, step]}).dumps())
    assert "no other rank ever makes that call" in fault.text


def test_groups_without_a_description_are_parallel_by_their_ranks() -> None:
    """Neighbours and ranks four apart are two dimensions of a mesh; a description says so itself."""
    near, far, other = (
        Group(name, "undefined", ranks, has_stated_members=True)
        for name, ranks in (("1", (0, 1, 2, 3)), ("5", (0, 4, 8, 12)), ("3", (8, 9, 10, 11)))
    )
    assert group_kind(near) == group_kind(other) != group_kind(far)
    named = [
        Group(name, f"mesh_dp_{name}", ranks, has_stated_members=True) for name, ranks in (("1", (0, 1)), ("2", (0, 4)))
    ]
    assert group_kind(named[0]) == group_kind(named[1])


@pytest.mark.parametrize(("queued", "is_certain"), [(1, False), (0, True)])
def test_equally_many_open_calls_may_be_full_ring_buffers(queued: int, is_certain: bool) -> None:
    """Where a call has not started on a rank, an earlier open one may be lost, unless the dumps differ in length."""
    dumps = only_open(Job({rank: [Call(), Call(works=False), Call()] for rank in range(2)}, window=2).dumps())
    del dumps[0]["entries"][1 + queued :]
    for entry in dumps[1]["entries"]:
        entry["state"] = "scheduled"
    (fault,) = roots(dumps)
    assert (fault.rule, fault.ranks, fault.is_certain) == ("lagging-rank", (1,), is_certain)


@pytest.mark.parametrize(("backend", "ranks"), [("nccl", [(0, 1, 2)]), ("gloo", [])])
def test_a_rank_alone_waits_for_unlisted_members(backend: str, ranks: list[tuple[int, ...]]) -> None:
    """In a cycle of pairs each rank waits alone; Gloo's dumps do not list the members, and no transfer hangs."""
    pairs = {f"pair{rank}": sorted((rank, (rank + 1) % 3)) for rank in range(3)}
    calls = {rank: [Call(), Call(group=f"pair{rank}"), Call(group=f"pair{(rank - 1) % 3}")] for rank in range(3)}
    assert [fault.ranks for fault in roots(Job(calls, pairs, backend=backend).dumps())] == ranks
