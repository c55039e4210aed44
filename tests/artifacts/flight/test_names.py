"""The rank of a dump, from the name of its file."""

from __future__ import annotations

import pytest

from triage.artifacts.flight.names import failure_of, rank_of


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
def test_the_rank_is_the_number_at_the_end(name: str, rank: int | None) -> None:
    """Suffixes and numbers in the prefix do not count; a directory counts only where it says rank."""
    assert rank_of(name) == rank


def test_the_count_of_failures() -> None:
    """Fault tolerant jobs write a dump for each failure they survive."""
    assert [failure_of(name) for name in ("fr_rank_2.f4", "fr_rank_2", "fr_rank_2.f10.gz")] == [4, 0, 10]
