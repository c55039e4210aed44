"""Rules about leaves under `all` that only describe the setting: `context`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from triage.catalog.branches import list_branches
from triage.catalog.check_context import EvidenceReader
from triage.catalog.distinct_evidence import group_evidence
from triage.catalog.model import Leaf, Signature
from triage.catalog.problems import Remark
from triage.catalog.regex import compile_pattern, remove_anchors


def check_context_leaves(
    signature: Signature, to_evidence: EvidenceReader, healthy_lines: Sequence[str]
) -> Iterator[Remark]:
    """Branches of `match` that have nothing but context, and parts of `all` that healthy ranks print as well."""
    if signature.role == "noise" or signature.status == "deprecated":
        return
    branches = list_branches(signature.match)
    if any(all(leaf.context for leaf in branch) for branch in branches):
        hint = "under `all`, leave `context` out of the part that shows the failure"
        yield "error", ("match",), "a branch of `match` has nothing but context", hint
    parts = {leaf.text: leaf for branch in branches if len(branch) > 1 for leaf in branch if not leaf.context}
    for leaf in parts.values():
        line = next((line for line in healthy_lines if _is_matched(leaf, line, to_evidence)), None)
        if line is not None:
            message = f"a part of `all` matches a line of a healthy job: {line!r}"
            yield (
                "warning",
                ("match",),
                message,
                "add `context: true` to it: the ranks that print the line may be healthy",
            )


def _is_matched(leaf: Leaf, line: str, to_evidence: EvidenceReader) -> bool:
    if leaf.text is None or leaf.engine == "regex" or not compile_pattern(remove_anchors(leaf.text)).search(line):
        return False
    return any(group.test(leaf) is not None for group in group_evidence(to_evidence(line)))
