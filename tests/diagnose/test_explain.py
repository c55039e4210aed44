"""What is said of a signature agrees with its clauses."""

from __future__ import annotations

from pathlib import Path

from tests.diagnose.factories import fact, solve
from triage import pipeline
from triage.catalog.model import Catalog, CausalEdge, Leaf, Signature
from triage.diagnose.explain import explain_signature
from triage.model import Evidence
from triage.model.diagnosis import Role


def signature(name: str, role: Role, text: str, *effects: str) -> Signature:
    """Return a signature that one word matches."""
    leaf = Leaf(text=text, literals=(text,))
    return Signature(name, 1, name, "stable", role, "error", leaf, causal_edges=tuple(map(CausalEdge, effects)))


def explain(signatures: tuple[Signature, ...], facts: list[Evidence], number: int) -> str:
    """Return which part one of the signatures plays in a diagnosis of these facts."""
    return explain_signature(signatures[number], solve(facts, Catalog("1", signatures))).outcome


def test_a_match_says_what_became_of_it() -> None:
    """The root, what it explains, what cannot be a root, and what lost."""
    signatures = (
        signature("a.cause", "cause", "broken", "b.effect"),
        signature("b.effect", "cause", "peer gone"),
        signature("c.symptom", "symptom", "slow"),
        signature("d.other", "cause", "overheated"),
    )
    facts = [fact(text, rank) for rank, text in enumerate(("broken", "peer gone", "slow", "overheated"))]
    assert explain(signatures, facts, 0) == "matched, and chosen as the root cause"
    assert explain(signatures, facts, 1) == "matched, and explained by a.cause"
    assert explain(signatures, facts[2:3], 2) == "matched, but its role is symptom: it is never a root cause"
    assert explain(signatures, facts, 3).startswith("matched, but not chosen: Also unexplained; ")


def test_an_explanation_quotes_the_first_of_many_lines() -> None:
    """At most twenty that match; of those that nearly do, the first 300 characters."""
    one = signature("a.cause", "cause", "broken")
    facts = [fact(f"broken {number}", 0) for number in range(25)]
    assert len(explain_signature(one, solve(facts, Catalog("1", (one,)))).evidence) == 20


def test_a_row_that_leaves_the_lines_to_another_signature_says_so(tmp_path: Path) -> None:
    """The row of the table of codes holds, and names the signature that took its lines."""
    log = tmp_path / "dmesg.log"
    log.write_text(
        "Nov 21 10:00:00 node3 kernel: [ 12.3] NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, GPU has fallen off the bus.\n"
    )
    explained = pipeline.explain([str(log)], "gpu.xid-79", pipeline.Options())
    assert explained.matched
    assert explained.outcome.startswith("matched, but left to gpu.fallen-off-bus")
    other = pipeline.explain([str(log)], "gpu.xid-48", pipeline.Options())
    assert not other.matched
    assert other.outcome.startswith("not matched")
