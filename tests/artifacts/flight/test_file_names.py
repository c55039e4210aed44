"""The rank of a dump, from the name of its file."""

from __future__ import annotations

import pytest

from triage.artifacts.flight.reader import parse_failure_number, parse_rank


@pytest.mark.parametrize(
    ("name", "rank"),
    [
        ("nccl_trace_rank_0", 0),
        ("/tmp/fr/comm_lib_trace_rank_17", 17),
        ("fr_rank_3.json", 3),
        ("fr_rank_3.json.gz", 3),
        ("dumps/5.pkl.zst", 5),
        ("nccl_trace_rank_container-node02_5", 5),
        ("host9.pci3_rank_7", 7),
        ("fr_rank_2.f4", 2),
        ("job.tar.gz!/node1/fr/fr_rank_12", 12),
        ("rank_4/trace.pkl", 4),
        ("rank4/dump.json", 4),
        ("logs/node7/trace", None),
        ("trace", None),
    ],
)
def test_rank_is_the_last_number(name: str, rank: int | None) -> None:
    """Suffixes and numbers in the prefix do not count; a directory only counts if its name contains rank."""
    assert parse_rank(name) == rank


def test_failure_number() -> None:
    """The suffix `.f<n>` of a fault-tolerant job is the number of the failure."""
    assert [parse_failure_number(name) for name in ("fr_rank_2.f4", "fr_rank_2", "fr_rank_2.f10.gz")] == [4, 0, 10]
