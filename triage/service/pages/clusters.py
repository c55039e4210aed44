"""The inbox of unknown failures, the page of a cluster, and the decisions of curators."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from fastapi import APIRouter, Form, Query, Request, Response

from triage.base.errors import OptionError
from triage.catalog.wording_draft import WordingDraft
from triage.model.store import AuditEntry, Cluster, Incident
from triage.render.clusters import trend
from triage.service import cluster_queries
from triage.service.api.clusters import State
from triage.service.api.responses import attachment
from triage.service.dependencies import CatalogDep, Curator, StoreDep, Viewer
from triage.service.pages.evidence import shorten
from triage.service.pages.rendering import page_and_json, redirect_with_notice, render_page

router = APIRouter()
SHOWN_STATES: tuple[str, ...] = ("waiting", "named", "ignored", "promoted", "all")
ReasonForm = Annotated[str, Form(max_length=2000)]
ShortQuery = Annotated[str, Query(max_length=200)]


@dataclass(frozen=True, slots=True)
class InboxView:
    """Clusters, growing ones first, by cluster id: `trends` of this week, and near signatures in `wordings`."""

    state: str
    states: tuple[str, ...]
    clusters: tuple[Cluster, ...]
    trends: dict[str, str]
    wordings: dict[str, str]


@dataclass(frozen=True, slots=True)
class Exemplar:
    """Stored lines of a fingerprint, and the incident that they are from."""

    key: str
    incident: str
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SimilarCluster:
    """A cluster that may be the same: its similarity (0 to 1), and the words that only one of the two has."""

    cluster: Cluster
    score: float
    only_here: tuple[str, ...]
    only_there: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ClusterView:
    """One cluster. `reasons` say why a fingerprint is in it, `note` why there are no similar clusters.

    `wordings`: signatures that its lines look like a new wording of, with the drafted change.
    """

    cluster: Cluster
    trend: str
    exemplars: tuple[Exemplar, ...]
    members: tuple[Incident, ...]
    log: tuple[AuditEntry, ...]
    reasons: Mapping[str, str]
    near: tuple[SimilarCluster, ...]
    note: str
    wordings: tuple[WordingDraft, ...]


@dataclass(frozen=True, slots=True)
class PromotionView:
    """The draft of a signature for a cluster; None until there is an id. `refused` says why the id is invalid."""

    cluster: Cluster
    signature: str
    title: str
    draft: cluster_queries.SignatureDraft | None
    refused: str
    hint: str


@page_and_json(router, "/inbox")
def show_inbox(request: Request, store: StoreDep, catalog: CatalogDep, _: Viewer, state: State = "waiting") -> Response:
    """Show the clusters of failures that no signature matches."""
    clusters = tuple(cluster_queries.list_clusters(store, state, limit=200))
    trends = {cluster.id: trend(cluster) for cluster in clusters}
    wordings = cluster_queries.describe_new_wordings(catalog, clusters)
    return render_page(request, "inbox.html", InboxView(state, SHOWN_STATES, clusters, trends, wordings))


@router.post("/inbox/merge")
def merge_selected(
    store: StoreDep,
    user: Curator,
    cluster: Annotated[list[str], Form()] = [],  # noqa: B006
    because: ReasonForm = "",
) -> Response:
    """Merge the selected clusters."""
    if len(cluster) < 2:
        raise OptionError("merging needs two clusters", hint="select the clusters to merge")
    _, merged = store.cluster_actions.merge(cluster[:200], actor=user.name, because=because)
    return _redirect(merged, "merged")


@router.get("/clusters/{cluster}/signature.yaml")
def download_signature(
    cluster: str, store: StoreDep, catalog: CatalogDep, _: Curator, signature: ShortQuery = "", title: ShortQuery = ""
) -> Response:
    """Return the signature file for a catalog."""
    draft = cluster_queries.draft_signature(store, catalog, cluster, signature.strip(), title, check=False)
    return attachment(draft.yaml, draft.path.replace("/", "."))


@page_and_json(router, "/clusters/{cluster}/promote")
def show_promotion(
    request: Request,
    cluster: str,
    store: StoreDep,
    catalog: CatalogDep,
    _: Curator,
    signature: ShortQuery = "",
    title: ShortQuery = "",
) -> Response:
    """Draft the signature of this cluster and check it like `triage catalog check`."""
    cluster_ = store.clusters.get(cluster)
    draft, refused, hint = None, "", ""
    if signature.strip():
        try:
            draft = cluster_queries.draft_signature(store, catalog, cluster_.id, signature.strip(), title)
        except OptionError as error:
            refused, hint = error.message, error.hint
    return render_page(request, "promote.html", PromotionView(cluster_, signature.strip(), title, draft, refused, hint))


@router.post("/clusters/{cluster}/promote")
def promote(
    cluster: str,
    store: StoreDep,
    catalog: CatalogDep,
    user: Curator,
    signature: Annotated[str, Form(max_length=200)],
    title: Annotated[str, Form(max_length=200)] = "",
) -> Response:
    """Mark the cluster as promoted to this signature."""
    cluster_queries.draft_signature(store, catalog, cluster, signature.strip(), title, check=False)
    store.cluster_actions.promote(cluster, signature.strip(), actor=user.name)
    return _redirect(store.clusters.find_id(cluster), "promoted")


@page_and_json(router, "/clusters/{cluster}")
def show_cluster(request: Request, cluster: str, store: StoreDep, catalog: CatalogDep, _: Viewer) -> Response:
    """Show fingerprints, lines, incidents and decisions of a cluster. A merged id shows its new cluster."""
    details = cluster_queries.get_cluster(store, catalog, cluster)
    view = ClusterView(
        cluster=details.cluster,
        trend=trend(details.cluster),
        exemplars=tuple(
            Exemplar(key, incident, tuple(shorten(fact.excerpt or fact.text) for fact in facts))
            for key, incident, facts in details.exemplars
        ),
        members=details.members,
        log=details.log,
        reasons=details.reasons,
        near=tuple(SimilarCluster(other, item.score, item.only_here, item.only_there) for item, other in details.near),
        note=details.note,
        wordings=details.wordings,
    )
    return render_page(request, "cluster.html", view)


@router.post("/clusters/{cluster}/name")
def name_cluster(
    cluster: str,
    store: StoreDep,
    user: Curator,
    name: Annotated[str, Form(max_length=200)],
    note: Annotated[str, Form(max_length=4000)] = "",
) -> Response:
    """Set the name and the note of a cluster."""
    store.cluster_actions.name(cluster, name, actor=user.name, note=note)
    return _redirect(store.clusters.find_id(cluster), "named")


@router.post("/clusters/{cluster}/merge")
def merge_or_reject(
    cluster: str,
    store: StoreDep,
    user: Curator,
    other: Annotated[str, Form(max_length=300)],
    decision: Annotated[Literal["one", "apart"], Form()] = "one",
    because: ReasonForm = "",
) -> Response:
    """Merge two clusters, or record that they differ. The other one is an id, a name or an address."""
    if decision == "apart":
        store.cluster_actions.reject(cluster, _cluster_in(other), actor=user.name, because=because)
        return _redirect(store.clusters.find_id(cluster), "apart")
    _, merged = store.cluster_actions.merge([cluster, _cluster_in(other)], actor=user.name, because=because)
    return _redirect(merged, "merged")


@router.post("/clusters/{cluster}/split")
def split_cluster(
    cluster: str,
    store: StoreDep,
    user: Curator,
    key: Annotated[list[str], Form()] = [],  # noqa: B006
    because: ReasonForm = "",
) -> Response:
    """Move the selected fingerprints into a new cluster."""
    if not key:
        raise OptionError("no fingerprint is selected", hint="select those to split off, and leave some")
    _, new = store.cluster_actions.split(cluster, key[:500], actor=user.name, because=because)
    return _redirect(new, "split")


@router.post("/clusters/{cluster}/ignore")
def ignore_cluster(cluster: str, store: StoreDep, user: Curator, because: ReasonForm = "") -> Response:
    """Remove the cluster from the inbox."""
    store.cluster_actions.ignore(cluster, actor=user.name, because=because)
    return _redirect(store.clusters.find_id(cluster), "ignored")


@router.post("/clusters/{cluster}/reopen")
def reopen_cluster(cluster: str, store: StoreDep, user: Curator, because: ReasonForm = "") -> Response:
    """Put the cluster back into the inbox."""
    store.cluster_actions.reopen(cluster, actor=user.name, because=because)
    return _redirect(store.clusters.find_id(cluster), "reopened")


def _cluster_in(text: str) -> str:
    """Return the id or name in a pasted text, which may also be the address of a cluster's page."""
    return text.strip().rpartition("/clusters/")[2].split("?")[0].split("#")[0]


def _redirect(cluster: str, notice: str) -> Response:
    return redirect_with_notice(f"/clusters/{cluster}", notice)
