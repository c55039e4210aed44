"""A signature file from the facts of a cluster: the pattern derived, the samples taken over, the words left to the
expert.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from triage.base.errors import OptionError
from triage.catalog.derive import Derived, derive
from triage.catalog.match import evaluate
from triage.catalog.model import Leaf, Sample, Signature
from triage.catalog.new import SCHEMA, claim
from triage.evidence import from_text
from triage.model.evidence import Evidence

SAMPLES = 3
NEGATIVES = 5
SAMPLE_CHARACTERS = 2000
TODO = "TODO: "

_FILE = """\
# yaml-language-server: $schema=../{schema}
# Made of cluster {cluster}; read the pattern, then say in your words what stands behind each TODO.
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
class Promoted:
    """The text of the file, and which facts of other failures its pattern matches too (none, if it is good)."""

    text: str
    conflicts: tuple[str, ...]


def promote(
    identifier: str,
    title: str,
    cluster: str,
    members: Sequence[Evidence],
    others: Sequence[Evidence],
    directory: Path,
    known: Sequence[str],
) -> tuple[Path, Promoted]:
    """Write `<directory>/<domain>/<slug>.yaml` from the facts of a cluster; `others` are facts of near clusters, which
    it must not match.

    Raises OptionError for an id that cannot be used, a file that is there, and facts of which no pattern can be made.
    """
    drafted = draft(identifier, title, cluster, members, others)
    return claim(identifier, directory, known, title, drafted.text), drafted


def draft(
    identifier: str, title: str, cluster: str, members: Sequence[Evidence], others: Sequence[Evidence]
) -> Promoted:
    """The text of the file."""
    leaves = _leaves(members)
    if not leaves:
        raise OptionError(
            f"{cluster} holds no line of which a pattern could be made",
            hint="`triage clusters show` shows what it holds",
        )
    signature = _signature(identifier, [leaf for leaf, _ in leaves])
    missed = [fact.text for fact in members if evaluate(signature, [fact]) is None]
    assert not missed, f"the derived pattern misses {missed[0]!r}"
    conflicts = tuple(
        dict.fromkeys(fact.text.split("\n", 1)[0] for fact in others if evaluate(signature, [fact]) is not None)
    )
    negatives = [fact for fact in others if evaluate(signature, [fact]) is None]
    text = _FILE.format(
        schema=SCHEMA,
        cluster=cluster,
        id=identifier,
        title=_quoted(title),
        leaves="".join(_leaf(leaf) for leaf, _ in leaves),
        meaning=_quoted(TODO + "what it means, in a sentence or two"),
        summary=_quoted(TODO + "one sentence that says what to do"),
        origin=_quoted(f"cluster {cluster}"),
        match="".join(_sample(signature, fact) for fact in _distinct(members, SAMPLES)),
        no_match=_negatives(signature, negatives),
    )
    return Promoted(text, conflicts)


def _leaves(members: Sequence[Evidence]) -> list[tuple[Leaf, Derived]]:
    """One condition a kind and component: facts that look alike share one."""
    groups: dict[tuple[str, str], list[str]] = {}
    for fact in members:
        line = fact.text.split("\n", 1)[0].strip()
        if line:
            groups.setdefault((fact.kind, fact.component), []).append(line)
    made = []
    for (kind, _), lines in groups.items():
        derived = derive(lines)
        made.append((Leaf(kind=kind, text=derived.pattern), derived))
    return made


def _signature(identifier: str, leaves: Sequence[Leaf]) -> Signature:
    from triage.catalog.model import Clause

    return Signature(identifier, 1, "", "experimental", "cause", "fatal", Clause("any", tuple(leaves)))


def _leaf(leaf: Leaf) -> str:
    return f"    - kind: {leaf.kind}\n      text: {_single(leaf.text or '')}\n"


def _distinct(facts: Sequence[Evidence], limit: int) -> list[Evidence]:
    return list({fact.text: fact for fact in facts}.values())[:limit]


def _sample(signature: Signature, fact: Evidence) -> str:
    """The excerpt where the readers make of it what they made of the log, else the fact as it is."""
    match = evaluate(signature, [fact])
    captures = "".join(
        f"        {name}: {_quoted(value)}\n" for name, value in (match.captures if match else {}).items() if value
    )
    for text in (fact.excerpt, fact.text):
        again = evaluate(signature, from_text(text)) if text and len(text) <= SAMPLE_CHARACTERS else None
        if again is not None and match is not None and again.captures == match.captures:
            return f"    - text: {_quoted(text)}\n" + (f"      captures:\n{captures}" if captures else "")
    fields = "".join(f"        {name}: {_quoted(value)}\n" for name, value in fact.fields.items())
    return (
        f"    - text: {_quoted(fact.text[:SAMPLE_CHARACTERS])}\n      kind: {fact.kind}\n"
        + (f"      component: {_quoted(fact.component)}\n" if fact.component else "")
        + (f"      fields:\n{fields}" if fields else "")
        + (f"      captures:\n{captures}" if captures else "")
    )


def _negatives(signature: Signature, others: Sequence[Evidence]) -> str:
    """Lines of other clusters that look like it."""
    samples: list[Sample] = []
    for fact in _distinct(others, 4 * NEGATIVES):
        line = fact.text.split("\n", 1)[0][:400]
        if line.strip() and evaluate(signature, from_text(line)) is None:
            samples.append(Sample(line, why="another cluster"))
    rows = "".join(f"\n    - {{text: {_quoted(item.text)}, why: {_quoted(item.why)}}}" for item in samples[:NEGATIVES])
    return rows or " []"


def _quoted(text: str) -> str:
    """A YAML double-quoted scalar; what is not printable is written as an escape."""
    return '"' + "".join(_escaped(sign) for sign in text.encode("utf-8", "replace").decode()) + '"'


def _escaped(sign: str) -> str:
    if sign in ('"', "\\"):
        return "\\" + sign
    if sign == "\n":
        return "\\n"
    if sign.isprintable():
        return sign
    return f"\\u{ord(sign):04x}" if ord(sign) < 0x10000 else f"\\U{ord(sign):08x}"


def _single(text: str) -> str:
    """A YAML single-quoted scalar, in which backslashes are themselves."""
    return "'" + text.replace("'", "''") + "'" if text.isprintable() else _quoted(text)


__all__ = ["Promoted", "Sample", "draft", "promote"]
