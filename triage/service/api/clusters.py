"""Clusters of unknown failures, and what curators decide about them. Every decision can be taken back by its entry."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query

from triage.render import clusters as shown
from triage.service import queries
from triage.service.api import schemas
from triage.service.api.answers import Json
from triage.service.deps import Curator, TheCatalog, TheStore, Viewer
from triage.store import Store

router = APIRouter(tags=["clusters"])
Id = Annotated[str, Path(max_length=200, description="its id, its first digits, or its name", examples=["u-7f3a9c"])]
State = Literal["waiting", "open", "named", "ignored", "promoted", "merged", "all"]


def _moved(store: Store, entry: int, cluster: str) -> Json:
    return Json({"entry": entry, "cluster": store.clusters.id(cluster)})


@router.get("/clusters", response_model=schemas.ClusterList)
def list_clusters(
    store: TheStore, _: Viewer, state: State = "waiting", limit: Annotated[int, Query(ge=1, le=500)] = 50
) -> Json:
    """By what matters: growing, then recent, then many jobs, then many ranks."""
    return Json({"clusters": [shown.as_dict(item) for item in queries.clusters(store, state, limit=limit)]})


@router.get("/clusters/{cluster}", response_model=schemas.ClusterRow)
def get_cluster(cluster: Id, store: TheStore, _: Viewer) -> Json:
    """Fingerprints, lines, incidents, and what was decided. The id of a merged cluster leads to the one it is in."""
    found = queries.cluster(store, cluster)
    return Json(
        shown.page_as_dict(
            shown.Page(found.cluster, found.exemplars, found.members, found.log, found.reasons, found.near, found.note)
        )
    )


@router.post("/clusters/{cluster}/name", response_model=schemas.Moved)
def name_cluster(cluster: Id, asked: schemas.NameIn, store: TheStore, who: Curator) -> Json:
    """Give it a name, and a note."""
    return _moved(store, store.moves.name(cluster, asked.name, actor=who.name, note=asked.note), cluster)


@router.post("/clusters/{cluster}/merge", response_model=schemas.Moved)
def merge_clusters(cluster: Id, asked: schemas.MergeIn, store: TheStore, who: Curator) -> Json:
    """Make it and another one. The oldest id stays, the other leads to it."""
    entry, kept = store.moves.merge([cluster, asked.other], actor=who.name, because=asked.because)
    return _moved(store, entry, kept)


@router.post("/clusters/{cluster}/split", response_model=schemas.Moved)
def split_cluster(cluster: Id, asked: schemas.SplitIn, store: TheStore, who: Curator) -> Json:
    """Move fingerprints into a new cluster."""
    entry, new = store.moves.split(cluster, asked.keys, actor=who.name, because=asked.because)
    return _moved(store, entry, new)


@router.post("/clusters/{cluster}/ignore", response_model=schemas.Moved)
def ignore_cluster(cluster: Id, asked: schemas.Because, store: TheStore, who: Curator) -> Json:
    """Take it out of the list; it is still counted."""
    return _moved(store, store.moves.ignore(cluster, actor=who.name, because=asked.because), cluster)


@router.post("/clusters/{cluster}/reopen", response_model=schemas.Moved)
def reopen_cluster(cluster: Id, asked: schemas.Because, store: TheStore, who: Curator) -> Json:
    """Back into the list."""
    return _moved(store, store.moves.reopen(cluster, actor=who.name, because=asked.because), cluster)


@router.post("/clusters/{cluster}/reject", response_model=schemas.Moved)
def reject_pair(cluster: Id, asked: schemas.MergeIn, store: TheStore, who: Curator) -> Json:
    """Say that it and another are not one, so that nobody suggests it again."""
    return _moved(store, store.moves.reject(cluster, asked.other, actor=who.name, because=asked.because), cluster)


@router.post("/clusters/{cluster}/promote", response_model=schemas.Promotion)
def promote_cluster(cluster: Id, asked: schemas.PromoteIn, store: TheStore, catalog: TheCatalog, who: Curator) -> Json:
    """Make a signature file of it, checked as `triage catalog check` does; with `draft` nothing is decided yet."""
    made = queries.draft(store, catalog, cluster, asked.signature, asked.title)
    entry = None if asked.draft else store.moves.promote(cluster, asked.signature, actor=who.name)
    found = {"path": made.path, "yaml": made.yaml, "problems": list(made.problems), "conflicts": list(made.conflicts)}
    return Json({**found, "entry": entry})


@router.post("/incidents/{incident}/assign", response_model=schemas.Moved)
def assign_incident(incident: Id, asked: schemas.AssignIn, store: TheStore, who: Curator) -> Json:
    """Put the unknown failure of an incident into another cluster, or into a new one."""
    number = store.incidents.number(incident)
    entry, into = store.moves.assign(number, asked.cluster, actor=who.name, because=asked.because)
    return _moved(store, entry, into)


@router.get("/audit", response_model=schemas.AuditList)
def list_audit(
    store: TheStore,
    _: Curator,
    subject: Annotated[str | None, Query(max_length=100, description="id of a cluster or an incident")] = None,
    before: Annotated[int | None, Query(ge=1, le=1 << 53)] = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> Json:
    """Who did what to which thing, the latest first."""
    found = store.audit.listed(subject=subject or None, limit=limit, before=before)
    return Json(
        {
            "next": found[-1].id if len(found) == limit else None,
            "entries": [shown.entry_as_dict(item) for item in found],
        }
    )


@router.post("/audit/{entry}/undo", response_model=schemas.Moved)
def undo(entry: Annotated[int, Path(ge=1, le=1 << 53)], store: TheStore, who: Curator) -> Json:
    """Take a decision back. Later ones that build on it must go first."""
    done = store.moves.undo(entry, actor=who.name)
    return _moved(store, done, store.audit.listed(limit=1, before=done + 1)[0].subject)
