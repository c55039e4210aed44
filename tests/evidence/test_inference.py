"""Inferences as facts."""

from __future__ import annotations

from triage.evidence.inference import make_inferences, may_end_early
from triage.model.details import InferenceDetail
from triage.model.evidence import Evidence, Origin

BASIS = Evidence("message", "c10d", "text", Origin(rank=0, time=7.0, attempt=1), "rank0.log", 40, 60, excerpt="text")


def test_one_for_each_rank_with_all_of_them_in_its_fields() -> None:
    """Each names one rank and lists all; it has the place, the time and the attempt of its evidence."""
    inferences = make_inferences("lagging-rank", {3, 1}, "ranks 1, 3 lag", BASIS, group="tp0")
    assert [one.origin for one in inferences] == [
        Origin(rank=1, time=7.0, attempt=1),
        Origin(rank=3, time=7.0, attempt=1),
    ]
    assert inferences[0].fields == {"rule": "lagging-rank", "ranks": "1,3", "ground": "measured", "group": "tp0"}
    assert {(one.kind, one.component, one.text, one.source, one.offset, one.end) for one in inferences} == {
        ("inference", "triage", "Ranks 1, 3 lag", "rank0.log", 40, 60)
    }


def test_an_inference_without_ranks_is_one_fact_without_a_rank() -> None:
    """Without a named rank there is one inference, and no rank is made up."""
    (one,) = make_inferences("rank-absent", (), "3 of 4 came", BASIS, basis="absence")
    assert (one.origin.rank, one.fields["ranks"], one.fields["ground"]) == (None, "", "silence")


def test_the_detail_has_the_parts_with_their_types() -> None:
    """Rule, basis, kind of evidence, the waiting ranks, and what the rule says about the ranks that it names."""
    (one,) = make_inferences("never-joined", [3], "rank 3 never joined", BASIS, waiting=(0, 1))
    assert one.detail == InferenceDetail("never-joined", "measured", "message", (0, 1), "stalled")
    assert one.fields["waiting"] == "0,1"


def test_calls_with_one_root_may_end_early() -> None:
    """A rank that only gives or forwards is done while others wait; calls in which all depend on all are not."""
    assert all(map(may_end_early, ("broadcast", "broadcast_object_list", "REDUCE", "gather_object", "SCATTER")))
    assert not any(map(may_end_early, ("all_reduce", "reduce_scatter", "ALLGATHER", "barrier", "")))
