"""Status: how fresh everything is, and what waits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from triage.service import queries
from triage.service.api.answers import task
from triage.service.deps import TheCatalog, TheService, TheStore, Viewer
from triage.service.pages.show import both, page

router = APIRouter()


@dataclass(frozen=True, slots=True)
class Status:
    """What `fresh` says, and the last tasks."""

    fresh: queries.Fresh
    signatures: int
    warnings: tuple[str, ...]
    tasks: tuple[dict[str, Any], ...]


@both(router, "/status")
def status(request: Request, service: TheService, store: TheStore, catalog: TheCatalog, _: Viewer) -> Response:
    """The state of the service."""
    warnings = tuple(
        f"{note.source}: {note.message}" if note.source else note.message for note in catalog.warnings[:20]
    )
    tasks = tuple(task(item) for item in store.tasks.listed(limit=20))
    return page(
        request,
        "status.html",
        Status(queries.fresh(store, catalog, service.started), len(catalog.signatures), warnings, tasks),
    )
