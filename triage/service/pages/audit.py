"""Audit: who did what to which thing; decisions can be taken back from here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import RedirectResponse, Response

from triage.model.store import Entry
from triage.service.deps import Curator, TheStore
from triage.service.pages.show import both, page

router = APIRouter()
LIMIT = 100
# Decisions that the store can take back, if nothing was built on them since.
UNDOABLE = frozenset({"name", "merge", "split", "assign", "ignore", "reopen", "promote", "reject"})


@dataclass(frozen=True, slots=True)
class Audit:
    """Entries, the latest first. `next` is what `before` must be for older ones; `undoable` are the numbers of those
    that may be taken back.
    """

    subject: str
    entries: tuple[Entry, ...]
    undoable: tuple[int, ...]
    next: int | None


@both(router, "/audit")
def audit(
    request: Request,
    store: TheStore,
    _: Curator,
    subject: Annotated[str, Query(max_length=100)] = "",
    before: Annotated[int | None, Query(ge=1, le=1 << 53)] = None,
) -> Response:
    """The log."""
    found = store.audit.listed(subject=subject.strip() or None, limit=LIMIT, before=before)
    undoable = tuple(entry.id for entry in found if entry.action in UNDOABLE and entry.undone_by is None)
    return page(
        request,
        "audit.html",
        Audit(subject.strip(), tuple(found), undoable, found[-1].id if len(found) == LIMIT else None),
    )


@router.post("/audit/{entry}/undo")
def undo(entry: Annotated[int, Path(ge=1, le=1 << 53)], store: TheStore, who: Curator) -> Response:
    """Take a decision back."""
    store.moves.undo(entry, actor=who.name)
    return RedirectResponse("/audit?said=undone", 303)
