"""Signatures of the catalog as text or JSON: the list, and one signature in full."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Sequence
from typing import Any

from triage.catalog.model import FILE_KEYS, Clause, Leaf, Signature
from triage.catalog.remediation import describe_advice, fill_remediation
from triage.render.sanitize import clip, sanitize_line
from triage.render.terminal import Paint, columns, join_sections, labelled
from triage.render.text import NARROWEST, WIDTH


def listing(
    signatures: Sequence[Signature], *, shipped: str = "", width: int | None = None, color: bool = False
) -> str:
    """Return one line for each signature: id, role, title; its path if it is not in the directory `shipped`."""
    room, paint = max(width or WIDTH, NARROWEST), Paint(color)
    wide = max((len(signature.id) for signature in signatures), default=0)
    lines = []
    for signature in signatures:
        start = f"{signature.id:<{wide}}  {signature.role:<12}  "
        title = sanitize_line(signature.title)
        title = title if columns(start + title) <= room else title[: max(room - len(start) - 1, 8)] + "…"
        foreign = bool(shipped) and not signature.path.startswith(shipped)
        origin = f"\n{' ' * wide}  from {sanitize_line(signature.path)}" if foreign else ""
        lines.append(paint(start[:wide], "bold") + start[wide:] + title + origin)
    return "\n".join(lines) + "\n" if lines else ""


def listing_as_json(signatures: Sequence[Signature]) -> str:
    """Return a list of objects with the main fields of each signature."""
    keys = ("id", "revision", "title", "status", "role", "severity", "action", "path")
    return (
        json.dumps(
            [{key: getattr(signature, key) for key in keys} for signature in signatures], indent=2, ensure_ascii=False
        )
        + "\n"
    )


def as_json(signature: Signature) -> str:
    """Return all fields of one signature; its advice without the sentences that need the values of a job."""
    general = fill_remediation(signature, {})
    shown = dataclasses.replace(signature, summary=general.summary, steps=general.steps)
    return json.dumps(_plain(shown), indent=2, ensure_ascii=False) + "\n"


def _plain(value: Any) -> Any:
    names = getattr(type(value), "__match_args__", ())  # the fields, of a dataclass as of a struct
    if names:
        return {FILE_KEYS.get(name, name): _plain(getattr(value, name)) for name in names}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return dict(value) if hasattr(value, "keys") else value


def as_text(signature: Signature, *, width: int | None = None, color: bool = False) -> str:
    """Return meaning, advice, conditions and consequences of one signature."""
    room, paint = max(width or WIDTH, NARROWEST), Paint(color)
    kind = f"{signature.role}, {signature.severity}, {signature.status}, revision {signature.revision}"
    kind += f", replaced by {signature.replaced_by}" if signature.replaced_by else ""
    summary, *advice = describe_advice(signature)
    steps = [f"{number}. {step}" for number, step in enumerate(advice, 1)]
    sections = (
        ("Meaning", [signature.meaning]),
        ("Impact", [signature.impact]),
        ("What to do", [summary, *steps]),
        ("Looks for", [f"- {line}" for line in _conditions(signature.match)]),
        (
            "Explains",
            [f"- {edge.signature} ({format_reach(edge.scope, edge.window)})" for edge in signature.causal_edges],
        ),
        ("Applies to", [f"{name} {bounds}" for name, bounds in signature.applies_to.items()]),
        ("Misled by", [f"- {text}" for text in signature.falsepositives]),
        ("Sample", [clip(sanitize_line(sample.text), room * 2) for sample in signature.samples_match[:1]]),
        ("See", [f"- {address}" for address in signature.references]),
        ("File", [signature.path]),
    )
    blocks = [
        labelled(
            signature.id, map(sanitize_line, [signature.title, kind]), room, paint, "bold", margin=len(signature.id) + 2
        )
    ]
    for label, paragraphs in sections:
        lines = [line for line in map(sanitize_line, paragraphs) if line]
        blocks += [labelled(label, lines, room, paint, "bold")] if lines else []
    return join_sections(blocks)


def format_reach(scope: str, window: float | None) -> str:
    """Return `other-ranks`, `same-host, within 30m`."""
    if window is None:
        return scope
    unit, size = next(
        (unit, size)
        for unit, size in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1))
        if window % size == 0 or size == 1
    )
    return f"{scope}, within {window / size:g}{unit}"


def _conditions(match: Clause | Leaf | None, prefix: str = "") -> Iterator[str]:
    if isinstance(match, Leaf):
        parts = [("kind", match.kind), ("component", match.component), ("text", match.text), ("not", match.not_text)]
        named = [f"{name} {value}" for name, value in [*parts, *match.fields.items()] if value]
        yield prefix + ", ".join(named)
    elif match is not None:
        for part in match.parts:
            yield from _conditions(part, f"{prefix}{match.op} of: ")
        for leaf in match.none:
            yield from _conditions(leaf, f"{prefix}but not: ")
