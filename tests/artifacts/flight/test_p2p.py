"""Sends and receives: what holds a transfer that both ranks have called."""

from __future__ import annotations

from tests.artifacts.flight.factories import Call, Job, analyse_dumps

SEND, RECV, TRAIN = ("pipe.py", 4, "forward"), ("pipe.py", 9, "forward"), ("train.py", 20, "step")


def test_receive_queued_behind_another_call() -> None:
    """A send whose receive is queued behind an open collective waits for the receiver, because of that collective."""
    calls = {
        0: [Call("send", peer=1, place=SEND)],
        1: [Call(group="dp", place=TRAIN), Call("recv", peer=0, place=RECV)],
        2: [],
    }
    dumps = Job(calls, {"dp": [1, 2]}, window=2).dumps()
    dumps[0]["entries"][0].update(state="started", retired=False)
    faults = analyse_dumps(dumps).faults
    assert [(fault.rule, fault.ranks, fault.waiting) for fault in faults] == [
        ("never-joined", (2,), (1,)),
        ("never-joined", (1,), (0,)),
    ]
    assert faults[1].explained_by == (0,)
    assert "rank 0 waits in the transfer from rank 0 to rank 1 at pipe.py:4 in forward for rank 1" in faults[1].text


def test_transfer_of_two_held_batches() -> None:
    """A transfer whose both ranks wait in their batches for somebody else is no fault of its own."""
    calls = {
        0: [Call("send", peer=1, place=SEND), Call("send", peer=2, place=SEND)],
        1: [Call("recv", peer=0, place=RECV), Call("recv", peer=3, place=RECV)],
        2: [],
        3: [],
    }
    dumps = Job(calls, window=2).dumps()
    for rank in (0, 1):
        for entry in dumps[rank]["entries"]:
            entry.update(p2p_seq_id=1, state="started", retired=False)
    roots = [fault for fault in analyse_dumps(dumps).faults if not fault.explained_by]
    assert {(fault.rule, fault.ranks) for fault in roots} == {("never-joined", (2,)), ("never-joined", (3,))}


def test_dump_under_the_name_of_another_rank() -> None:
    """Sends and receives that name another rank than the file does, or one that is no member, are left out."""
    dumps = Job({rank: [Call("send", peer=1 - rank, place=SEND)] for rank in range(2)}).dumps()
    assert {fault.ranks for fault in analyse_dumps(dumps).faults} == {(0, 1)}
    for name in ("nccl:send 1->0", "nccl:send 0->7", "nccl:send"):
        dumps[0]["entries"][0]["profiling_name"] = name
        assert {fault.ranks for fault in analyse_dumps(dumps).faults} <= {(0,)}
