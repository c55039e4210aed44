"""The environment audit as text and as JSON ("triage.environment/1")."""

from __future__ import annotations

import json
from collections.abc import Iterable

from triage.model.environment import Audit, Deviation
from triage.model.evidence import Evidence
from triage.render import words
from triage.render.json import escaped
from triage.render.layout import Paint, labelled, wrap
from triage.render.safe import clip, safe_line

__all__ = ["SCHEMA", "as_json", "as_text"]

SCHEMA = "triage.environment/1"
WIDTH = 100
NARROWEST = 40
AGREED = 40
_STYLES = {"fatal": ("bold", "red"), "error": ("bold", "red"), "warning": ("bold", "yellow"), "info": ("dim",)}


def as_json(audit: Audit) -> str:
    """One JSON object, ended by a newline."""
    document = {
        "schema": SCHEMA,
        "speakers": list(audit.speakers),
        "deviations": [_deviation(item) for item in audit.deviations],
        "agreed": dict(audit.agreed),
        "warnings": [{"code": w.code, "source": w.source, "message": w.message} for w in audit.warnings],
    }
    return escaped(json.dumps(document, ensure_ascii=False, indent=2, allow_nan=False)) + "\n"


def _deviation(item: Deviation) -> dict[str, object]:
    return {
        "domain": "config",
        "rule": item.rule,
        "severity": item.severity,
        "names": list(item.names),
        "text": item.text,
        "why": item.why,
        "values": [{"value": value, "who": who} for value, who in item.values],
        "ranks": list(item.ranks),
        "hosts": list(item.hosts),
        "evidence": [
            {
                "source": fact.source,
                "line": fact.line,
                "rank": fact.origin.rank,
                "host": fact.origin.host,
                "text": fact.text,
            }
            for fact in item.evidence
        ],
    }


def as_text(audit: Audit, *, width: int | None = None, color: bool = False) -> str:
    """The audit for a terminal of `width` columns; no control character in it comes from a file."""
    columns, paint = max(width or WIDTH, NARROWEST), Paint(color)
    blocks = [wrap(_head(audit), columns)]
    blocks += [_said(item, columns, paint) for item in audit.deviations]
    if audit.agreed:
        told = [
            f"{name}={value}" if name.isupper() else f"{name} {value}" for name, value in audit.agreed.items() if value
        ]
        more = f" and {len(told) - AGREED} more" if len(told) > AGREED else ""
        blocks.append(
            labelled(
                "Equal", [safe_line(", ".join(clip(item, 80) for item in told[:AGREED]) + more)], columns, paint, "bold"
            )
        )
    notes = [
        f"- {w.source + ': ' if w.source else ''}{w.message} ({w.code})"
        for w in audit.warnings
        if w.code not in ("handled", "device-unhealthy")
    ]
    if notes:
        blocks.append(
            labelled(
                "Warnings", [clip(safe_line(note), columns * 2) for note in notes[:8]], columns, paint, "bold", "yellow"
            )
        )
    return "\n\n".join("\n".join(line.rstrip() for line in block) for block in blocks) + "\n"


def _head(audit: Audit) -> str:
    if not audit.speakers:
        return "No settings and no versions were found. Run `env` on every rank or node into a file each, or set NCCL_DEBUG=INFO and keep the logs."
    count = sum(item.severity != "info" for item in audit.deviations)
    found = f"{words.plural(count, 'deviation')} that may harm" if count else "nothing that may harm"
    remarks = len(audit.deviations) - count
    also = f" and {words.plural(remarks, 'remark')}" if remarks else ""
    return f"{found}{also}, told by {_speakers(audit.speakers)}"


def _speakers(names: Iterable[str]) -> str:
    listed = list(names)
    ranks = [int(name[5:]) for name in listed if name.startswith("rank ") and name[5:].isdigit()]
    others = [name for name in listed if not (name.startswith("rank ") and name[5:].isdigit())]
    said = [words.ranks(ranks)] if ranks else []
    said += (
        [safe_line(words.hosts(others)) if len(others) <= 4 else f"{', '.join(others[:3])} and {len(others) - 3} more"]
        if others
        else []
    )
    return ", ".join(said)


def _said(item: Deviation, columns: int, paint: Paint) -> list[str]:
    lines = [safe_line(clip(item.text, 4 * columns))]
    lines += [safe_line(item.why)] if item.why else []
    lines += [safe_line("at " + ", ".join(map(_place, item.evidence[:3])))] if item.evidence else []
    return labelled(item.severity, lines, columns, paint, *_STYLES[item.severity])


def _place(fact: Evidence) -> str:
    at = f"{fact.source}:{fact.line}" if fact.line is not None else fact.source
    return f"{at} ({clip(fact.text, 60)})"
