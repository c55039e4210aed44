"""triage.ranks.sibling_files"""

from __future__ import annotations

import random

import pytest

from triage.model.evidence import Origin
from triage.ranks.identity import JobMap
from triage.ranks.sibling_files import find_hosts_in_names

KNOWN = "a100-21"


@pytest.mark.parametrize(
    ("sources", "hosts"),
    [
        (["train-a100-20.txt", "train-a100-21.txt"], ["a100-20", "a100-21"]),
        (["a100-20.x.org/out.log", "a100-21.x.org/out.log"], ["a100-20", "a100-21"]),
        (["a100-20/a100-20.log", "a100-21/a100-21.log"], ["a100-20", "a100-21"]),
        (["train-a100-21.txt", "train-b200-20.txt"], []),  # another scheme
        (["train-a100-20.txt", "eval-a100-21.txt"], []),  # other files
        (["train-a100-21.txt"], []),  # nothing beside it
        (["train-a100-20.txt", "train-a100-22.txt"], []),  # none is known
        (["xa100-20.txt", "xa100-21.txt"], []),  # part of another word
        (["a100-20-a100-21.txt", "a100-21-a100-22.txt"], []),  # which of the two?
    ],
)
def test_files_that_differ_in_the_host_are_of_other_hosts(sources: list[str], hosts: list[str]) -> None:
    """Where one of them is known; whatever else their names have is the same."""
    assert find_hosts_in_names(sources, {KNOWN, "login"}) == dict(zip(sources, hosts, strict=False))
    assert find_hosts_in_names(sources[::-1], {KNOWN}) == dict(zip(sources, hosts, strict=False))


def test_a_number_alone_is_no_host() -> None:
    """`rank1.log` and `rank2.log` are of no hosts, whatever a prefix calls its host."""
    assert find_hosts_in_names(["rank_1.log", "rank_2.log"], {"1"}) == {}


@pytest.mark.parametrize(("others", "is_known"), [(15, True), (16, False)])
def test_so_many_schemes_of_names_are_tried(others: int, is_known: bool) -> None:
    """Hosts with random names cost no time."""
    hosts = {f"{'a' * number}-1" for number in range(1, others + 1)}
    assert bool(find_hosts_in_names(["z-20.txt", "z-21.txt"], {*hosts, "z-20"})) is is_known


def test_local_ranks_of_sibling_files_are_no_longer_of_unknown_hosts() -> None:
    """Lines of one file name its host, so the other file is of another one, and so are its ranks and local ranks."""
    lines = [
        ("job-a100-21.out", Origin(rank=2, local_rank=0, host="a100-21")),
        ("job-a100-21.out", Origin(rank=3, local_rank=1)),
        ("job-a100-20.out", Origin(local_rank=0)),
        ("job-a100-20.out", Origin(rank=1, local_rank=1)),
    ]
    for seed in range(4):
        random.Random(seed).shuffle(lines)
        job = JobMap()
        job.sizes.add(4)
        for source, origin in lines:
            job.learn(source, origin)
        job.resolve()
        assert job.ranks_by_host() == {"a100-20": (1,), "a100-21": (2, 3)}
        assert job.complete("job-a100-20.out", Origin(local_rank=0)).rank == 0
        assert job.count_hostless_files() == 0


def test_a_rank_in_files_of_two_hosts_is_on_neither() -> None:
    """The console of each node may have lines of all ranks."""
    job = JobMap()
    for source in ("job-a100-20.out", "job-a100-21.out"):
        job.learn(source, Origin(rank=1))
    job.learn("job-a100-21.out", Origin(rank=2, host="a100-21"))
    job.resolve()
    assert job.ranks_by_host() == {"a100-21": (2,)}
    assert job.complete("job-a100-20.out", Origin()).host == "a100-20"
