"""What a page shows of a recording: the state of every call, and the faults of chosen groups."""

from __future__ import annotations

from tests.artifacts.flight.factories import Call, Job, recording
from triage.artifacts.flight.analyse import analyse
from triage.artifacts.flight.view import Run, View, view

TRAIN = ("train.py", 20, "step")


def view_of(job: Job, group: str = "", around: int | None = None) -> View:
    """Return the view of a job."""
    job_recording = recording(job)
    return view(job_recording, analyse(job_recording), group=group, around=around)


def test_calls_that_differ() -> None:
    """A rank whose call differs from that of most ranks is marked, and the column has the usual operation."""
    calls = {rank: [Call(), Call("broadcast" if rank == 0 else "all_gather")] for rank in range(4)}
    (lane,) = view_of(Job(calls)).lanes
    assert lane.ops == ("all_reduce", "all_gather")
    runs = {row.ranks: row.runs for row in lane.rows}
    assert runs == {
        (0,): (Run(0, 0, "done"), Run(1, 1, "differs")),
        (1, 2, 3): (Run(0, 0, "done"), Run(1, 1, "open")),
    }


def test_two_halves_that_differ() -> None:
    """Where no call is that of most ranks, all of them are marked."""
    calls = {rank: [Call("broadcast" if rank < 2 else "all_gather")] for rank in range(4)}
    (lane,) = view_of(Job(calls)).lanes
    assert [(row.ranks, row.runs) for row in lane.rows] == [((0, 1, 2, 3), (Run(0, 0, "differs"),))]


def test_chosen_group_keeps_the_causes_of_its_faults() -> None:
    """The view of a group has its faults and those that cause them, numbered anew, and only the lanes of the group."""
    tp = {rank: Call(group=f"tp{rank // 2}", place=("layer.py", 9, "forward")) for rank in range(6)}
    calls = {rank: [tp[rank], Call(place=TRAIN)] * 4 for rank in range(6)}
    calls[3] = calls[3][:4]
    groups = {f"tp{number}": [2 * number, 2 * number + 1] for number in range(3)}
    whole, chosen = view_of(Job(calls, groups)), view_of(Job(calls, groups), "default_pg")
    assert [lane.group for lane in chosen.lanes] == ["default_pg"]
    assert [(fault.group, fault.explained_by) for fault in chosen.analysis.faults] == [
        ("tp1 (2)", ()),
        ("default_pg", (0,)),
    ]
    assert view_of(Job(calls, groups), "tp0").analysis.faults == ()
    assert len(whole.lanes) == 4


def test_numbers_far_from_all_calls() -> None:
    """Around a number that no call has, nothing is shown."""
    job = Job({rank: [Call()] * 3 for rank in range(2)})
    assert view_of(job, around=1000).lanes == ()
    assert [lane.seqs for lane in view_of(job, around=2).lanes] == [(1, 2, 3)]
