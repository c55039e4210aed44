"""The page of a failed job beside a healthy one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from triage.compare.job_comparison import ComparedPart, ComparedRow
from triage.model.store import Incident
from triage.render import job_comparison
from triage.service.dependencies import StoreDep, Viewer
from triage.service.pages.rendering import page_and_json, render_page
from triage.store.healthy_jobs import compare_stored

router = APIRouter()
MAX_ROWS = 300


@dataclass(frozen=True, slots=True)
class PartView:
    """One kind of values: its title, the result as a sentence, and the rows with their names."""

    title: str
    sentence: str
    rows: tuple[tuple[str, ComparedRow], ...]
    more: int


@dataclass(frozen=True, slots=True)
class ComparisonView:
    """Two jobs side by side. `healthy` is None where no healthy job is known; `choice` says why it was chosen."""

    failed: Incident
    healthy: Incident | None
    choice: str
    headline: str
    parts: tuple[PartView, ...]


@page_and_json(router, "/incidents/{incident}/compare")
def compare_incident(
    request: Request,
    incident: str,
    store: StoreDep,
    _: Viewer,
    healthy: Annotated[str, Query(max_length=100)] = "",
) -> Response:
    """Show a failed job beside a healthy one; without `healthy`, beside the last one of the same kind."""
    pair = compare_stored(store, incident, healthy.strip() or None)
    choice = "" if healthy.strip() or pair.healthy is None else job_comparison.describe_choice(pair.common_facts)
    comparison = pair.comparison
    view = ComparisonView(
        pair.failed,
        pair.healthy,
        choice,
        comparison.headline if comparison is not None else "",
        tuple(map(_view_part, comparison.parts)) if comparison is not None else (),
    )
    return render_page(request, "comparison.html", view)


def _view_part(part: ComparedPart) -> PartView:
    rows = tuple((job_comparison.row_name(row), row) for row in part.rows[:MAX_ROWS])
    title = job_comparison.TITLES[part.name]
    return PartView(title, job_comparison.describe_part(part), rows, max(0, len(part.rows) - MAX_ROWS))
