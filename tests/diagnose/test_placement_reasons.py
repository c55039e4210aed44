"""triage.diagnose.placement_reasons"""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.diagnose.factories import fact
from triage.diagnose.placement_reasons import describe_rank_bases
from triage.model import Evidence, RankBasis


def placed(rank: int | None, basis: RankBasis, *, pid: int | None = None, local: int | None = None) -> Evidence:
    """Return a fact whose rank is known in this way, on host n1."""
    one = fact("boom", rank, host="n1", pid=pid)
    return replace(one, origin=replace(one.origin, local_rank=local), rank_basis=basis)


@pytest.mark.parametrize(
    ("one", "sentence"),
    [
        (placed(3, "stated"), "Rank 3: the text names it"),
        (placed(3, "pid", pid=41), "Rank 3: pid 41 belongs to it"),
        (placed(3, "pid"), "Rank 3: a pid in the text belongs to it"),
        (placed(3, "local rank", local=1), "Rank 3: local rank 1 on n1 belongs to it"),
        (placed(3, "local rank"), "Rank 3: its local rank belongs to it"),
    ],
)
def test_a_sentence_says_how_a_rank_was_found(one: Evidence, sentence: str) -> None:
    """With the number that a line names, if it names one."""
    assert list(describe_rank_bases([one])) == [sentence]


def test_without_a_host_none_is_named() -> None:
    """The local rank alone."""
    one = placed(3, "local rank", local=1)
    sentences = describe_rank_bases([replace(one, origin=replace(one.origin, host=None))])
    assert list(sentences) == ["Rank 3: local rank 1 belongs to it"]


def test_a_rank_that_a_line_names_needs_no_sentence() -> None:
    """Nor does a fact without a rank."""
    assert not list(describe_rank_bases([placed(3, "pid", pid=41), placed(3, ""), placed(None, "stated")]))


def test_ranks_found_in_one_way_share_a_sentence() -> None:
    """The most direct way comes first; of one way at most three sentences, those of the lowest ranks."""
    facts = [placed(9, "file name"), placed(8, "file name"), *(placed(rank, "pid", pid=40 + rank) for rank in range(4))]
    assert list(describe_rank_bases(facts)) == [
        "Rank 0: pid 40 belongs to it",
        "Rank 1: pid 41 belongs to it",
        "Rank 2: pid 42 belongs to it",
        "Ranks 8-9: the file is named after it",
    ]
