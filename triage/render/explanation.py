"""Why a signature matched or did not match a job, as text or JSON, for `triage explain`."""

from __future__ import annotations

from typing import Any

from triage.model.diagnosis import Explanation
from triage.render.json import dump_json, evidence
from triage.render.phrases import format_count
from triage.render.sanitize import clip, sanitize_line
from triage.render.terminal import Paint, join_sections, labelled
from triage.render.text import NARROWEST, WIDTH, quoted

SCHEMA = "triage.explanation/1"
SHOWN = 3


def as_json(explanation: Explanation) -> str:
    """Return one JSON object; evidence has the same shape as in a diagnosis."""
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "signature": explanation.signature,
        "title": explanation.title,
        "matched": explanation.matched,
        "outcome": explanation.outcome,
        "clauses": [{"text": text, "held": held, "hits": hits} for text, held, hits in explanation.clauses],
        "evidence": [evidence(item) for item in explanation.evidence],
        "near_misses": [{"place": place, "text": text} for place, text in explanation.near_misses],
    }
    return dump_json(document)


def as_text(explanation: Explanation, *, width: int | None = None, color: bool = False) -> str:
    """Return the outcome, then the clauses, the evidence and the near misses."""
    columns, paint = max(width or WIDTH, NARROWEST), Paint(color)
    kind, style = ("MATCHED", "green") if explanation.matched else ("NOT MATCHED", "yellow")
    head = [
        f"{sanitize_line(explanation.signature)}: {sanitize_line(explanation.title)}",
        sanitize_line(explanation.outcome),
    ]
    sections = [labelled(kind, head, columns, paint, "bold", style)]
    if explanation.clauses:
        clauses = [_format_clause(text, held, hits) for text, held, hits in explanation.clauses]
        sections.append(labelled("Clauses", clauses, columns, paint, "bold"))
    evidence = _quotation("Evidence", [(_place(item), item.text) for item in explanation.evidence], columns, paint)
    near_misses = _quotation("Near misses", list(explanation.near_misses), columns, paint)
    return join_sections([*sections, evidence, near_misses])


def _format_clause(text: str, held: bool, hits: int) -> str:
    """Return a clause with its depth: `- holds (2 facts): at least one of these 6`."""
    depth = len(text) - len(text.lstrip(" "))
    facts = f" ({format_count(hits, 'fact')})" if hits else ""
    state = "holds" if held else "fails"
    return f"{' ' * depth}- {state}{facts}: {sanitize_line(text)}"


def _quotation(label: str, places: list[tuple[str, str]], width: int, paint: Paint) -> list[str]:
    if not places:
        return []
    lines = [paint(label, "bold")]
    for place, text in places[:SHOWN]:
        lines += [f"  {clip(sanitize_line(place), width - 2)}", *quoted(text, width, "    ")]
    return lines + ([f"  and {len(places) - SHOWN} more"] if len(places) > SHOWN else [])


def _place(item: Any) -> str:
    at = f"{item.source}:{item.line}" if item.line is not None else f"{item.source} at byte {item.offset}"
    return at + (f" (rank {item.origin.rank})" if item.origin.rank is not None else "")
