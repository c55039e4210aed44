"""Write a signature file from the evidence of a cluster: derived pattern, its samples, texts left to the curator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from triage.base.errors import OptionError
from triage.catalog.derive import derive_pattern
from triage.catalog.match import evaluate_signature
from triage.catalog.model import Clause, Leaf, Signature
from triage.catalog.skeleton import SCHEMA, write_signature_file
from triage.catalog.yaml_quoting import double_quote, single_quote
from triage.evidence import extract_text
from triage.model.evidence import Evidence

MAX_SAMPLES = 3
MAX_NEGATIVES = 5
MAX_SAMPLE_CHARACTERS = 2000
TODO = "TODO: "

_FILE = """\
# yaml-language-server: $schema=../{schema}
# Written from cluster {cluster}. Check the pattern, then replace each TODO by your own text.
id: {id}
revision: 1
title: {title}
status: experimental
role: cause
severity: fatal
match:
  any:
{leaves}leads_to: []
meaning: {meaning}
impact: ""
remediation:
  action: none
  summary: {summary}
  steps: []
origin: {origin}
falsepositives: []
references: []
samples:
  match:
{match}  no_match:{no_match}
"""


@dataclass(frozen=True, slots=True)
class PromotedSignature:
    """The text of the file, and the first lines of other failures that its pattern matches too (should be none)."""

    text: str
    conflicts: tuple[str, ...]


def promote_cluster(
    identifier: str,
    title: str,
    cluster: str,
    members: Sequence[Evidence],
    others: Sequence[Evidence],
    directory: Path,
    known: Sequence[str],
) -> tuple[Path, PromotedSignature]:
    """Write `<directory>/<domain>/<slug>.yaml` from the evidence of a cluster, and return its path.

    `others` is evidence of similar clusters, which the pattern must not match. OptionError for an unusable id, an
    existing file, and evidence without text.
    """
    drafted = draft_signature(identifier, title, cluster, members, others)
    return write_signature_file(identifier, directory, known, title, drafted.text), drafted


def draft_signature(
    identifier: str, title: str, cluster: str, members: Sequence[Evidence], others: Sequence[Evidence]
) -> PromotedSignature:
    """Write the text of the file."""
    leaves = _derive_leaves(members)
    if not leaves:
        message = f"cluster {cluster} has no text to derive a pattern from"
        raise OptionError(message, hint="`triage clusters show` shows its evidence")
    signature = Signature(identifier, 1, "", "experimental", "cause", "fatal", Clause("any", tuple(leaves)))
    missed = [item.text for item in members if evaluate_signature(signature, [item]) is None]
    assert not missed, f"the derived pattern misses {missed[0]!r}"
    matched = [item for item in others if evaluate_signature(signature, [item]) is not None]
    negatives = [item for item in others if item not in matched]
    text = _FILE.format(
        schema=SCHEMA,
        cluster=cluster,
        id=identifier,
        title=double_quote(title),
        leaves="".join(map(_format_leaf, leaves)),
        meaning=double_quote(TODO + "what it means, in a sentence or two"),
        summary=double_quote(TODO + "one sentence that says what to do"),
        origin=double_quote(f"cluster {cluster}"),
        match="".join(_format_sample(signature, item) for item in _select_distinct(members, MAX_SAMPLES)),
        no_match=_format_negatives(signature, negatives),
    )
    return PromotedSignature(text, tuple(dict.fromkeys(_first_line(item) for item in matched)))


def _derive_leaves(members: Sequence[Evidence]) -> list[Leaf]:
    """One leaf for each kind and component."""
    lines: dict[tuple[str, str], list[str]] = {}
    for item in members:
        line = _first_line(item).strip()
        if line:
            lines.setdefault((item.kind, item.component), []).append(line)
    return [Leaf(kind=kind, text=derive_pattern(alike)) for (kind, _), alike in lines.items()]


def _first_line(item: Evidence) -> str:
    return item.text.split("\n", 1)[0]


def _format_leaf(leaf: Leaf) -> str:
    return f"    - kind: {leaf.kind}\n      text: {single_quote(leaf.text or '')}\n"


def _select_distinct(evidence: Sequence[Evidence], limit: int) -> list[Evidence]:
    return list({item.text: item for item in evidence}.values())[:limit]


def _format_sample(signature: Signature, item: Evidence) -> str:
    """The excerpt if reading it as a log gives the same captures; otherwise the evidence itself."""
    match = evaluate_signature(signature, [item])
    captures = _format_mapping(
        "captures", {name: value for name, value in match.captures.items() if value} if match else {}
    )
    for text in (item.excerpt, item.text):
        if match is not None and text and len(text) <= MAX_SAMPLE_CHARACTERS:
            of_log = evaluate_signature(signature, extract_text(text))
            if of_log is not None and of_log.captures == match.captures:
                return f"    - text: {double_quote(text)}\n{captures}"
    return (
        f"    - text: {double_quote(item.text[:MAX_SAMPLE_CHARACTERS])}\n      kind: {item.kind}\n"
        + (f"      component: {double_quote(item.component)}\n" if item.component else "")
        + _format_mapping("fields", item.fields)
        + captures
    )


def _format_mapping(key: str, values: Mapping[str, str]) -> str:
    rows = "".join(f"        {name}: {double_quote(value)}\n" for name, value in values.items())
    return f"      {key}:\n{rows}" if rows else ""


def _format_negatives(signature: Signature, others: Sequence[Evidence]) -> str:
    """Lines of similar clusters that the signature must not match."""
    candidates = [_first_line(item)[:400] for item in _select_distinct(others, 4 * MAX_NEGATIVES)]
    lines = [one for one in candidates if one.strip() and evaluate_signature(signature, extract_text(one)) is None]
    rows = (f'\n    - {{text: {double_quote(line)}, why: "another cluster"}}' for line in lines[:MAX_NEGATIVES])
    return "".join(rows) or " []"
