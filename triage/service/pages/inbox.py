"""The inbox of unknown failures, one cluster of them, and what a curator decides. Every form is a POST that leads back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from fastapi import APIRouter, Form, Query, Request
from starlette.responses import RedirectResponse, Response

from triage.base.errors import OptionError
from triage.model.store import Cluster, Entry, Incident
from triage.render.clusters import trend
from triage.service import queries
from triage.service.api.answers import attachment
from triage.service.deps import Curator, TheCatalog, TheStore, Viewer
from triage.service.pages.evidence import shown
from triage.service.pages.show import both, page

router = APIRouter()
State = Literal["waiting", "open", "named", "ignored", "promoted", "merged", "all"]
STATES: tuple[str, ...] = ("waiting", "named", "ignored", "promoted", "all")
Because = Annotated[str, Form(max_length=2000)]
Words = Annotated[str, Query(max_length=200)]


@dataclass(frozen=True, slots=True)
class Inbox:
    """Clusters by what matters; `trends` are by their ids: incidents of the last week and whether that is more than
    before.
    """

    state: str
    states: tuple[str, ...]
    clusters: tuple[Cluster, ...]
    trends: dict[str, str]


@dataclass(frozen=True, slots=True)
class Exemplar:
    """What the store kept of a fingerprint: the incident it stood in, and the lines."""

    key: str
    incident: str
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NearBy:
    """A cluster that may be the same: how near its words are (0 to 1), and those that stand on one side only."""

    cluster: Cluster
    score: float
    only_here: tuple[str, ...]
    only_there: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ClusterPage:
    """One cluster. `reasons` say why a fingerprint is in it, `note` why nothing is near where that could not be asked."""

    cluster: Cluster
    trend: str
    exemplars: tuple[Exemplar, ...]
    members: tuple[Incident, ...]
    log: tuple[Entry, ...]
    reasons: Mapping[str, str]
    near: tuple[NearBy, ...]
    note: str


@dataclass(frozen=True, slots=True)
class Promotion:
    """A signature file made of a cluster, and what the check says of it; the draft is None until there is an id."""

    cluster: Cluster
    signature: str
    title: str
    draft: queries.Draft | None
    refused: str
    hint: str


@both(router, "/inbox")
def inbox(request: Request, store: TheStore, _: Viewer, state: State = "waiting") -> Response:
    """Failures that no signature knows."""
    found = tuple(queries.clusters(store, state, limit=200))
    return page(request, "inbox.html", Inbox(state, STATES, found, {item.id: trend(item) for item in found}))


@router.post("/inbox/merge")
def merge(store: TheStore, who: Curator, cluster: Annotated[list[str], Form()] = [], because: Because = "") -> Response:  # noqa: B006
    """Make those that were ticked one."""
    if len(cluster) < 2:
        raise OptionError("merging takes two clusters", hint="go back and tick those that are one")
    _, kept = store.moves.merge(cluster[:200], actor=who.name, because=because)
    return _done(kept, "merged")


@router.get("/clusters/{cluster}/signature.yaml")
def signature_yaml(
    cluster: str, store: TheStore, catalog: TheCatalog, _: Curator, signature: Words = "", title: Words = ""
) -> Response:
    """The signature file, to be put into a catalog."""
    made = queries.draft(store, catalog, cluster, signature.strip(), title, checked=False)
    return attachment(made.yaml, made.path.replace("/", "."))


@both(router, "/clusters/{cluster}/promote")
def promotion(
    request: Request,
    cluster: str,
    store: TheStore,
    catalog: TheCatalog,
    _: Curator,
    signature: Words = "",
    title: Words = "",
) -> Response:
    """What the signature of this cluster would be, checked as `triage catalog check` does."""
    found = store.clusters.get(cluster)
    draft, refused, hint = None, "", ""
    if signature.strip():
        try:
            draft = queries.draft(store, catalog, found.id, signature.strip(), title)
        except OptionError as error:
            refused, hint = error.message, error.hint
    return page(request, "promote.html", Promotion(found, signature.strip(), title, draft, refused, hint))


@router.post("/clusters/{cluster}/promote")
def promote(
    cluster: str,
    store: TheStore,
    catalog: TheCatalog,
    who: Curator,
    signature: Annotated[str, Form(max_length=200)],
    title: Annotated[str, Form(max_length=200)] = "",
) -> Response:
    """Remember that this signature was made of it."""
    queries.draft(store, catalog, cluster, signature.strip(), title, checked=False)
    store.moves.promote(cluster, signature.strip(), actor=who.name)
    return _done(store.clusters.id(cluster), "promoted")


@both(router, "/clusters/{cluster}")
def show(request: Request, cluster: str, store: TheStore, _: Viewer) -> Response:
    """Its fingerprints, lines, incidents, and what was decided. An id that was merged leads to where it is now."""
    found = queries.cluster(store, cluster)
    exemplars = [
        Exemplar(key, incident, tuple(shown(fact.excerpt or fact.text) for fact in facts))
        for key, incident, facts in found.exemplars
    ]
    view = ClusterPage(
        cluster=found.cluster,
        trend=trend(found.cluster),
        exemplars=tuple(exemplars),
        members=found.members,
        log=found.log,
        reasons=found.reasons,
        near=tuple(NearBy(other, item.score, item.only_here, item.only_there) for item, other in found.near),
        note=found.note,
    )
    return page(request, "cluster.html", view)


@router.post("/clusters/{cluster}/name")
def name(
    cluster: str,
    store: TheStore,
    who: Curator,
    name: Annotated[str, Form(max_length=200)],
    note: Annotated[str, Form(max_length=4000)] = "",
) -> Response:
    """Give it a name."""
    store.moves.name(cluster, name, actor=who.name, note=note)
    return _done(store.clusters.id(cluster), "named")


@router.post("/clusters/{cluster}/merge")
def merge_into(
    cluster: str,
    store: TheStore,
    who: Curator,
    other: Annotated[str, Form(max_length=300)],
    decision: Annotated[Literal["one", "apart"], Form()] = "one",
    because: Because = "",
) -> Response:
    """Make it and another one, or say that they are not; the other may be given by its address too."""
    if decision == "apart":
        store.moves.reject(cluster, _pasted(other), actor=who.name, because=because)
        return _done(store.clusters.id(cluster), "apart")
    _, kept = store.moves.merge([cluster, _pasted(other)], actor=who.name, because=because)
    return _done(kept, "merged")


@router.post("/clusters/{cluster}/split")
def split(
    cluster: str,
    store: TheStore,
    who: Curator,
    key: Annotated[list[str], Form()] = [],  # noqa: B006
    because: Because = "",
) -> Response:
    """Move the ticked fingerprints into a cluster of their own."""
    _, new = store.moves.split(cluster, key[:500], actor=who.name, because=because)
    return _done(new, "split")


@router.post("/clusters/{cluster}/ignore")
def ignore(cluster: str, store: TheStore, who: Curator, because: Because = "") -> Response:
    """Out of the inbox."""
    store.moves.ignore(cluster, actor=who.name, because=because)
    return _done(store.clusters.id(cluster), "ignored")


@router.post("/clusters/{cluster}/reopen")
def reopen(cluster: str, store: TheStore, who: Curator, because: Because = "") -> Response:
    """Back into the inbox."""
    store.moves.reopen(cluster, actor=who.name, because=because)
    return _done(store.clusters.id(cluster), "reopened")


def _pasted(text: str) -> str:
    """The id in what was pasted: an id, a name, or the address of a cluster's page."""
    return text.strip().rpartition("/clusters/")[2].split("?")[0].split("#")[0]


def _done(cluster: str, said: str) -> Response:
    return RedirectResponse(f"/clusters/{cluster}?said={said}", 303)
