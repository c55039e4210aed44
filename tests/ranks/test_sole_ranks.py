"""Files and hosts of one rank each: only where there is one for every rank of the world."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from triage.model.evidence import Origin
from triage.ranks.identity import JobMap
from triage.ranks.sole_ranks import _LONGEST, _VARIANTS, find_files_of_one_rank, find_hosts_of_one_rank, name_process


@pytest.mark.parametrize(
    ("by_source", "sizes", "expected"),
    [
        ({"a.log": {0}, "b.log": {1}}, {2}, {"a.": 0, "b.": 1}),
        ({"a.log": {0}, "b.log": {1}}, set(), {"a.": 0, "b.": 1}),
        ({"a.log": {0}, "b.log": {1}}, {4}, {}),  # two of four ranks write elsewhere, perhaps there
        ({"a.log": {0}, "b.log": {8}}, {16}, {}),  # one rank of each node logs
        ({"a.log": {0, 1}, "b.log": {2}}, {3}, {}),
        ({"a.log": {0}}, {1}, {}),  # of a single file nobody knows
        ({"a.out": {0}, "a.err": {0}, "b.out": {1}}, {2}, {"a.": 0, "b.": 1}),
        ({"a.log": {0}, "b.log": {0}, "c.log": {1}}, {2}, {}),  # two processes with one rank
    ],
)
def test_files_of_one_rank(by_source: dict[str, set[int]], sizes: set[int], expected: dict[str, int]) -> None:
    """Each rank has its file, and each file its rank."""
    assert find_files_of_one_rank(by_source, sizes) == expected


@pytest.mark.parametrize(
    ("hosts", "sizes", "expected"),
    [
        ({0: {"a"}, 1: {"b"}}, {2}, {"a": 0, "b": 1}),
        ({0: {"a"}, 1: {"a"}}, {2}, {}),
        ({0: {"a"}, 1: {"b"}}, {3}, {}),
        ({0: {"a", "c"}, 1: {"b"}}, {2}, {}),
    ],
)
def test_hosts_of_one_rank(hosts: dict[int, set[str]], sizes: set[int], expected: dict[str, int]) -> None:
    """Each rank has its host, and each host its rank."""
    assert find_hosts_of_one_rank(hosts, sizes) == expected


def test_a_line_without_rank_is_of_the_rank_of_its_file() -> None:
    """`free(): invalid pointer` in the log of a pod."""
    job = JobMap()
    for rank in (0, 1):
        job.learn(f"logs/pod{rank}.log", Origin(rank=rank))
    job.resolve()
    assert job.place("logs/pod1.log", Origin())[1] == "same file"
    assert job.complete("logs/pod1.log", Origin()).rank == 1


def test_the_streams_of_one_worker_are_of_one_rank() -> None:
    """Only its standard output names the rank; pids of other hosts may be equal."""
    job = JobMap()
    for rank, host in enumerate(("a1", "b1")):
        job.learn(f"{host}/worker-{rank}f-01000000-81.out", Origin(rank=rank))
        job.learn(f"{host}/worker-{rank}f-01000000-81.err", Origin())
    job.resolve()
    assert job.complete("b1/worker-1f-01000000-81.err", Origin()).rank == 1


def test_streams_may_begin_the_name_of_a_file() -> None:
    """NeMo's launcher writes `log-…` and `error-…`."""
    job = JobMap()
    for rank in (0, 1):
        job.learn(f"job/log-train_7_{rank}.out", Origin(rank=rank))
    job.resolve()
    assert job.complete("job/error-train_7_1.out", Origin()).rank == 1
    assert job.complete("job/logic-train_7_1.out", Origin()).rank is None


@given(
    st.lists(
        st.sampled_from(
            ("logs/", "rank_", "0x1f", "attempt_", "restart", ".out", ".err.", ".log", "/", ".bz2", ".Bz2", ".gz")
        )
        | st.text(st.characters(codec="utf-8"), max_size=3)
        | st.integers(0, 300).map(str)
    ).map("".join)
)
def test_the_name_of_a_process_does_not_depend_on_its_digits(name: str) -> None:
    """What the mask of a name tells of the parts that differ is what its own digits tell."""
    assert name_process(name) == _VARIANTS.sub("", name)


@pytest.mark.parametrize(("name", "process"), [("a.out.bz2", "a."), ("a.OUT.BZ2", "a."), ("a.log.bz3", "a.log.bz3")])
def test_the_digit_of_a_compression_counts(name: str, process: str) -> None:
    """The 2 of bzip2 is no number that may be another one."""
    assert name_process(name) == process


@pytest.mark.parametrize("length", [_LONGEST, _LONGEST + 1])
def test_the_name_of_a_process_in_a_long_path(length: int) -> None:
    """A long name is read as a short one is."""
    assert name_process("7/stdout.log".rjust(length, "d")) == "7/.".rjust(length - len("stdoutlog"), "d")
