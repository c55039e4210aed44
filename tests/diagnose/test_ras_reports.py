"""triage.diagnose.ras_reports"""

from __future__ import annotations

import pytest

from triage.diagnose.ras_reports import RasReport
from triage.model.details import RasDetail
from triage.model.ras import RasCommunicator, RasPart, RasProcess, RasSplit

from .factories import fact


@pytest.mark.parametrize(("size", "unlisted"), [(8, 7), (1 << 17, (1 << 17) - 1), ((1 << 17) + 1, 0)])
def test_the_ranks_of_the_part_that_is_not_listed_are_the_others(size: int, unlisted: int) -> None:
    """Rank 0 is listed with its count. In a world too large to be a job the others are not counted up."""
    behind = RasPart("7", 1, (RasProcess(rank=0),))
    others = RasPart("8", size - 1)
    split = RasSplit("AllReduce", (behind, others))
    one = RasCommunicator("#0-0", "0x1", size, (split,))
    report = RasReport(fact("RAS"), RasDetail(gpus=size, communicators=(one,)))
    assert report.ranks_of(one, split, behind) == {0}
    ranks = report.ranks_of(one, split, others)
    assert (len(ranks), 0 in ranks) == (unlisted, False)
