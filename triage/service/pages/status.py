"""Statistics, the audit log and the status of the service."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request, Response

from triage.model.store import AuditEntry
from triage.render.week_chart import Bar, weeks
from triage.service import incident_queries
from triage.service.api.responses import task_as_dict
from triage.service.dependencies import CatalogDep, Curator, StateDep, StoreDep, Viewer
from triage.service.incident_queries import incident_filter
from triage.service.pages.rendering import page_and_json, redirect_with_notice, render_page
from triage.store.search import Filter, StatsRow

router = APIRouter()
MAX_WEEKS = 20
MAX_FEEDBACK = 20
AUDIT_PAGE = 100
# Decisions that the store can undo while nothing builds on them.
UNDOABLE_ACTIONS = frozenset({"name", "merge", "split", "assign", "ignore", "reopen", "promote", "reject"})


@dataclass(frozen=True, slots=True)
class StatsView:
    """Counts of the incidents that match the filter. `feedback` is (cause, agreed, wrong)."""

    incidents: int
    verdicts: tuple[StatsRow, ...]
    signatures: tuple[StatsRow, ...]
    hosts: tuple[StatsRow, ...]
    devices: tuple[StatsRow, ...]
    weeks: tuple[Bar, ...]
    feedback: tuple[tuple[str, int, int], ...]
    pictures: str


@page_and_json(router, "/stats")
def show_stats(
    request: Request, store: StoreDep, _: Viewer, query: Annotated[Filter, Depends(incident_filter)]
) -> Response:
    """Show incidents by cause, week, host and device."""
    stats = store.search.compute_stats(query)
    chart = weeks(stats.weeks, query.until or time.time(), most=MAX_WEEKS)
    view = StatsView(
        incidents=stats.incidents,
        verdicts=stats.verdicts,
        signatures=stats.signatures,
        hosts=stats.hosts,
        devices=stats.devices,
        weeks=chart.bars,
        feedback=tuple(store.feedback.counts()[:MAX_FEEDBACK]),
        pictures=chart.svg,
    )
    return render_page(request, "stats.html", view)


@dataclass(frozen=True, slots=True)
class AuditView:
    """Audit entries, latest first. `next` is the cursor `before` of older ones, `undoable` their ids."""

    subject: str
    entries: tuple[AuditEntry, ...]
    undoable: tuple[int, ...]
    next: int | None


@page_and_json(router, "/audit")
def show_audit(
    request: Request,
    store: StoreDep,
    _: Curator,
    subject: Annotated[str, Query(max_length=100)] = "",
    before: Annotated[int | None, Query(ge=1, le=1 << 53)] = None,
) -> Response:
    """Show who changed what."""
    subject = subject.strip()
    entries = tuple(store.audit.list_entries(subject=subject or None, limit=AUDIT_PAGE, before=before))
    undoable = tuple(entry.id for entry in entries if entry.action in UNDOABLE_ACTIONS and entry.undone_by is None)
    cursor = entries[-1].id if len(entries) == AUDIT_PAGE else None
    return render_page(request, "audit.html", AuditView(subject, entries, undoable, cursor))


@router.post("/audit/{entry}/undo")
def undo(entry: Annotated[int, Path(ge=1, le=1 << 53)], store: StoreDep, user: Curator) -> Response:
    """Undo a decision."""
    store.cluster_actions.undo(entry, actor=user.name)
    return redirect_with_notice("/audit", "undone")


@dataclass(frozen=True, slots=True)
class StatusView:
    """Versions and sizes, warnings of the catalog, and the last tasks."""

    fresh: incident_queries.ServiceStatus
    signatures: int
    warnings: tuple[str, ...]
    tasks: tuple[dict[str, Any], ...]


@page_and_json(router, "/status")
def show_status(request: Request, state: StateDep, store: StoreDep, catalog: CatalogDep, _: Viewer) -> Response:
    """Show versions, the store, warnings of the catalog and the last tasks."""
    view = StatusView(
        fresh=incident_queries.service_status(store, catalog, state.started),
        signatures=len(catalog.signatures),
        warnings=tuple(
            f"{note.source}: {note.message}" if note.source else note.message for note in catalog.warnings[:20]
        ),
        tasks=tuple(task_as_dict(task) for task in store.tasks.list_tasks(limit=20)),
    )
    return render_page(request, "status.html", view)
