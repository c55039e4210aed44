"""How triage reads a signature file, as text or JSON, for `triage catalog explain`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from triage.catalog.study import LeafStudy, SampleStudy, SignatureStudy
from triage.render.json import dump_json, evidence
from triage.render.sanitize import clip, sanitize_line
from triage.render.signature import format_reach
from triage.render.terminal import Paint, join_sections, labelled
from triage.render.text import NARROWEST, WIDTH

SCHEMA = "triage.study/1"


def as_json(study: SignatureStudy) -> str:
    """Return one JSON object; evidence has the same shape as in a diagnosis."""
    signature = study.signature
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "signature": signature.id,
        "revision": signature.revision,
        "fingerprint": signature.fingerprint,
        "path": signature.path,
        "looks_for": [
            {
                "text": leaf.text,
                "captures": list(leaf.captures),
                "literals": [{"text": text, "in_healthy_logs": count} for text, count in leaf.literals],
            }
            for leaf in study.leaves
        ],
        "samples": [_sample(tried) for tried in study.samples],
        "explains": [_edge(edge.signature, edge.scope, edge.window) for edge in signature.causal_edges],
        "explained_by": [_edge(edge.cause, edge.scope, edge.window) for edge in study.explained_by],
    }
    return dump_json(document)


def _edge(name: str, scope: str, window: float | None) -> dict[str, Any]:
    return {"signature": name, "scope": scope, "window_s": window}


def _sample(tried: SampleStudy) -> dict[str, Any]:
    return {
        "sample": tried.name,
        "must_match": tried.expected,
        "matches": tried.matched,
        "read_as": [{**evidence(item), "component": item.component} for item in tried.evidence],
        "clauses": [{"text": text, "held": held, "hits": hits} for text, held, hits in tried.clauses],
        "captures": dict(tried.captures),
    }


def as_text(study: SignatureStudy, *, width: int | None = None, color: bool = False) -> str:
    """Return what the signature looks for, then each sample with its result, then the edges."""
    columns, paint = max(width or WIDTH, NARROWEST), Paint(color)
    signature = study.signature
    kind = f"{signature.role}, {signature.severity}, {signature.status}, revision {signature.revision}"
    sections = [
        labelled(
            signature.id,
            map(sanitize_line, [signature.title, kind, signature.path]),
            columns,
            paint,
            "bold",
            margin=len(signature.id) + 2,
        ),
        _section("Looks for", _leaves(study.leaves), columns, paint),
        *(_format_sample(tried, columns, paint) for tried in study.samples),
        _section(
            "Explains",
            _edges((edge.signature, edge.scope, edge.window) for edge in signature.causal_edges),
            columns,
            paint,
        ),
        _section(
            "Explained by", _edges((one.cause, one.scope, one.window) for one in study.explained_by), columns, paint
        ),
    ]
    return join_sections(sections)


def _leaves(wanted: tuple[LeafStudy, ...]) -> Iterator[str]:
    for leaf in wanted:
        literals = " or ".join(f"{text!r}{f' ({n}× in healthy logs)' if n else ''}" for text, n in leaf.literals)
        captures = f"; captures {', '.join(leaf.captures)}" if leaf.captures else ""
        trigger = f"the scan stops at {literals}" if literals else "matched by shape, not by a literal"
        yield f"{leaf.text}; {trigger}{captures}"


def _edges(edges: Iterable[tuple[str, str, float | None]]) -> Iterator[str]:
    """Yield `same-host: a, b` for each scope."""
    names_by_reach: dict[str, list[str]] = {}
    for name, scope, window in edges:
        names_by_reach.setdefault(format_reach(scope, window), []).append(name)
    return (f"{reached}: {', '.join(names)}" for reached, names in names_by_reach.items())


def _section(label: str, items: Iterable[str], columns: int, paint: Paint) -> list[str]:
    lines = [f"- {sanitize_line(item)}" for item in items]
    return labelled(label, lines, columns, paint, "bold") if lines else []


def _format_sample(tried: SampleStudy, columns: int, paint: Paint) -> list[str]:
    """Return the clauses that hold; all clauses if the result is not the expected one."""
    is_expected = tried.expected == tried.matched
    outcome = "matches" if tried.matched else "does not match"
    verdict = f"{outcome}, as it must" if is_expected else f"{outcome}, and {'must' if tried.expected else 'must not'}"
    lines = [f"{paint(tried.name, 'bold')}  {paint(verdict, 'green' if is_expected else 'red')}"]
    lines += [] if tried.evidence else ["  no line looks like a failure"]
    for item in tried.evidence:
        of = f" of {item.component}" if item.component else ""
        lines.append(clip(f"  {item.kind}{of}: {sanitize_line(item.text.partition(chr(10))[0])}", columns))
    for text, held, hits in tried.clauses:
        if held or not is_expected:
            lines.append(clip(f"    {'holds' if held else 'fails'}, {hits}×: {sanitize_line(text)}", columns))
    return lines + [clip(f"    {name} = {sanitize_line(value)}", columns) for name, value in tried.captures.items()]
