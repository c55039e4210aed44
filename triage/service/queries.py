"""What the API and the pages show. Here are the questions, in terms of the store; routes only put the answers into
words.

Raises NotFoundError for what is not there and OptionError for what cannot be asked, with the next step.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from triage.base.errors import NotFoundError, OptionError
from triage.catalog.model import Catalog, Signature
from triage.clusters.model import Near
from triage.model.evidence import Evidence
from triage.model.store import Cluster, Entry, Incident, Remembered
from triage.render import incidents as shown
from triage.store import Store, meaning, pages
from triage.store.clusters import STATES
from triage.store.codec import placed
from triage.store.search import Filter, Hit, Sums

_index: list[tuple[Catalog, pages.Words]] = []
_checks: list[tuple[Catalog, dict[str, tuple[dict[str, Any], ...]]]] = []
MOST_CHECKS = 100


@dataclass(frozen=True, slots=True)
class Listing:
    """One page of a list. `next` is what `after` must be for the next one, None on the last."""

    incidents: tuple[Incident, ...]
    total: int
    next: str | None

    def as_json(self) -> dict[str, Any]:
        """As the API gives it."""
        return {"total": self.total, "next": self.next, "incidents": [shown.as_dict(item) for item in self.incidents]}


def listing(store: Store, wanted: Filter, *, limit: int = 50, after: str | None = None) -> Listing:
    """The incidents that a filter lets through, the latest failure first. Raises OptionError for a cursor that is none."""
    found = store.search.listed(wanted, limit=limit + 1, after=after)
    more = len(found) > limit
    found = found[:limit]
    return Listing(tuple(found), store.search.count(wanted), store.search.cursor(found[-1]) if more else None)


def incident_as_json(found: Remembered) -> dict[str, Any]:
    """The report of `triage.diagnosis/1`, and below `incident` what the store knows besides, with feedback and history."""
    return shown.remembered_as_dict(found, found.diagnosis)


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of evidence with its number and the signature (or cluster) that it is for."""

    number: int
    of: str | None
    fact: Evidence


def evidence(found: Remembered) -> list[Piece]:
    """All evidence of an incident: findings in their order, each with its facts."""
    facts = [(item.finding, fact) for item in placed(found.diagnosis) for fact in item.finding.evidence]
    return [Piece(number, finding.signature or finding.cluster, fact) for number, (finding, fact) in enumerate(facts)]


def piece(found: Remembered, number: int) -> Piece:
    """One of them. Raises NotFoundError."""
    pieces = evidence(found)
    if not 0 <= number < len(pieces):
        raise NotFoundError(
            f"{found.incident.id} has no evidence {number}", hint=f"it has {len(pieces)}, counted from 0"
        )
    return pieces[number]


@dataclass(frozen=True, slots=True)
class Context:
    """Lines of a source from `line` on; `marked` are the first and the last line of the evidence itself."""

    source: str
    line: int
    marked: tuple[int, int]
    lines: tuple[str, ...]


def context(store: Store, found: Remembered, number: int, *, around: int = 10) -> Context:
    """The lines around a piece of evidence, kept when it was uploaded; else the evidence alone."""
    fact = piece(found, number).fact
    first = fact.line or 1
    last = max(first, fact.end_line or first)
    document = store.beside.document(store.incidents.number(found.incident.id), "context") or {"sources": {}}
    for part in document["sources"].get(fact.source, ()):
        end = part["line"] + len(part["lines"]) - 1
        if part["line"] <= first <= end:
            begin, stop = max(part["line"], first - around), min(end, last + around)
            return Context(
                fact.source, begin, (first, last), tuple(part["lines"][begin - part["line"] : stop - part["line"] + 1])
            )
    return Context(fact.source, first, (first, last), tuple((fact.excerpt or fact.text).split("\n")))


def document(store: Store, wanted: str, kind: str) -> dict[str, Any]:
    """A document beside an incident: `flight`, `environment`. Raises NotFoundError."""
    found = store.beside.document(store.incidents.number(wanted), kind)
    if found is None:
        hint = "it is made when a job is uploaded or ingested through the service, and for a flight matrix there must be dumps"
        raise NotFoundError(f"{wanted} has no {kind} document", hint=hint)
    return found


def signature(catalog: Catalog, wanted: str) -> Signature:
    """A signature of the catalog. Raises NotFoundError."""
    found = next((item for item in catalog.signatures if item.id == wanted), None)
    if found is None:
        raise NotFoundError(f"the catalog has no signature {wanted}", hint="GET /api/v1/signatures lists them")
    return found


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found. `catalog` are (kind, id, title) of signatures and guides."""

    words: str
    catalog: tuple[tuple[str, str, str], ...]
    incidents: tuple[Hit, ...]


def search(store: Store, catalog: Catalog, words: str, *, limit: int = 20) -> Found:
    """Signatures, guides and incidents with the words."""
    if not words.strip():
        return Found(words, (), ())
    numbers, hits = meaning.everywhere(_words(catalog), store.search, words, limit)
    named = [catalog.signatures[number] for number in numbers]
    others = tuple(("guide" if item.role == "guide" else "signature", item.id, item.title) for item in named)
    return Found(words, others, tuple(hits))


def _words(catalog: Catalog) -> pages.Words:
    """The catalog's words, kept until it is another catalog."""
    if not _index or _index[0][0] is not catalog:
        _index[:] = [(catalog, meaning.index(catalog.signatures))]
    return _index[0][1]


def sums(store: Store, wanted: Filter) -> Sums:
    """Sums by verdict, signature, host, device and week."""
    return store.search.sums(wanted)


@dataclass(frozen=True, slots=True)
class ClusterPage:
    """Everything about one cluster. `exemplars` are (fingerprint, incident, facts), `reasons` why each fingerprint is
    in it.
    """

    cluster: Cluster
    exemplars: tuple[tuple[str, str, tuple[Evidence, ...]], ...]
    members: tuple[Incident, ...]
    log: tuple[Entry, ...]
    reasons: Mapping[str, str]
    near: tuple[tuple[Near, Cluster], ...] = ()
    note: str = ""


def cluster(store: Store, wanted: str) -> ClusterPage:
    """A cluster, past merges. Raises NotFoundError."""
    found = store.clusters.get(wanted)
    members = store.search.listed(Filter(cluster=found.id), limit=20)
    near, note = _near(store, found.id)
    return ClusterPage(
        cluster=found,
        exemplars=tuple(store.clusters.exemplars(found.id)),
        members=tuple(members),
        log=tuple(store.audit.listed(subject=found.id)),
        reasons=store.clusters.reasons(found.id),
        near=tuple(near),
        note=note,
    )


def _near(store: Store, cluster: str) -> tuple[list[tuple[Near, Cluster]], str]:
    """Clusters that it could be merged with; without scikit-learn a note says so."""
    from triage.clusters.suggest import tfidf

    try:
        found = store.clusters.near(cluster, similarity=tfidf)
    except OptionError as error:
        return [], f"{error.message} ({error.hint})"
    return [(item, store.clusters.get(item.cluster)) for item in found], ""


def clusters(store: Store, state: str, *, limit: int = 50) -> list[Cluster]:
    """By what matters. `state` is one of the states, `waiting` (open and named) or `all`."""
    states: Sequence[str] = {"waiting": ("open", "named"), "all": STATES}.get(state, (state,))
    return store.clusters.listed(states=states, limit=limit)


@dataclass(frozen=True, slots=True)
class Draft:
    """A signature made of a cluster: where the file belongs, its text, what the check says, what its pattern matches
    besides.
    """

    path: str
    yaml: str
    problems: tuple[dict[str, Any], ...]
    conflicts: tuple[str, ...]


def draft(
    store: Store, catalog: Catalog, wanted: str, identifier: str, title: str = "", *, checked: bool = True
) -> Draft:
    """What `triage clusters promote` would write, and what the check says of it. Raises OptionError for an id that is
    taken or cannot be used.
    """
    from triage.catalog.promote import promote

    found = store.clusters.get(wanted)
    members = [fact for _, _, facts in store.clusters.exemplars(found.id) for fact in facts]
    words = (title or found.name or found.title)[:80].strip()
    with tempfile.TemporaryDirectory(prefix="triage-draft-") as scratch:
        directory = Path(scratch) / "signatures"
        directory.mkdir()
        path, made = promote(
            identifier,
            words,
            found.id,
            members,
            others(store, found.id),
            directory,
            [item.id for item in catalog.signatures],
        )
        text = path.read_text(encoding="utf-8")
        problems = _checked(catalog, path, text) if checked else ()
    return Draft(path.relative_to(directory).as_posix(), text, problems, made.conflicts)


def _checked(catalog: Catalog, path: Path, text: str) -> tuple[dict[str, Any], ...]:
    """What the check says of a file, kept by its text until it is another catalog: it reads all of the catalog."""
    from triage.catalog.check import check

    if not _checks or _checks[0][0] is not catalog:
        _checks[:] = [(catalog, {})]
    kept = _checks[0][1]
    if text not in kept:
        if len(kept) >= MOST_CHECKS:
            kept.clear()
        told = [problem for problem in check([path]) if problem.severity != "info"]
        kept[text] = tuple(
            {"severity": item.severity, "line": item.line, "message": item.message, "hint": item.hint} for item in told
        )
    return kept[text]


def others(store: Store, cluster: str) -> list[Evidence]:
    """Facts of the other clusters; those that share the most words with this one first."""
    mine = {word for key in store.clusters.get(cluster).keys for word in key.headline.split()}
    near = sorted(store.clusters.keys(), key=lambda item: (-len(mine & set(item[0].headline.split())), item[0].key))
    names = list(dict.fromkeys(name for _, name in near if name != cluster))[:50]
    return [fact for name in names for _, _, facts in store.clusters.exemplars(name) for fact in facts]


@dataclass(frozen=True, slots=True)
class Fresh:
    """How fresh everything is; times are seconds. Every page shows it."""

    version: str
    catalog: str
    started_at: float
    incidents: int
    last_ingest: float | None
    tasks: dict[str, int]
    store_version: int
    store_bytes: int


def fresh(store: Store, catalog: Catalog, started: float) -> Fresh:
    """How fresh store, catalog and program are."""
    import triage
    from triage.store import care

    told = care.facts(store.connections)
    return Fresh(
        version=triage.__version__,
        catalog=catalog.version,
        started_at=started,
        incidents=int(str(told["incident"])),
        last_ingest=store.incidents.last_seen(),
        tasks=store.tasks.counts(),
        store_version=int(str(told["version"])),
        store_bytes=int(str(told["bytes"])),
    )
