"""The calls of dumps beside an answer that rests on other evidence."""

from __future__ import annotations

import pytest

from triage.diagnose.recorded_calls import describe_recorded_calls
from triage.model import Evidence, FlightDetail, Origin


def dump(rank: int, call: str) -> Evidence:
    return Evidence("flight", "flight-recorder", "x", Origin(rank=rank), "dump", 0, detail=FlightDetail(call=call))


TP, PP = "all_reduce #7 of tp", "send #2 of pp"


@pytest.mark.parametrize(
    ("calls", "sentence"),
    [
        ({}, []),
        ({0: "", 1: ""}, []),
        ({0: "", 1: TP}, [f"By the dumps, rank 1 waits in {TP}"]),
        ({0: PP, 1: TP, 2: TP}, [f"By the dumps, ranks 1-2 wait in {TP}; rank 0 waits in {PP}"]),
    ],
)
def test_calls_of_dumps(calls: dict[int, str], sentence: list[str]) -> None:
    """Group and number of each open call are said, the call of most ranks first."""
    assert describe_recorded_calls([dump(rank, call) for rank, call in calls.items()], []) == sentence


def test_no_call_is_said_twice() -> None:
    """Nothing is added to reasons that name all of the calls; all calls are said where one of them is new."""
    facts = [dump(0, PP), dump(1, TP)]
    assert describe_recorded_calls(facts, [f"rank 0 waits in {PP}", f"rank 1 waits in {TP}"]) == []
    assert describe_recorded_calls(facts, [f"rank 0 waits in {PP}"]) != []


def test_many_calls_are_counted() -> None:
    """Of more than three calls the rest are counted."""
    facts = [dump(rank, f"all_reduce #{rank} of tp") for rank in range(5)]
    (sentence,) = describe_recorded_calls(facts, [])
    assert sentence.endswith("rank 2 waits in all_reduce #2 of tp; and 2 more")
    (sentence,) = describe_recorded_calls(facts[:3], [])
    assert sentence.endswith("rank 2 waits in all_reduce #2 of tp")
