"""triage.diagnose.stated_places"""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.diagnose.factories import fact, job_of
from triage.diagnose.stated_places import by_stated_rank, by_stated_tag, own_text
from triage.model import Origin
from triage.ranks.identity import JobMap

SEVERAL = "failed on ranks dict_keys([1, 3])"


def ranks_of(text: str, *, kind: str = "message", rank: int | None = None, size: int = 4) -> list[int | None]:
    """Return the ranks of a fact after its text was read."""
    return [placed.origin.rank for placed in by_stated_rank([fact(text, rank, kind=kind)], job_of(size))]


def test_a_text_is_about_each_rank_that_it_names() -> None:
    """If they are ranks of the job, and the line names no rank of its own."""
    assert ranks_of(SEVERAL) == [1, 3]
    assert ranks_of(SEVERAL, rank=0) == [0]
    assert ranks_of(SEVERAL, kind="exit") == [None]
    assert ranks_of("loss is NaN") == [None]


@pytest.mark.parametrize(("size", "ranks"), [(4, [1, 3]), (3, [None])])
def test_a_rank_beyond_the_world_is_none(size: int, ranks: list[int | None]) -> None:
    """Rank 3 of 3 does not exist; the text means something else."""
    assert ranks_of(SEVERAL, size=size) == ranks


def test_the_basis_of_a_stated_rank_is_its_text() -> None:
    """With the host that is known of it."""
    job = JobMap()
    job.learn("a.log", Origin(rank=1, host="n2"))
    for placed, host in zip(by_stated_rank([fact(SEVERAL, host="n1")], job), ("n2", "n1"), strict=True):
        assert (placed.rank_basis, placed.origin.host) == ("stated", host)


def test_a_tag_decides_against_the_files() -> None:
    """And the contradiction is reported. The tag of a process group numbers its own members."""
    job = JobMap()
    job.learn("rank_3.log", Origin())
    tag = fact("[Rank 1] loss is NaN", source="rank_3.log")
    assert [placed.origin.rank for placed in by_stated_tag([tag], job)] == [1]
    assert job.contradictions == {("rank_3.log", 1, 3, "file name")}
    same = replace(tag, source="rank_1.log")
    assert [placed.origin.rank for placed in by_stated_tag([same], job)] == [1]
    assert len(job.contradictions) == 1
    group = fact("[Rank 1] Watchdog caught collective operation timeout", source="rank_3.log")
    assert [placed.origin.rank for placed in by_stated_tag([group], job)] == [None]
    assert [placed.origin.rank for placed in by_stated_tag([fact(SEVERAL)], job)] == [None]


def test_the_own_text_of_an_ending_is_its_line() -> None:
    """The lines around it may be of others; of another fact all lines count, up to 4,000 characters."""
    assert own_text(fact("gave up\nrank 3", kind="ending")) == "gave up"
    assert own_text(fact("a\nb")) == "a\nb"
    assert len(own_text(fact("x" * 5000))) == 4000


@pytest.mark.parametrize(("size", "rank"), [(8, 3), (9, None)])
def test_a_device_is_a_rank_on_one_node(size: int, rank: int | None) -> None:
    """In a world of up to eight ranks, where no line pairs local ranks with ranks. Device 0 may be that of all."""
    job = JobMap()
    job.sizes.add(size)
    for local in range(size):
        job.learn("job.log", Origin(local_rank=local))
    job.resolve()
    text = "RuntimeError: CUDA error on device cuda:{}: out of memory"
    [placed] = by_stated_rank([fact(text.format(3))], job)
    assert placed.origin.rank == rank
    assert placed.rank_basis == ("device" if rank else "")
    [first] = by_stated_rank([fact(text.format(0))], job)
    assert first.origin.rank is None
