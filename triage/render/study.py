"""What triage makes of a signature file, as text or JSON: the answer of `triage catalog explain`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from triage.catalog.study import Study, Tried, Wanted
from triage.render.json import escaped, evidence
from triage.render.layout import Paint, labelled
from triage.render.safe import clip, safe_line
from triage.render.signature import reach
from triage.render.text import NARROWEST, WIDTH

SCHEMA = "triage.study/1"


def as_json(study: Study) -> str:
    """One JSON object; evidence has the shape that it has in a diagnosis."""
    signature = study.signature
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "signature": signature.id,
        "revision": signature.revision,
        "fingerprint": signature.fingerprint,
        "path": signature.path,
        "looks_for": [
            {"text": leaf.text, "captures": list(leaf.captures), "literals": [{"text": text, "in_healthy_logs": n} for text, n in leaf.literals]}
            for leaf in study.wanted
        ],
        "samples": [_sample(tried) for tried in study.samples],
        "explains": [{"signature": edge.signature, "scope": edge.scope, "window_s": edge.window} for edge in signature.leads_to],
        "explained_by": [{"signature": arrow.cause, "scope": arrow.scope, "window_s": arrow.window} for arrow in study.explained_by],
    }  # fmt: skip
    return escaped(json.dumps(document, ensure_ascii=False, indent=2, allow_nan=False)) + "\n"


def _sample(tried: Tried) -> dict[str, Any]:
    return {
        "sample": tried.called,
        "must_match": tried.expected,
        "matches": tried.matched,
        "read_as": [{**evidence(item), "component": item.component} for item in tried.evidence],
        "clauses": [{"text": text, "held": held, "hits": hits} for text, held, hits in tried.clauses],
        "captures": dict(tried.captures),
    }


def as_text(study: Study, *, width: int | None = None, color: bool = False) -> str:
    """What it looks for, then each sample with what became of it, then the edges."""
    columns, paint = max(width or WIDTH, NARROWEST), Paint(color)
    signature = study.signature
    kind = f"{signature.role}, {signature.severity}, {signature.status}, revision {signature.revision}"
    sections = [
        labelled(
            signature.id,
            map(safe_line, [signature.title, kind, signature.path]),
            columns,
            paint,
            "bold",
            margin=len(signature.id) + 2,
        ),
        _section("Looks for", _leaves(study.wanted), columns, paint),
        *(_tried(tried, columns, paint) for tried in study.samples),
        _section(
            "Explains", _edges((edge.signature, edge.scope, edge.window) for edge in signature.leads_to), columns, paint
        ),
        _section(
            "Explained by", _edges((one.cause, one.scope, one.window) for one in study.explained_by), columns, paint
        ),
    ]
    return "\n\n".join("\n".join(line.rstrip() for line in section) for section in sections if section) + "\n"


def _leaves(wanted: tuple[Wanted, ...]) -> Iterator[str]:
    for leaf in wanted:
        literals = " or ".join(f"{text!r}{f' ({n}× in healthy logs)' if n else ''}" for text, n in leaf.literals)
        captures = f"; captures {', '.join(leaf.captures)}" if leaf.captures else ""
        yield f"{leaf.text}; {'the scan stops at ' + literals if literals else 'found by its shape, not by words'}{captures}"


def _edges(edges: Iterable[tuple[str, str, float | None]]) -> Iterator[str]:
    """`same-host: a, b`, in the order in which the reaches come."""
    found: dict[str, list[str]] = {}
    for name, scope, window in edges:
        found.setdefault(reach(scope, window), []).append(name)
    return (f"{reached}: {', '.join(names)}" for reached, names in found.items())


def _section(label: str, items: Iterable[str], columns: int, paint: Paint) -> list[str]:
    lines = [f"- {safe_line(item)}" for item in items]
    return labelled(label, lines, columns, paint, "bold") if lines else []


def _tried(tried: Tried, columns: int, paint: Paint) -> list[str]:
    """The clauses that held; where the sample is not as it must be, all of them."""
    right = tried.expected == tried.matched
    said = "matches" if tried.matched else "does not match"
    word = f"{said}, as it must" if right else f"{said}, and {'must' if tried.expected else 'must not'}"
    lines = [f"{paint(tried.called, 'bold')}  {paint(word, 'green' if right else 'red')}"]
    lines += [] if tried.evidence else ["  no line of it looks like a failure"]
    for item in tried.evidence:
        of = f" of {item.component}" if item.component else ""
        lines.append(clip(f"  {item.kind}{of}: {safe_line(item.text.partition(chr(10))[0])}", columns))
    for text, held, hits in tried.clauses:
        if held or not right:
            lines.append(clip(f"    {'holds' if held else 'fails'}, {hits}×: {safe_line(text)}", columns))
    return lines + [clip(f"    {name} = {safe_line(value)}", columns) for name, value in tried.captures.items()]
