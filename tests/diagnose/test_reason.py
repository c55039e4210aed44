"""Reasoning over facts with the shipped catalog, and the report that it gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from diagnose.watchdog_lines import timed_out
from triage.catalog.model import Catalog
from triage.diagnose import ReasoningResult, explain, rank_states, report
from triage.evidence.inference import BLOCKED, make_inferences
from triage.model.details import EndingDetail, ExceptionDetail
from triage.model.diagnosis import Finding
from triage.model.evidence import Evidence

from .factories import GLOO, TIMEOUT, exited, fact, job_of, raised, solve

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB"


def root(result: ReasoningResult) -> tuple[str, Finding]:
    """Return the verdict and the finding to act on."""
    verdict, finding = report.decide_verdict(result)
    assert finding is not None
    return verdict, finding


def test_a_known_cause_explains_the_rest(catalog: Catalog) -> None:
    """The root is known, names its rank, fills its advice from the captures, and lists what it explains."""
    verdict, finding = root(
        solve([raised(OOM, 2), raised(GLOO, 0), raised(GLOO, 1), raised(GLOO, 3), exited(2, 1)], catalog)
    )
    assert (verdict, finding.signature, finding.ranks) == ("known", "cuda.out-of-memory", (2,))
    assert finding.captures["requested"] == "2.00 GiB"
    assert "rank 2" in finding.remediation.summary
    assert any("gloo.connection-closed-by-peer" in reason for reason in finding.why)


def test_inference_rules_run_only_without_a_stated_cause(catalog: Catalog) -> None:
    """Absence is evidence only where no rank printed an error."""
    waits = [raised(TIMEOUT, rank) for rank in (0, 1, 3)]
    assert solve(waits, catalog).suspects == (2,)
    assert solve([*waits, raised(OOM, 3)], catalog).suspects == ()


def test_never_joined_is_inferred(catalog: Catalog) -> None:
    """Three time out and one is silent: it is named, with the reason, and not with high confidence."""
    verdict, finding = root(solve([raised(TIMEOUT, rank) for rank in (0, 1, 3)], catalog))
    assert (verdict, finding.signature, finding.ranks) == ("known", "torch.rank-never-joined", (2,))
    assert any("rank 2 printed no error" in reason for reason in finding.why)
    assert finding.confidence < 0.7


@pytest.mark.parametrize(("code", "signature"), [(exited(0, 1), "torch.rank-never-joined"), (exited(2, 1), None)])
def test_a_rank_that_gave_up_waiting_ended_because_of_that(
    catalog: Catalog, code: Evidence, signature: str | None
) -> None:
    """The exit status of a rank that timed out is no failure of its own; that of a rank that did not wait is one."""
    waits = [fact(f"[rank{rank}]: waits in all_reduce 8 float32 of default_pg, call #3", rank) for rank in (0, 1, 3)]
    verdict, finding = root(solve([*waits, code], catalog))
    assert (finding.signature, verdict) == (signature, "known" if signature else "unknown")


def test_inferences_may_come_with_the_facts(catalog: Catalog) -> None:
    """A dump's inference is matched by its rule, names its ranks and explains the symptoms."""
    waits = [raised(TIMEOUT, rank) for rank in (0, 1, 3)]
    dump = fact("0 entries", source="dumps/rank_1", kind="message")
    result = solve(
        [*waits, *make_inferences("lagging-rank", [1], "rank 1 recorded nothing beyond collective 7", dump)], catalog
    )
    verdict, finding = root(result)
    assert (verdict, finding.signature, finding.ranks) == ("known", "torch.lagging-rank", (1,))
    assert "Rank 1 recorded nothing beyond collective 7" in finding.why
    assert finding.confidence > root(solve(waits, catalog))[1].confidence
    assert all(one.explained_by for one in result.candidates if one.id == "torch.collective-timeout")


def test_stacks_that_only_wait_leave_the_numbers_to_the_watchdogs(catalog: Catalog) -> None:
    """Stacks of ranks that all wait state no cause: the sizes in the watchdogs' lines still name the odd rank."""
    lines = [timed_out(rank, numel=96 if rank == 2 else 64) for rank in range(4)]
    dump = fact("in all_reduce", source="stacks/rank0.txt", kind="stack")
    waits = make_inferences(BLOCKED, range(4), "ranks 0-3 are in all_reduce at train.py:20", dump)
    verdict, finding = root(solve([*lines, *waits], catalog))
    assert (verdict, finding.signature, finding.ranks) == ("known", "torch.collective-shape-mismatch", (2,))


def test_a_stated_cause_weighs_more_than_an_inference(catalog: Catalog) -> None:
    """Whatever a dump shows, a rank that printed why it failed is the root."""
    dump = fact("0 entries", source="dumps/rank_1", kind="message")
    finding = root(solve([raised(OOM, 3), *make_inferences("lagging-rank", [1], "rank 1 lags", dump)], catalog))[1]
    assert (finding.signature, finding.ranks) == ("cuda.out-of-memory", (3,))


@pytest.mark.parametrize(
    ("facts", "suspects"),
    [
        pytest.param([raised(GLOO, rank) for rank in (0, 1, 3)], (2,), id="one does not complain"),
        pytest.param([raised(GLOO, rank) for rank in range(4)], (), id="all complain"),
        pytest.param([raised(TIMEOUT, rank) for rank in range(4)], (), id="all wait"),
    ],
)
def test_symptoms_alone_are_an_unknown_failure(
    facts: Sequence[Evidence], suspects: tuple[int, ...], catalog: Catalog
) -> None:
    """No signature, low confidence, the suspects if there are any, and what to collect next time."""
    verdict, finding = root(solve(facts, catalog))
    assert (verdict, finding.signature, finding.ranks) == ("unknown", None, suspects)
    assert 0.1 <= finding.confidence <= 0.3
    assert any("next time" in reason for reason in finding.why)
    assert finding.evidence


def test_nothing_is_inconclusive(catalog: Catalog) -> None:
    """No facts, or only noise: nothing failed, and nothing proves a good end."""
    assert report.decide_verdict(solve([], catalog)) == ("inconclusive", None)
    assert report.decide_verdict(solve([fact("loss 3.2 is fine", 0)], catalog)) == ("inconclusive", None)


def test_unknown_findings_carry_their_cluster(catalog: Catalog) -> None:
    """An unknown root has no signature, its cluster's id, and stands among the unknown."""
    result = solve([raised("ValueError: record 7 is empty", 3), exited(3, 1)], catalog)
    verdict, finding = root(result)
    assert (verdict, finding.signature, finding.ranks) == ("unknown", None, (3,))
    known, unknown = report.build_findings(result)
    assert [one.cluster for one in unknown] == [finding.cluster]
    assert (finding.cluster or "").startswith("u-")
    assert all(one.signature for one in known)


TEXTS = st.sampled_from([OOM, GLOO, TIMEOUT, "ValueError: record 7 is empty", "KeyError: 'x'"])
FACTS = st.lists(
    st.builds(raised, TEXTS, st.none() | st.integers(0, 5))
    | st.builds(exited, st.integers(0, 5), st.sampled_from([1, -9, -6, -11])),
    max_size=10,
)


@given(FACTS, st.integers(6, 12))
def test_any_facts_give_a_whole_report(catalog: Catalog, facts: list[Evidence], size: int) -> None:
    """Whatever is found: confidence within bounds, ranks of this job only, causes before what they explain, a state for
    each rank.
    """
    result = solve(facts, catalog, size, present=range(6))
    verdict, finding = report.decide_verdict(result)
    known, unknown = report.build_findings(result)
    assert (verdict == "inconclusive") == (finding is None)
    assert (verdict == "known") == (finding is not None and finding.signature is not None)
    for one in (*([finding] if finding else []), *known, *unknown):
        assert 0.1 <= one.confidence <= 0.95
        assert set(one.ranks) <= set(range(size))
        assert len(one.evidence) <= report.EVIDENCE_PER_FINDING
    if finding is not None and finding.signature and known:
        assert known[0].signature == finding.signature
    ranks = rank_states.infer_rank_states(result, job_of(size, range(6)))
    assert [state.rank for state in ranks] == list(range(size))


@given(FACTS)
def test_explain_of_any_signature_works(catalog: Catalog, facts: list[Evidence]) -> None:
    """Signatures that match and those that do not both get an explanation."""
    result = solve(facts, catalog, 6)
    chosen = result.verdict.root
    for signature in catalog.signatures[::25]:
        explained = explain.explain_signature(signature, result)
        assert explained.outcome
        assert explained.matched == (signature.id in result.matches)
    if chosen is not None and chosen.signature is not None:
        assert "root cause" in explain.explain_signature(chosen.signature, result).outcome


def test_the_timeline_is_in_order_and_bounded(catalog: Catalog) -> None:
    """Earliest first, each moment with its signature, and no longer than a screen or ten."""
    facts = [raised(f"ValueError: {n}", n % 4, time=float(1000 - n), offset=n + 1) for n in range(300)]
    moments = report.build_moments(solve([raised(OOM, 1, time=3.0), *facts], catalog))
    assert len(moments) <= report.MOST_MOMENTS
    assert moments[0].signature == "cuda.out-of-memory"
    assert [moment.time for moment in moments] == sorted(moment.time or 0.0 for moment in moments)


@pytest.mark.parametrize(("end", "signature"), [(200, "torch.one-rank-diverged"), (140, None)])
def test_the_last_lines_of_a_caught_exception_are_caught_with_it(
    catalog: Catalog, end: int, signature: str | None
) -> None:
    """A last line inside the exception that its rank survived is no cause; one behind it is."""
    caught = replace(raised("ValueError: x", 2, offset=100), end=end)
    assert isinstance(caught.detail, ExceptionDetail)
    caught = replace(caught, detail=replace(caught.detail, continued=True))
    detail = EndingDetail("message", "python", "strong")
    ending = replace(fact("ValueError: x", 2, kind="ending", offset=150, detail=detail), end=170)
    _, finding = root(solve([caught, ending, *(raised(TIMEOUT, rank) for rank in (0, 1, 3))], catalog))
    assert finding.signature == signature
