"""A failed job beside a healthy one, as text and as JSON ("triage.comparison/1")."""

from __future__ import annotations

from typing import Any

from triage.compare.job_comparison import ComparedPart, ComparedRow, JobComparison
from triage.model.store import Incident
from triage.render.json import dump_json
from triage.render.sanitize import clip, sanitize_line
from triage.render.table import as_text as table_as_text, day, iso
from triage.render.terminal import Paint
from triage.render.text import NARROWEST, WIDTH

SCHEMA = "triage.comparison/1"
TITLES = {
    "settings": "Settings",
    "versions": "Versions",
    "facts": "Facts of the job",
    "size": "Size",
    "pace": "Pace",
    "values": "Losses and norms",
}
MOST_ROWS, MOST_VALUE = 40, 100
_HEAD = ("", "what", "failed", "healthy")


def describe_choice(common_facts: tuple[str, ...]) -> str:
    """Return why the healthy job was chosen, as the end of a sentence."""
    return f"with the same {' and '.join(common_facts)}" if common_facts else "of the same name"


def describe_part(part: ComparedPart) -> str:
    """Return the result of one part as a sentence."""
    if not part.compared:
        return f"Nothing was compared: {part.why_not}."
    if part.differing:
        return (
            f"{part.differing} of {part.compared} differ." if part.differing > 1 else f"1 of {part.compared} differs."
        )
    return f"Nothing differs ({part.compared} compared)."


def row_name(row: ComparedRow) -> str:
    """Return the name of a value, with its step."""
    return f"{row.name} at step {row.step}" if row.step is not None else row.name


def as_dict(
    failed: Incident, healthy: Incident, common_facts: tuple[str, ...], comparison: JobComparison
) -> dict[str, Any]:
    """Return the comparison as a JSON object."""
    return {
        "schema": SCHEMA,
        "failed": _side(failed),
        "healthy": _side(healthy),
        "common_facts": list(common_facts),
        "headline": comparison.headline,
        "compared": comparison.compared,
        "differing": comparison.differing,
        "parts": [
            {
                "name": part.name,
                "compared": part.compared,
                "differing": part.differing,
                "why_not": part.why_not,
                "rows": [{name: getattr(row, name) for name in ComparedRow.__dataclass_fields__} for row in part.rows],
            }
            for part in comparison.parts
        ],
    }


def _side(incident: Incident) -> dict[str, str | None]:
    names = ("id", "job_name", "verdict", "title")
    return {**{name: getattr(incident, name) for name in names}, "at": iso(incident.at)}


def as_json(failed: Incident, healthy: Incident, common_facts: tuple[str, ...], comparison: JobComparison) -> str:
    """Return the comparison as one JSON object, ended by a newline."""
    return dump_json(as_dict(failed, healthy, common_facts, comparison))


def as_text(
    failed: Incident,
    healthy: Incident,
    comparison: JobComparison,
    *,
    width: int | None = None,
    color: bool = False,
) -> str:
    """Return the comparison for a terminal of `width` columns, without control characters of the files."""
    columns, paint = max(width or WIDTH, NARROWEST), Paint(color)
    lines = [
        f"failed   {_describe_job(failed)}",
        f"healthy  {_describe_job(healthy)}",
        "",
        comparison.headline,
    ]
    for part in comparison.parts:
        lines += ["", f"{paint(TITLES[part.name], 'bold')}: {describe_part(part)}"]
        rows = [
            ("!" if row.differs else "", _shorten(row_name(row)), _shorten(row.failed), _shorten(row.healthy))
            for row in part.rows[:MOST_ROWS]
        ]
        lines += table_as_text(_HEAD, rows, columns, paint) if rows else []
        lines += [f"{len(part.rows) - MOST_ROWS} more with --format json"] if len(part.rows) > MOST_ROWS else []
    return "\n".join(lines) + "\n"


def _describe_job(incident: Incident) -> str:
    return sanitize_line(f"{incident.id}  {day(incident.at)[:16]}  {incident.verdict}  {clip(incident.job_name, 60)}")


def _shorten(value: str | None) -> str:
    return "(not stated)" if value is None else sanitize_line(clip(value, MOST_VALUE))
