"""The answers of `triage ingest --each`: a line for each job and a summary by cause, as text or lines of JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from triage.base.rank_ranges import format_rank_numbers
from triage.model import Diagnosis
from triage.render import table
from triage.render.phrases import format_count
from triage.render.sanitize import sanitize_line
from triage.render.terminal import Paint
from triage.render.text import NARROWEST, WIDTH

SCHEMA = "triage.each/1"
_FIELDS = ("job", "path", "verdict", "cause", "ranks", "title", "id", "warnings", "error", "hint", "unchanged")


def row_of(diagnosis: Diagnosis) -> dict[str, Any]:
    """Return what the line of a job shows of its diagnosis."""
    root = diagnosis.root_cause
    return {
        "verdict": diagnosis.verdict,
        "cause": (root.signature or root.cluster or "symptoms only") if root is not None else None,
        "ranks": list(root.ranks) if root is not None else [],
        "title": root.title if root is not None else "",
        "id": diagnosis.job.id,
        "warnings": len(diagnosis.warnings),
    }


def summarise(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return how many jobs have each (verdict, cause), the most frequent first."""
    counts = Counter((row["verdict"], row["cause"] or "") for row in rows)
    titles = {(row["verdict"], row["cause"] or ""): row["title"] for row in reversed(rows)}
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [
        {"verdict": verdict, "cause": cause or None, "jobs": count, "title": titles[verdict, cause]}
        for (verdict, cause), count in ordered
    ]


def line_as_json(row: Mapping[str, Any]) -> str:
    """Return one job as a line of JSON."""
    return json.dumps({"schema": SCHEMA, **{name: row[name] for name in _FIELDS if name in row}}) + "\n"


def summary_as_json(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the last line: the number of jobs and the summary by cause."""
    return json.dumps({"schema": SCHEMA, "jobs": len(rows), "summary": summarise(rows)}) + "\n"


def _cells(row: Mapping[str, Any]) -> list[str]:
    ranks = format_rank_numbers(row["ranks"]) if row["ranks"] else "-"
    title = sanitize_line(row["title"] or row.get("error", ""))
    return [sanitize_line(row["job"]), row["verdict"], row["cause"] or "-", ranks, title]


def as_text(rows: Sequence[Mapping[str, Any]], *, width: int | None = None, color: bool = False) -> str:
    """Return a table of the jobs, and below it the summary by cause."""
    columns, paint = max(width or WIDTH, NARROWEST), Paint(color)
    jobs = list(map(_cells, rows))
    causes: list[list[str]] = [
        [str(item["jobs"]), item["verdict"], item["cause"] or "-", sanitize_line(item["title"])]
        for item in summarise(rows)
    ]
    unchanged = sum(bool(row.get("unchanged")) for row in rows)
    note = f", {unchanged} of them unchanged since the last run" if unchanged else ""
    return "\n".join(
        [
            *table.as_text(("job", "verdict", "cause", "ranks", "title"), jobs, columns, paint),
            "",
            *table.as_text(("jobs", "verdict", "cause", "title"), causes, columns, paint),
            "",
            f"{format_count(len(rows), 'job')}{note}",
            "",
        ]
    )
