"""What the API and the pages show of clusters, and the signature that a cluster can become."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from triage.base.errors import OptionError
from triage.catalog.model import Catalog
from triage.catalog.near_misses import NearMissIndex, describe_near_misses
from triage.catalog.wording_draft import WordingDraft, draft_wordings
from triage.clusters.model import NearestCluster
from triage.model import AuditEntry, Cluster, Evidence, Incident
from triage.store import Store
from triage.store.clusters import STATES
from triage.store.search import Filter

MAX_CACHED_CHECKS = 100
MAX_CACHED_WORDINGS = 10_000
# For the last catalog, which is the same object until the catalog changes: near misses, and the problems of each text.
_wording_cache: list[tuple[Catalog, NearMissIndex, dict[str, str]]] = []
_check_cache: list[tuple[Catalog, dict[str, tuple[dict[str, Any], ...]]]] = []


@dataclass(frozen=True, slots=True)
class ClusterDetails:
    """Everything about one cluster.

    `exemplars` are (fingerprint, incident, facts), `reasons` say why each fingerprint is in it, and `note` says why
    there are no similar clusters in `near`. `wordings`: signatures that its lines look like a new wording of.
    """

    cluster: Cluster
    exemplars: tuple[tuple[str, str, tuple[Evidence, ...]], ...]
    members: tuple[Incident, ...]
    log: tuple[AuditEntry, ...]
    reasons: Mapping[str, str]
    near: tuple[tuple[NearestCluster, Cluster], ...] = ()
    note: str = ""
    wordings: tuple[WordingDraft, ...] = ()


def get_cluster(store: Store, catalog: Catalog, name: str) -> ClusterDetails:
    """Return a cluster by id or name, following merges. Raises NotFoundError."""
    cluster = store.clusters.get(name)
    near, note = _similar_clusters(store, cluster.id)
    exemplars = tuple(store.clusters.list_exemplars(cluster.id))
    texts = list(dict.fromkeys(fact.text for _, _, facts in exemplars for fact in facts))
    return ClusterDetails(
        cluster=cluster,
        exemplars=exemplars,
        members=tuple(store.search.list_incidents(Filter(cluster=cluster.id), limit=20)),
        log=tuple(store.audit.list_entries(subject=cluster.id)),
        reasons=store.clusters.list_reasons(cluster.id),
        near=near,
        note=note,
        wordings=draft_wordings(texts, _near_misses_of(catalog)[0]),
    )


def describe_new_wordings(catalog: Catalog, clusters: Sequence[Cluster]) -> dict[str, str]:
    """Return, by cluster id, the sentence that says which signature a cluster looks like a new wording of."""
    index, known = _near_misses_of(catalog)
    sentences: dict[str, str] = {}
    for cluster in clusters:
        if cluster.title not in known:
            if len(known) >= MAX_CACHED_WORDINGS:
                known.clear()
            misses = index.find(cluster.title)
            known[cluster.title] = describe_near_misses(misses) if misses else ""
        if known[cluster.title]:
            sentences[cluster.id] = known[cluster.title]
    return sentences


def _near_misses_of(catalog: Catalog) -> tuple[NearMissIndex, dict[str, str]]:
    """Return the index of the catalog and the sentences by title; both are kept until the catalog changes."""
    if not _wording_cache or _wording_cache[0][0] is not catalog:
        _wording_cache[:] = [(catalog, NearMissIndex(catalog.signatures), {})]
    return _wording_cache[0][1:]


def _similar_clusters(store: Store, cluster: str) -> tuple[tuple[tuple[NearestCluster, Cluster], ...], str]:
    """Return similar clusters, or a note that scikit-learn is missing."""
    from triage.clusters.suggestions import tfidf

    try:
        near = store.clusters.find_near(cluster, similarity=tfidf)
    except OptionError as error:
        return (), f"{error.message} ({error.hint})"
    return tuple((item, store.clusters.get(item.cluster)) for item in near), ""


def list_clusters(store: Store, state: str, *, limit: int = 50) -> list[Cluster]:
    """Return clusters, growing ones first. `state` is a state, `waiting` (open or named) or `all`."""
    states: Sequence[str] = {"waiting": ("open", "named"), "all": STATES}.get(state, (state,))
    return store.clusters.list_clusters(states=states, limit=limit)


@dataclass(frozen=True, slots=True)
class SignatureDraft:
    """A signature made from a cluster: the file, its text, the findings of the check, and other clusters it matches."""

    path: str
    yaml: str
    problems: tuple[dict[str, Any], ...]
    conflicts: tuple[str, ...]


def draft_signature(
    store: Store, catalog: Catalog, cluster_id: str, signature_id: str, title: str = "", *, check: bool = True
) -> SignatureDraft:
    """Return what `triage clusters promote` would write. Raises OptionError for an invalid or used signature id."""
    from triage.catalog.promote import promote_cluster

    cluster = store.clusters.get(cluster_id)
    with tempfile.TemporaryDirectory(prefix="triage-draft-") as scratch:
        directory = Path(scratch) / "signatures"
        directory.mkdir()
        path, made = promote_cluster(
            signature_id,
            (title or cluster.name or cluster.title)[:80].strip(),
            cluster.id,
            [fact for _, _, facts in store.clusters.list_exemplars(cluster.id) for fact in facts],
            store.clusters.list_facts_of_others(cluster),
            directory,
            [item.id for item in catalog.signatures],
        )
        text = path.read_text(encoding="utf-8")
        problems = _check_signature(catalog, path, text) if check else ()
    return SignatureDraft(path.relative_to(directory).as_posix(), text, problems, made.conflicts)


def _check_signature(catalog: Catalog, path: Path, text: str) -> tuple[dict[str, Any], ...]:
    """Return what the check finds in a file. Cached by text: a check reads the whole catalog."""
    from triage.catalog.check import check_files

    if not _check_cache or _check_cache[0][0] is not catalog:
        _check_cache[:] = [(catalog, {})]
    cache = _check_cache[0][1]
    if text not in cache:
        if len(cache) >= MAX_CACHED_CHECKS:
            cache.clear()
        names = ("severity", "line", "message", "hint")
        problems = [problem for problem in check_files([path]) if problem.severity != "info"]
        cache[text] = tuple({name: getattr(problem, name) for name in names} for problem in problems)
    return cache[text]
