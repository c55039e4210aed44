"""Find parts of signatures that no check verifies: remove each part in turn; then some check must fail.

A part whose removal no check notices is either useless, or it lacks a sample that needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import structs

from triage.catalog import literal_selection, lock
from triage.catalog.check_context import CheckContext, EvidenceReader, list_samples, read_sample
from triage.catalog.match import describe_clause, evaluate_signature
from triage.catalog.model import Clause, Leaf, Sample, Signature
from triage.model.evidence import Evidence


@dataclass(frozen=True, slots=True)
class Mutant:
    """`signature` is the original without the part that `what` names."""

    what: str
    signature: Signature


def list_mutants(signature: Signature) -> Iterator[Mutant]:
    """The signature without one clause, one key of a leaf, or one edge."""
    if signature.match is not None:
        for what, match in _remove_parts(signature.match):
            yield Mutant(f"match: {what}", replace(signature, match=match))
    for index, edge in enumerate(signature.causal_edges):
        rest = signature.causal_edges[:index] + signature.causal_edges[index + 1 :]
        yield Mutant(f"leads_to: {edge.signature}", replace(signature, causal_edges=rest))


def find_survivors(
    context: CheckContext, to_evidence: EvidenceReader, is_selected: Callable[[int], bool] = lambda number: True
) -> Iterator[tuple[Signature, str]]:
    """The parts of the checked signatures whose removal no check notices.

    Mutants are numbered from 1; only those whose number `is_selected` accepts are tried.
    """
    samples = [
        _ReadSample(signature.id, sample, key_path[1] == "match", read_sample(sample, to_evidence))
        for signature in context.all_signatures.values()
        for key_path, sample in list_samples(signature)
    ]
    paths = {signature.path for signature in context.checked.values()}
    locks = {path: lock.read_lock(Path(path).parent.parent) for path in paths}
    number = 0
    for identifier in sorted(context.checked):
        signature = context.all_signatures[identifier]
        entry = locks[signature.path].get(identifier)
        for mutant in list_mutants(signature):
            number += 1
            if is_selected(number) and not _is_noticed(mutant, samples, context.healthy_text, entry):
                yield signature, mutant.what


class _ReadSample(NamedTuple):
    """A sample with the signature that it belongs to, and the evidence extracted from it."""

    owner: str
    sample: Sample
    must_match: bool
    evidence: Sequence[Evidence]


def _is_noticed(mutant: Mutant, samples: Sequence[_ReadSample], healthy: str, entry: lock.LockEntry | None) -> bool:
    """Whether a check fails for the mutant: the lock file, its own samples, the literals, or another's sample."""
    signature = mutant.signature
    if mutant.what.startswith("leads_to"):
        return entry is not None and lock.make_entry(signature) != entry
    own = (sample for sample in samples if sample.owner == signature.id)
    if not all(_is_satisfied(signature, sample) for sample in own):
        return True
    if literal_selection.assign_literals([signature], healthy)[2]:
        return True
    foreign = (one for one in samples if one.owner != signature.id and signature.id not in one.sample.also)
    return any(evaluate_signature(signature, one.evidence) for one in foreign)


def _is_satisfied(signature: Signature, read: _ReadSample) -> bool:
    match = evaluate_signature(signature, read.evidence)
    if match is None or not read.must_match:
        return (match is not None) == read.must_match
    return all(match.captures.get(name) == value for name, value in read.sample.captures.items())


def _remove_parts(node: Clause | Leaf) -> Iterator[tuple[str, Clause | Leaf]]:
    if isinstance(node, Leaf):
        yield from _remove_leaf_keys(node)
        return
    for index, part in enumerate(node.parts):
        rest = node.parts[:index] + node.parts[index + 1 :]
        if rest:
            yield f"{node.op} {index}: {describe_clause(part)}", structs.replace(node, parts=rest)
        for what, changed in _remove_parts(part):
            parts = (*node.parts[:index], changed, *node.parts[index + 1 :])
            yield f"{node.op} {index}: {what}", structs.replace(node, parts=parts)
    for index, leaf in enumerate(node.none):
        before, after = node.none[:index], node.none[index + 1 :]
        yield f"none {index}: {describe_clause(leaf)}", structs.replace(node, none=before + after)
        for what, thin in _remove_leaf_keys(leaf):
            yield f"none {index}: {what}", structs.replace(node, none=(*before, thin, *after))


def _remove_leaf_keys(leaf: Leaf) -> list[tuple[str, Leaf]]:
    """The leaf without one of its keys, as long as a condition that can hold is left."""
    thinner: list[tuple[str, Leaf]] = []
    for key in ("kind", "component", "not_text"):
        value = getattr(leaf, key)
        if value is not None:
            without_key: dict[str, Any] = {key: None}
            thinner.append((f"{key} {value}", structs.replace(leaf, **without_key)))
    if leaf.text is not None:
        thinner.append((f"text {leaf.text}", structs.replace(leaf, text=None, values={}, literals=())))
    for name in leaf.fields:
        rest = {key: value for key, value in leaf.fields.items() if key != name}
        thinner.append((f"field {name}", structs.replace(leaf, fields=rest)))
    if leaf.values:
        thinner.append(("the code", structs.replace(leaf, values={})))
    return [(what, thin) for what, thin in thinner if thin.text is not None or thin.kind is not None or thin.fields]
