"""The environment audit as text and as JSON ("triage.environment/1")."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from triage.base.rank_ranges import format_ranks
from triage.model import Audit, Deviation, Evidence
from triage.model.environment import TrainingValues
from triage.render import phrases
from triage.render.json import dump_json
from triage.render.sanitize import clip, sanitize_line
from triage.render.terminal import Paint, join_sections, labelled, wrap

__all__ = ["SCHEMA", "as_document", "as_json", "as_text"]

SCHEMA = "triage.environment/1"
WIDTH = 100
NARROWEST = 40
AGREED = 40
_STYLES = {"fatal": ("bold", "red"), "error": ("bold", "red"), "warning": ("bold", "yellow"), "info": ("dim",)}


def as_document(audit: Audit) -> dict[str, Any]:
    """Return the environment as one JSON object."""
    return {
        "schema": SCHEMA,
        "speakers": list(audit.writers),
        "deviations": [_deviation(item) for item in audit.deviations],
        "agreed": dict(audit.agreed),
        "training": _training(audit.training),
        "warnings": [{"code": w.code, "source": w.source, "message": w.message} for w in audit.warnings],
    }


def as_json(audit: Audit) -> str:
    """Return one JSON object, ended by a newline."""
    return dump_json(as_document(audit))


def _training(values: TrainingValues | None) -> dict[str, object] | None:
    if values is None:
        return None
    rows = {name: [{"step": step, "value": text} for step, text in pairs] for name, pairs in values.quantities.items()}
    return {"steps_per_second": values.steps_per_second, "last_step": values.last_step, "quantities": rows}


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
    """Return the audit for a terminal of `width` columns, without control characters of the files."""
    columns, paint = max(width or WIDTH, NARROWEST), Paint(color)
    blocks = [wrap(_head(audit), columns)]
    blocks += [_format_deviation(item, columns, paint) for item in audit.deviations]
    if audit.agreed:
        settings = [
            f"{name}={value}" if name.isupper() else f"{name} {value}" for name, value in audit.agreed.items() if value
        ]
        text = phrases.shorten_list([clip(item, 80) for item in settings], AGREED)
        blocks.append(labelled("Equal", [sanitize_line(text)], columns, paint, "bold"))
    notes = [
        f"- {w.source + ': ' if w.source else ''}{w.message} ({w.code})"
        for w in audit.warnings
        if w.code not in ("handled", "device-unhealthy")
    ]
    if notes:
        blocks.append(
            labelled(
                "Warnings",
                [clip(sanitize_line(note), columns * 2) for note in notes[:8]],
                columns,
                paint,
                "bold",
                "yellow",
            )
        )
    return join_sections(blocks)


def _head(audit: Audit) -> str:
    if not audit.writers:
        return (
            "No settings and no versions found. Write the output of `env` on every rank or node to a file, "
            "or set NCCL_DEBUG=INFO and keep the logs."
        )
    count = sum(item.severity != "info" for item in audit.deviations)
    deviations = (
        f"{phrases.format_count(count, 'deviation')} that may do harm" if count else "no deviation that may do harm"
    )
    remarks = len(audit.deviations) - count
    remarks_text = f" and {phrases.format_count(remarks, 'remark')}" if remarks else ""
    return f"{deviations}{remarks_text}, from {_format_writers(audit.writers)}"


def _format_writers(names: Iterable[str]) -> str:
    listed = list(names)
    ranks = [int(name[5:]) for name in listed if name.startswith("rank ") and name[5:].isdigit()]
    others = [name for name in listed if not (name.startswith("rank ") and name[5:].isdigit())]
    parts = [format_ranks(ranks)] if ranks else []
    parts += (
        [
            sanitize_line(phrases.format_hosts(others))
            if len(others) <= 4
            else f"{', '.join(others[:3])} and {len(others) - 3} more"
        ]
        if others
        else []
    )
    return ", ".join(parts)


def _format_deviation(item: Deviation, columns: int, paint: Paint) -> list[str]:
    lines = [sanitize_line(clip(item.text, 4 * columns))]
    lines += [sanitize_line(item.why)] if item.why else []
    lines += [sanitize_line("at " + ", ".join(map(_place, item.evidence[:3])))] if item.evidence else []
    return labelled(item.severity, lines, columns, paint, *_STYLES[item.severity])


def _place(fact: Evidence) -> str:
    at = f"{fact.source}:{fact.line}" if fact.line is not None else fact.source
    return f"{at} ({clip(fact.text, 60)})"
