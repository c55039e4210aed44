"""Calls that are one call for torch: coalesced ones, and lists of tensors."""

from __future__ import annotations

from typing import Any

import pytest

from tests.artifacts.flight.factories import Call, Job, analyse_dumps
from triage.artifacts.flight.grid import comparable
from triage.artifacts.flight.model import Shape

SIZES = [[64], [128], [32]]


def coalesced(sizes_of_one: list[list[int]], last_is_open: bool) -> dict[int, dict[str, Any]]:
    """Return dumps of four ranks whose calls are coalesced: three entries have one number. Rank 2 has other sizes."""
    dumps = Job({rank: [Call(works=not last_is_open)] * (1 if last_is_open else 2) for rank in range(4)}).dumps()
    for rank, dump in dumps.items():
        sizes = sizes_of_one if rank == 2 else SIZES
        dump["entries"] = [
            {**entry, "input_sizes": [size], "output_sizes": [size], "record_id": 3 * entry["record_id"] + index}
            for entry in dump["entries"]
            for index, size in enumerate(sizes)
        ]
    return dumps


@pytest.mark.parametrize("sizes", [[[64], [128], [16]], [[128], [64], [32]], [[64], [128]]])
def test_all_calls_of_a_coalesced_one_count(sizes: list[list[int]]) -> None:
    """A rank is at fault if any of its coalesced calls has another size, stands in another place, or is missing."""
    (fault,) = analyse_dumps(coalesced(sizes, last_is_open=True)).faults
    assert (fault.ranks, fault.seq) == ((2,), 1)
    assert fault.rule in ("shape-mismatch", "divergent-call")


def test_equal_coalesced_calls() -> None:
    """Coalesced calls that are equal on all ranks are no fault, and if one does not end, it hangs on all."""
    assert analyse_dumps(coalesced(SIZES, last_is_open=False)).faults == ()
    (fault,) = analyse_dumps(coalesced(SIZES, last_is_open=True)).faults
    assert (fault.rule, fault.ranks) == ("stuck-in-collective", (0, 1, 2, 3))


def test_uneven_list_of_outputs() -> None:
    """Of an all_gather into a list only the outputs must be equal on all ranks; with one output, the inputs."""
    uneven = [Shape(((count,),), ((3,), (5,))) for count in (3, 5)]
    assert comparable("all_gather", uneven[0]) == comparable("all_gather", uneven[1]) == (3, 5)
    assert comparable("all_gather", Shape(((3,),), ((12,),))) == (3,)
