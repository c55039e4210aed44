"""triage.ranks.process_numbers"""

from __future__ import annotations

import pytest

from triage.ranks.process_numbers import (
    ProcessNumber,
    find_ranks_by_numbers,
    numbers_itself,
    read_process_numbers,
)


@pytest.mark.parametrize(
    ("line", "numbers"),
    [
        ("INFO: process 2 of 4, devices [CpuDevice(id=2)]", [ProcessNumber(2, 4)]),
        ("task 3/8 is up", [ProcessNumber(3, 8)]),
        (
            "[Gloo] Rank 2 is connected to 3 peer ranks. Expected number of connected peer ranks is : 3",
            [ProcessNumber(2, 4)],
        ),
        ("jax.distributed.initialize(coordinator, num_processes=4, process_id=1)", [ProcessNumber(1)]),
        ("JAX_PROCESS_ID=3", [ProcessNumber(3)]),
        ("process 40% of 100 files", []),
        ("subprocess_index 3", []),
        ("map: worker 2 of 8", []),
        ("processing 2 of 4 shards", []),
    ],
)
def test_numbers_are_read_from_what_a_process_says_of_itself(line: str, numbers: list[ProcessNumber]) -> None:
    """Each form gives its number, and of how many where it says so; other words and workers give none."""
    assert list(read_process_numbers(line)) == numbers
    assert numbers_itself(line) == bool(numbers)


def of(size: int, **numbers: int) -> dict[str, set[ProcessNumber]]:
    """Return one number of `size` for each file."""
    return {f"{name}.log": {ProcessNumber(number, size)} for name, number in numbers.items()}


def test_the_numbers_of_one_whole_group_are_ranks() -> None:
    """Each number of the largest group stands in the files of one process; the stream of a file does not count."""
    whole = of(3, red=2, green=0, blue=1)
    assert find_ranks_by_numbers(whole, {}) == {"red.log": 2, "green.log": 0, "blue.log": 1}
    assert find_ranks_by_numbers(whole | {"red.err": {ProcessNumber(2, 3)}}, {})["red.err"] == 2
    assert find_ranks_by_numbers({name: of | {ProcessNumber(0, 2)} for name, of in whole.items()}, {}) == {
        "red.log": 2,
        "green.log": 0,
        "blue.log": 1,
    }


@pytest.mark.parametrize(
    ("numbers", "by_source"),
    [
        (of(4, red=2, green=0, blue=1), {}),  # one is missing
        (of(2, red=0, green=1, blue=0, white=1), {}),  # groups of two
        (of(3, red=2, green=0, blue=1) | {"red.log": {ProcessNumber(2, 3), ProcessNumber(1, 3)}}, {}),  # a console
        (of(1, red=0), {}),
        (of(3, red=2, green=0, blue=1), {"red.log": {0}}),  # its lines name another rank
        (of(0, red=1, green=0), {}),  # nobody says how many there are
    ],
)
def test_other_numbers_are_no_ranks(numbers: dict[str, set[ProcessNumber]], by_source: dict[str, set[int]]) -> None:
    """A missing or repeated number, a file with two, and lines that name other ranks give nothing."""
    assert find_ranks_by_numbers(numbers, by_source) == {}


def test_a_group_smaller_than_the_stated_world_has_no_ranks() -> None:
    """It is one of several groups, then; a world of its size or smaller changes nothing."""
    numbers = of(2, red=0, green=1)
    assert find_ranks_by_numbers(numbers, {}, {8}) == {}
    assert (
        find_ranks_by_numbers(numbers, {}, {2}) == find_ranks_by_numbers(numbers, {}) == {"red.log": 0, "green.log": 1}
    )
