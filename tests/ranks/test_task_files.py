"""triage.ranks.task_files"""

from __future__ import annotations

import pytest

from triage.ranks.process_numbers import ProcessNumber
from triage.ranks.task_files import find_ranks_of_tasks

PAIR = ("log-job_12_0.out", "log-job_12_1.out", "error-job_12_1.out")


@pytest.mark.parametrize(
    ("by_source", "sizes", "tasks"),
    [
        ({}, {2}, [0, 1, 1]),
        ({}, {3}, []),
        ({}, set(), []),
        ({"log-job_12_0.out": {0}, "log-job_12_1.out": {1}}, {4}, [0, 1, 1]),
        ({"log-job_12_0.out": {0}, "log-job_12_1.out": {0}}, set(), []),  # an array of jobs with one process each
        ({"log-job_12_1.out": {1}}, set(), []),  # a single file may agree by chance
        ({"log-job_12_0.out": {0}, "log-job_12_1.out": {1}, "error-job_12_1.out": {3}}, {4}, []),
        ({"log-job_12_0.out": {0, 1}, "log-job_12_1.out": {1}}, {4}, []),  # other ranks write there
    ],
)
def test_tasks_are_ranks_where_sizes_or_lines_say_so(
    by_source: dict[str, set[int]], sizes: set[int], tasks: list[int]
) -> None:
    """A file for each rank of the world, or two files whose lines name the rank of their name."""
    assert list(find_ranks_of_tasks(PAIR, by_source, sizes).values()) == tasks


def test_other_jobs_and_compressed_files() -> None:
    """Each job number counts alone; the end of a compressed file is no part of its name."""
    by_source = {"a_12_0.out.gz": {0}, "a_12_1.out.gz": {1}, "a_13_1.out.gz": {0}}
    assert find_ranks_of_tasks(by_source, by_source, set()) == {"a_12_0.out.gz": 0, "a_12_1.out.gz": 1}


@pytest.mark.parametrize(
    "name", ["w{}.log", "worker-{}.out", "run7/gpu{}/stdout.txt", "log.{}", "train-{}-of-4.txt", "out_{:05d}.log.gz"]
)
def test_any_number_counts_where_there_is_a_file_for_each_rank(name: str) -> None:
    """Files that are named alike but for one number are those of the ranks, if the world has so many."""
    files = [name.format(number) for number in range(4)]
    assert find_ranks_of_tasks(files, {}, {4}) == {file: rank for rank, file in enumerate(files)}
    assert find_ranks_of_tasks(files, {}, {8}) == find_ranks_of_tasks(files, {}, set()) == {}
    assert find_ranks_of_tasks(files[:3], {}, {4}) == {}


def test_numbers_that_are_no_ranks() -> None:
    """The files of other ranks, rotated files, and names in which two numbers differ are not numbered by ranks."""
    assert find_ranks_of_tasks(["w0.log", "w1.log"], {"w1.log": {3}}, {2}) == {}
    assert find_ranks_of_tasks(["train.log.0", "train.log.1"], {}, {2}) == {}
    assert find_ranks_of_tasks(["n0-r0.log", "n0-r1.log", "n1-r0.log", "n1-r1.log"], {}, {4}) == {}


@pytest.mark.parametrize(
    ("called", "ranks"),
    [
        ({0: 0, 1: 1}, {0: 0, 1: 1, 2: 2}),
        ({0: 0}, {}),  # a single one may agree by chance
        ({0: 0, 1: 1, 2: 1}, {}),  # two processes call themselves 1
    ],
)
def test_numbers_of_files_are_ranks_where_processes_call_themselves_so(
    called: dict[int, int], ranks: dict[int, int]
) -> None:
    """Two processes that call themselves by the number in the name of their file are enough, if none disagrees."""
    files = [f"worker_{number}.log" for number in range(3)]
    numbers = {files[file]: {ProcessNumber(number)} for file, number in called.items()}
    assert find_ranks_of_tasks(files, {}, set(), numbers) == {files[file]: rank for file, rank in ranks.items()}
