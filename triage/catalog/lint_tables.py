"""Rules about tables of codes: a row and the signature of its code agree, or the signature needs more text."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence

from triage.catalog.check_context import EvidenceReader
from triage.catalog.distinct_evidence import group_evidence
from triage.catalog.match import evaluate_signature, positive_leaves
from triage.catalog.model import Leaf, Signature
from triage.catalog.problems import Remark
from triage.model.evidence import Evidence

_Pattern = tuple[str, str, int]  # table, signature, number of the leaf in it
_HINT = "give both the same role and action, or let the signature's branch ask for text beyond the code"


def check_rows(
    signatures: Mapping[str, Signature], named: Collection[str], to_evidence: EvidenceReader
) -> Iterator[tuple[str, Remark]]:
    """(id, problem) of rows and of the signatures that they name.

    `signatures` are the whole catalog. `named` are the ids of the signatures to report.
    """
    actions: dict[_Pattern, dict[str, str]] = defaultdict(dict)
    leaves: dict[_Pattern, Leaf] = {}
    pairs = ((row, signatures[name]) for row in signatures.values() for name in row.yields_to if name in signatures)
    for row, special in pairs:
        name = special.id
        if row.table and special.status != "deprecated" and (row.id in named or name in named):
            evidence = [item for sample in row.samples_match for item in to_evidence(sample.text)]
            is_matched = evaluate_signature(special, evidence) is not None
            if is_matched and (row.role, row.action) != (special.role, special.action):
                message = _describe_difference(row, special)
                yield name if name in named else row.id, ("error", ("match",), message, _HINT)
            for number, leaf in _list_matching(special, evidence) if is_matched else ():
                actions[row.table, name, number][row.id] = row.action
                leaves[row.table, name, number] = leaf
    yield from _compare_actions(actions, leaves, named)


def _describe_difference(row: Signature, special: Signature) -> str:
    own, other = f"{row.role}/{row.action}", f"{special.role}/{special.action}"
    return f"{row.id} is {own}, but {special.id}, which matches its bare code, is {other}"


def _list_matching(special: Signature, evidence: Sequence[Evidence]) -> Iterator[tuple[int, Leaf]]:
    groups = group_evidence(evidence)
    for number, leaf in enumerate(positive_leaves(special.match)):
        if any(group.test(leaf) is not None for group in groups):
            yield number, leaf


def _compare_actions(
    actions: Mapping[_Pattern, Mapping[str, str]], leaves: Mapping[_Pattern, Leaf], named: Collection[str]
) -> Iterator[tuple[str, Remark]]:
    """Codes of one pattern that need different actions."""
    for key, by_row in actions.items():
        if key[1] in named and len(set(by_row.values())) > 1:
            listed = ", ".join(f"{row.rpartition('-')[2]} {action}" for row, action in sorted(by_row.items()))
            message = f"one pattern has codes with different actions in {key[0]} ({listed}): {leaves[key].text}"
            yield key[1], ("warning", ("match",), message, "make a signature for each action")
