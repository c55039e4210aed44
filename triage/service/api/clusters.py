"""Clusters of unknown failures, the decisions of curators, and the audit log, which can undo each decision."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query

from triage.render import clusters as rendered
from triage.service import cluster_queries
from triage.service.api import requests, schemas
from triage.service.api.responses import JsonResponse
from triage.service.dependencies import CatalogDep, Curator, StoreDep, Viewer
from triage.store import Store

router = APIRouter(tags=["clusters"])
ClusterId = Annotated[
    str, Path(max_length=200, description="its id, the start of its id, or its name", examples=["u-7f3a9c"])
]
State = Literal["waiting", "open", "named", "ignored", "promoted", "merged", "all"]


def _decision(store: Store, entry: int, cluster: str) -> JsonResponse:
    return JsonResponse({"entry": entry, "cluster": store.clusters.find_id(cluster)})


@router.get("/clusters", response_model=schemas.ClusterList)
def list_clusters(
    store: StoreDep, _: Viewer, state: State = "waiting", limit: Annotated[int, Query(ge=1, le=500)] = 50
) -> JsonResponse:
    """List clusters: growing ones first, then recent ones, then by jobs and ranks."""
    clusters = cluster_queries.list_clusters(store, state, limit=limit)
    return JsonResponse({"clusters": [rendered.as_dict(cluster) for cluster in clusters]})


@router.get("/clusters/{cluster}", response_model=schemas.ClusterRow)
def get_cluster(cluster: ClusterId, store: StoreDep, catalog: CatalogDep, _: Viewer) -> JsonResponse:
    """Return fingerprints, lines, incidents and decisions of a cluster. A merged id returns its new cluster."""
    details = cluster_queries.get_cluster(store, catalog, cluster)
    page = rendered.ClusterDetails(
        details.cluster,
        details.exemplars,
        details.members,
        details.log,
        details.reasons,
        details.near,
        details.note,
        details.wordings,
    )
    return JsonResponse(rendered.page_as_dict(page))


@router.post("/clusters/{cluster}/name", response_model=schemas.Decision)
def name_cluster(cluster: ClusterId, body: requests.NameIn, store: StoreDep, user: Curator) -> JsonResponse:
    """Set the name and the note of a cluster."""
    return _decision(store, store.cluster_actions.name(cluster, body.name, actor=user.name, note=body.note), cluster)


@router.post("/clusters/{cluster}/merge", response_model=schemas.Decision)
def merge_clusters(cluster: ClusterId, body: requests.MergeIn, store: StoreDep, user: Curator) -> JsonResponse:
    """Merge two clusters. The oldest id stays; the other one refers to it."""
    entry, merged = store.cluster_actions.merge([cluster, body.other], actor=user.name, because=body.because)
    return _decision(store, entry, merged)


@router.post("/clusters/{cluster}/split", response_model=schemas.Decision)
def split_cluster(cluster: ClusterId, body: requests.SplitIn, store: StoreDep, user: Curator) -> JsonResponse:
    """Move fingerprints into a new cluster."""
    entry, new = store.cluster_actions.split(cluster, body.keys, actor=user.name, because=body.because)
    return _decision(store, entry, new)


@router.post("/clusters/{cluster}/ignore", response_model=schemas.Decision)
def ignore_cluster(cluster: ClusterId, body: requests.Reason, store: StoreDep, user: Curator) -> JsonResponse:
    """Remove a cluster from the inbox; it is still counted."""
    return _decision(store, store.cluster_actions.ignore(cluster, actor=user.name, because=body.because), cluster)


@router.post("/clusters/{cluster}/reopen", response_model=schemas.Decision)
def reopen_cluster(cluster: ClusterId, body: requests.Reason, store: StoreDep, user: Curator) -> JsonResponse:
    """Put a cluster back into the inbox."""
    return _decision(store, store.cluster_actions.reopen(cluster, actor=user.name, because=body.because), cluster)


@router.post("/clusters/{cluster}/reject", response_model=schemas.Decision)
def reject_pair(cluster: ClusterId, body: requests.MergeIn, store: StoreDep, user: Curator) -> JsonResponse:
    """Record that two clusters differ, so that merging them is not suggested again."""
    entry = store.cluster_actions.reject(cluster, body.other, actor=user.name, because=body.because)
    return _decision(store, entry, cluster)


@router.post("/clusters/{cluster}/promote", response_model=schemas.Promotion)
def promote_cluster(
    cluster: ClusterId, body: requests.PromoteIn, store: StoreDep, catalog: CatalogDep, user: Curator
) -> JsonResponse:
    """Make a signature file from a cluster and check it like `triage catalog check`. `draft`: change nothing."""
    draft = cluster_queries.draft_signature(store, catalog, cluster, body.signature, body.title)
    entry = None if body.draft else store.cluster_actions.promote(cluster, body.signature, actor=user.name)
    return JsonResponse(
        {
            "path": draft.path,
            "yaml": draft.yaml,
            "problems": list(draft.problems),
            "conflicts": list(draft.conflicts),
            "entry": entry,
        }
    )


@router.post("/incidents/{incident}/assign", response_model=schemas.Decision)
def assign_incident(incident: ClusterId, body: requests.AssignIn, store: StoreDep, user: Curator) -> JsonResponse:
    """Move the unknown failure of an incident into another cluster, or into a new one."""
    number = store.incidents.find_number(incident)
    entry, target = store.cluster_actions.assign(number, body.cluster, actor=user.name, because=body.because)
    return _decision(store, entry, target)


@router.get("/audit", response_model=schemas.AuditList)
def list_audit(
    store: StoreDep,
    _: Curator,
    subject: Annotated[str | None, Query(max_length=100, description="id of a cluster or an incident")] = None,
    before: Annotated[int | None, Query(ge=1, le=1 << 53)] = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> JsonResponse:
    """List who changed what, latest first."""
    entries = store.audit.list_entries(subject=subject or None, limit=limit, before=before)
    cursor = entries[-1].id if len(entries) == limit else None
    return JsonResponse({"next": cursor, "entries": [rendered.entry_as_dict(entry) for entry in entries]})


@router.post("/audit/{entry}/undo", response_model=schemas.Decision)
def undo(entry: Annotated[int, Path(ge=1, le=1 << 53)], store: StoreDep, user: Curator) -> JsonResponse:
    """Undo a decision. Later decisions that build on it must be undone first."""
    new_entry = store.cluster_actions.undo(entry, actor=user.name)
    return _decision(store, new_entry, store.audit.list_entries(limit=1, before=new_entry + 1)[0].subject)
