"""Verify signature files: readable, well-formed, findable by the scan, true to their samples, consistent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from triage.catalog import lint, lock
from triage.catalog.check_context import (
    CheckContext,
    EvidenceReader,
    default_reader,
    list_samples,
    load_context,
    read_sample,
)
from triage.catalog.lint_advice import check_advice
from triage.catalog.lint_captures import check_captures
from triage.catalog.lint_context import check_context_leaves
from triage.catalog.lint_tables import check_rows
from triage.catalog.lint_text import TextRules
from triage.catalog.match import Matcher, evaluate_signature
from triage.catalog.model import Catalog, Sample, Signature
from triage.catalog.problems import Problem, Remark
from triage.model.evidence import Evidence

_ORDER = {"error": 0, "warning": 1, "info": 2}


def check_files(
    paths: Sequence[str | Path] = (), *, to_evidence: EvidenceReader | None = None, shipped: Path | None = None
) -> list[Problem]:
    """Return the problems of the files, the worst first.

    Directories are searched; by default the shipped catalog is checked. The files are checked together with the shipped
    catalog. `to_evidence` turns the text of a sample into evidence; by default as an ingest does. A file with errors
    must not be merged.
    """
    context, problems = load_context(paths, shipped)
    problems += _note_shadowed(context)
    merged = {**context.unchecked, **context.checked}
    problems += lint.lint_signatures(context.checked.values(), merged, context.documents)
    problems += _check_patterns(context)
    problems += _check_lock(context)
    reader = to_evidence or default_reader()
    problems += _check_samples(context, reader)
    problems += _check_claims(context, reader)
    return sort_problems(problems)


def sort_problems(problems: Sequence[Problem]) -> list[Problem]:
    """Each problem once, the worst first, then by place."""
    return sorted(
        dict.fromkeys(problems), key=lambda p: (_ORDER[p.severity], p.path, p.line or 0, p.column or 0, p.message)
    )


def _note_shadowed(context: CheckContext) -> Iterator[Problem]:
    """Shipped signatures that these files replace, so that nobody shadows one unawares."""
    for identifier, signature in context.checked.items():
        if identifier in context.unchecked:
            message = f"replaces {context.unchecked[identifier].path}"
            yield _to_problem(context, signature, ("info", ("id",), message, ""))


def _check_patterns(context: CheckContext) -> Iterator[Problem]:
    for weak in context.weak_patterns:
        signature = context.checked.get(weak.signature)
        if signature is not None:
            document = context.documents[signature.path]
            positions = lint.find_positions(document, ("match",), weak.pattern)
            position = next(positions, document.locate(("match",)))
            yield Problem("error", signature.path, *position, f"{weak.message}: {weak.pattern}", weak.hint)


def _check_lock(context: CheckContext) -> Iterator[Problem]:
    """Compare revisions and ids with the lock file of the directory that the files lie in."""
    homes = {path: Path(path).parent.parent for path in context.documents}
    recorded = {home: (lock.read_lock(home), lock.read_retired(home)) for home in {*homes.values(), *context.roots}}
    for signature in context.checked.values():
        for remark in lock.check_signature(signature, *recorded[homes[signature.path]]):
            yield _to_problem(context, signature, remark)
    for root in context.roots:
        entries, retired = recorded[root]
        for identifier in lock.find_missing_ids(entries, context.all_signatures, retired):
            hint = f"restore it with `status: deprecated`, or list it with a reason in {lock.RETIRED}"
            message = f"{identifier} is recorded here, but its file is missing"
            yield Problem("error", str(root / lock.LOCK), None, None, message, hint)


def _check_samples(context: CheckContext, to_evidence: EvidenceReader) -> Iterator[Problem]:
    """Evaluate each sample with its own signature, then with all others."""
    matcher = Matcher(Catalog("", tuple(context.all_signatures.values())))
    for identifier, signature in context.checked.items():
        equipped = context.all_signatures[identifier]
        for key_path, sample in list_samples(signature):
            name, must_match = f"samples.{key_path[1]}.{key_path[2]}", key_path[1] == "match"
            try:
                evidence = read_sample(sample, to_evidence)
            except Exception as error:  # whatever a sample does to the extractors, the others are still checked
                message = f"{name} cannot be read as a log: {error!r}"
                yield _to_problem(context, signature, ("error", key_path, message, ""))
                continue
            messages = _check_own_match(equipped, sample, must_match, evidence)
            if not signature.table or must_match:  # the line of another row is explained there
                others = {*matcher.evaluate(evidence)} - {identifier}
                messages += _check_other_matches(equipped, sample, name, others)
            for message, hint in messages:
                yield _to_problem(context, signature, ("error", key_path, message, hint))


def _check_claims(context: CheckContext, to_evidence: EvidenceReader) -> Iterator[Problem]:
    """Whether each signature claims no more than its evidence shows."""
    rules = TextRules(to_evidence, context.everyday_lines)
    tables: set[str] = set()
    too_broad = {weak.signature for weak in context.weak_patterns}
    healthy = context.healthy_text.splitlines()
    for identifier, signature in context.checked.items():
        remarks = [*check_advice(signature), *check_captures(signature, to_evidence)]
        remarks += check_context_leaves(signature, to_evidence, healthy)
        if identifier not in too_broad and (signature.table not in tables or not signature.table):
            remarks += rules.check(context.all_signatures[identifier])
        if signature.role == "cause":
            tables.add(signature.table)
        for remark in remarks:
            yield _to_problem(context, signature, remark)
    for identifier, remark in check_rows(context.all_signatures, context.checked, to_evidence):
        yield _to_problem(context, context.checked[identifier], remark)


def _check_own_match(
    signature: Signature, sample: Sample, must_match: bool, evidence: Sequence[Evidence]
) -> list[tuple[str, str]]:
    """(message, hint) of each way in which the signature does not treat its sample as declared."""
    match = evaluate_signature(signature, evidence)
    if not must_match:
        hint = "narrow the pattern, or add a leaf under `none`"
        return [("this sample must not match, but it does", hint)] if match else []
    if match is None:
        items = "; ".join(f"{item.kind}/{item.component}: {item.text[:120]!r}" for item in evidence[:4])
        return [("this sample must match, but it does not", f"evidence extracted from it: {items or 'none'}")]
    return [
        (f"capture {name} is {match.captures.get(name)!r}, not {value!r}", "fix the group, or the sample")
        for name, value in sample.captures.items()
        if match.captures.get(name) != value
    ]


def _check_other_matches(signature: Signature, sample: Sample, name: str, others: set[str]) -> list[tuple[str, str]]:
    """(message, hint) where the sample does not declare exactly the other signatures that match it."""
    messages = []
    undeclared = sorted(others - set(sample.also) - set(signature.yields_to))
    if undeclared:
        hint = f"if that is right, declare `also: [{', '.join(sorted(others))}]`; otherwise narrow one of the patterns"
        messages.append((f"{name} is also matched by {', '.join(undeclared)}", hint))
    absent = sorted(set(sample.also) - others)
    if absent and not signature.table:
        message = f"{name} is not matched by {', '.join(absent)}, although `also` names it"
        messages.append((message, "remove it from `also`"))
    return messages


def _to_problem(context: CheckContext, signature: Signature, remark: Remark) -> Problem:
    severity, key_path, message, hint = remark
    position = lint.locate(context.documents[signature.path], signature, key_path)
    return Problem(severity, signature.path, *position, message, hint)
