"""The drafted change by which a signature learns a new wording."""

from __future__ import annotations

import yaml

from tests.catalog.factories import evidence, signature
from triage.catalog.match import evaluate_signature
from triage.catalog.model import Catalog
from triage.catalog.near_misses import NearMiss, NearMissIndex
from triage.catalog.wording_draft import MAX_LINE, draft_wording, draft_wordings

LINE = 'Rank 3 lost its "peer" 10.0.0.1:4711 for good'


def test_a_draft_matches_its_line() -> None:
    """The pattern in the draft matches the line, and the sample is the line."""
    one = signature(r"text: 'Rank (?P<rank>\d+) lost peer (?P<peer>\S+)'")
    draft = draft_wording(NearMiss(one, one.match, ("with 'its'",)), f"{LINE}\nmore")  # type: ignore[arg-type]
    assert (draft.signature, draft.path) == ("test.case", "test/case.yaml")
    assert draft.summary == "Looks like a new wording of test.case: with 'its'"
    assert "name the same captures as before: peer, rank" in draft.yaml
    change = yaml.safe_load(draft.yaml)
    assert change["revision"] == 2
    assert change["samples"]["match"] == [{"text": LINE}]
    (leaf,) = change["match"]["any"]
    assert evaluate_signature(signature(yaml.safe_dump(leaf)), [evidence(LINE)]) is not None


def test_a_draft_keeps_the_kind() -> None:
    """A leaf that asks for a kind of evidence stays one."""
    one = signature("kind: exception\ntext: 'lost peer'")
    draft = draft_wording(NearMiss(one, one.match, ()), LINE)  # type: ignore[arg-type]
    assert yaml.safe_load(draft.yaml)["match"]["any"][0]["kind"] == "exception"


def test_a_long_line_is_cut() -> None:
    """A draft stays readable, whatever the line."""
    one = signature("text: 'lost peer'")
    assert len(draft_wording(NearMiss(one, one.match, ()), "lost " * 1000).yaml) < 4 * MAX_LINE  # type: ignore[arg-type]


def test_each_signature_is_drafted_once(catalog: Catalog) -> None:
    """Several texts of one cluster give one draft for a signature."""
    texts = [f"CUDA out-of-memory. tried to allocate {size} GiB" for size in ("2.00", "4.00")]
    drafts = draft_wordings([*texts, "boom"], NearMissIndex(catalog.signatures))
    assert [draft.signature for draft in drafts] == ["cuda.out-of-memory"]
    assert texts[0] in drafts[0].yaml
