"""Conclusions as evidence."""

from __future__ import annotations

from triage.evidence.inference import inferred
from triage.model.evidence import Evidence, Origin

BASIS = Evidence("message", "c10d", "text", Origin(rank=0, time=7.0, attempt=1), "rank0.log", 40, 60, excerpt="text")


def test_one_for_each_rank_with_all_of_them_in_its_fields() -> None:
    """Each names one rank, all name all, ascending; each stands where its basis stands and has its time and attempt."""
    found = inferred("lagging-rank", {3, 1}, "ranks 1, 3 lag", BASIS, group="tp0")
    assert [one.origin for one in found] == [Origin(rank=1, time=7.0, attempt=1), Origin(rank=3, time=7.0, attempt=1)]
    assert found[0].fields == {"rule": "lagging-rank", "ranks": "1,3", "ground": "measured", "group": "tp0"}
    assert {(one.kind, one.component, one.text, one.source, one.offset, one.end) for one in found} == {
        ("inference", "triage", "ranks 1, 3 lag", "rank0.log", 40, 60)
    }


def test_nobody_named_is_one_inference_without_a_rank() -> None:
    """Nobody is invented where the rule names nobody."""
    (one,) = inferred("rank-absent", (), "3 of 4 came", BASIS, ground="silence")
    assert (one.origin.rank, one.fields["ranks"], one.fields["ground"]) == (None, "", "silence")
