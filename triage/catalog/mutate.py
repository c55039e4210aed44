"""Is every clause proved? Each part of a signature's `match` is taken away in turn; then some check must fail.

A clause whose loss nobody notices is either of no use, or the sample that shows its use is missing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from triage.catalog import gate, lock
from triage.catalog.case import Case, ToEvidence, numbered, sample_evidence
from triage.catalog.match import describe, evaluate
from triage.catalog.model import Clause, Leaf, Sample, Signature
from triage.model.evidence import Evidence

Shown = Sequence[tuple[str, Sample, bool, Sequence[Evidence]]]  # whose sample, the sample, must it match, its evidence


@dataclass(frozen=True, slots=True)
class Mutant:
    """`signature` without the part that `what` names."""

    what: str
    signature: Signature


def mutants(signature: Signature) -> Iterator[Mutant]:
    """Without one clause, one key of a leaf, or one edge."""
    if signature.match is not None:
        for what, match in _without(signature.match):
            yield Mutant(f"match: {what}", dataclasses.replace(signature, match=match))
    for index, edge in enumerate(signature.leads_to):
        rest = signature.leads_to[:index] + signature.leads_to[index + 1 :]
        yield Mutant(f"leads_to: {edge.signature}", dataclasses.replace(signature, leads_to=rest))


def survivors(
    case: Case, to_evidence: ToEvidence, wanted: Callable[[int], bool] = lambda number: True
) -> Iterator[tuple[Signature, str]]:
    """The parts of the checked signatures whose loss no check notices; only the mutants whose number is `wanted` are
    tried.
    """
    shown = [
        (signature.id, sample, inside[1] == "match", sample_evidence(sample, to_evidence))
        for signature in case.whole.values()
        for inside, sample in numbered(signature)
    ]
    own: dict[str, list[tuple[str, Sample, bool, Sequence[Evidence]]]] = {}
    for one in shown:
        own.setdefault(one[0], []).append(one)
    records = {
        path: lock.read(Path(path).parent.parent) for path in {signature.path for signature in case.checked.values()}
    }
    number = 0
    for identifier in sorted(case.checked):
        signature = case.whole[identifier]
        for mutant in mutants(signature):
            number += 1
            promised = records[signature.path].get(identifier)
            if wanted(number) and not noticed(mutant, own.get(identifier, ()), shown, case.healthy, promised):
                yield signature, mutant.what


def noticed(mutant: Mutant, own: Shown, samples: Shown, healthy: str, promised: lock.Entry | None) -> str:
    """The check that fails, or nothing."""
    signature = mutant.signature
    if mutant.what.startswith("leads_to"):
        return "record" if promised is not None and lock.entry(signature) != promised else ""
    if not all(_proves(signature, sample, wanted, evidence) for _, sample, wanted, evidence in own):
        return "own samples"
    if gate.equip([signature], healthy)[2]:
        return "scan"
    foreign = (shown for shown in samples if shown[0] != signature.id and signature.id not in shown[1].also)
    return "cross table" if any(evaluate(signature, evidence) for _, _, _, evidence in foreign) else ""


def _proves(signature: Signature, sample: Sample, wanted: bool, evidence: Sequence[Evidence]) -> bool:
    match = evaluate(signature, evidence)
    if match is None or not wanted:
        return (match is not None) == wanted
    return all(match.captures.get(name) == value for name, value in sample.captures.items())


def _without(node: Clause | Leaf) -> Iterator[tuple[str, Clause | Leaf]]:
    if isinstance(node, Leaf):
        yield from _thinner(node)
        return
    for index, part in enumerate(node.parts):
        rest = node.parts[:index] + node.parts[index + 1 :]
        if rest:
            yield f"{node.op} {index}: {describe(part)}", dataclasses.replace(node, parts=rest)
        for what, changed in _without(part):
            put = (*node.parts[:index], changed, *node.parts[index + 1 :])
            yield f"{node.op} {index}: {what}", dataclasses.replace(node, parts=put)
    for index, leaf in enumerate(node.none):
        rest_none = node.none[:index] + node.none[index + 1 :]
        yield f"none {index}: {describe(leaf)}", dataclasses.replace(node, none=rest_none)
        for what, thin in _thinner(leaf):
            yield (
                f"none {index}: {what}",
                dataclasses.replace(node, none=(*node.none[:index], thin, *node.none[index + 1 :])),
            )


def _thinner(leaf: Leaf) -> list[tuple[str, Leaf]]:
    """The leaf without one of its keys, as long as it still asks for something that can hold."""
    thinner: list[tuple[str, Leaf]] = []
    if leaf.kind is not None:
        thinner.append((f"kind {leaf.kind}", dataclasses.replace(leaf, kind=None)))
    if leaf.component is not None:
        thinner.append((f"component {leaf.component}", dataclasses.replace(leaf, component=None)))
    if leaf.not_text is not None:
        thinner.append((f"not_text {leaf.not_text}", dataclasses.replace(leaf, not_text=None)))
    if leaf.text is not None:
        thinner.append((f"text {leaf.text}", dataclasses.replace(leaf, text=None, values={}, literals=())))
    for name in leaf.fields:
        rest = {key: value for key, value in leaf.fields.items() if key != name}
        thinner.append((f"field {name}", dataclasses.replace(leaf, fields=rest)))
    if leaf.values:
        thinner.append(("the code", dataclasses.replace(leaf, values={})))
    return [(what, thin) for what, thin in thinner if thin.text is not None or thin.kind is not None or thin.fields]
