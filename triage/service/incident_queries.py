"""What the API and the pages show of incidents and the catalog.

Raises NotFoundError for what is not there and OptionError for invalid requests, both with a hint.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from fastapi import Query, Request
from pydantic import BeforeValidator, Field

import triage
from triage.base.errors import NotFoundError, OptionError
from triage.catalog.model import Catalog, Signature
from triage.model import Evidence, Incident, StoredIncident
from triage.render import incidents as rendered
from triage.render.phrases import format_count
from triage.store import Store, fts_index, maintenance, meaning_search
from triage.store.codec import place_findings
from triage.store.search import FACT, Filter, SearchHit

Text = Annotated[str | None, Query(max_length=200)]
Verdict = Annotated[
    Literal["known", "unknown", "inconclusive", "clean"] | None, BeforeValidator(lambda value: value or None)
]
Rank = Annotated[
    Annotated[int, Field(ge=0, le=10_000_000)] | None, BeforeValidator(lambda value: None if value == "" else value)
]
MOST_FACTS = 10
YEAR_10000 = 253_402_300_800.0  # seconds
TIME_UNITS = {"m": 60, "h": 3600, "d": 86_400, "w": 604_800}

# The full-text index of the last catalog, which is the same object until the catalog changes.
_catalog_index_cache: list[tuple[Catalog, fts_index.TextIndex]] = []


def incident_filter(
    request: Request,
    verdict: Verdict = None,
    signature: Text = None,
    cluster: Text = None,
    cause: Annotated[
        str | None, Query(max_length=200, description="a signature or cluster that is the root cause")
    ] = None,
    domain: Text = None,
    host: Text = None,
    rank: Rank = None,
    since: Annotated[
        str | None, Query(max_length=40, description="7d, 12h, 2w, 2026-11-21 or 2026-11-21T03:00Z")
    ] = None,
    until: Annotated[str | None, Query(max_length=40, description="same forms as since")] = None,
    job: Annotated[str | None, Query(max_length=200, description="part of a job's name or path")] = None,
    q: Annotated[str | None, Query(max_length=400, description="words in titles and log lines")] = None,
    device: Annotated[
        str | None, Query(max_length=200, description="device of the root cause; give its host too")
    ] = None,
    wrong: Annotated[bool, Query(description="only incidents whose diagnosis somebody marked as wrong")] = False,
) -> Filter:
    """Return the filter of a request (a FastAPI dependency). Empty values, as forms send them, mean no filter.

    Each parameter `fact.NAME` is a fact of the job.
    """
    now = time.time()
    return Filter(
        verdict=verdict,
        signature=signature or None,
        cluster=cluster or None,
        cause=cause or None,
        domain=domain or None,
        host=host or None,
        rank=rank,
        since=parse_time(since, now) if since else None,
        until=parse_time(until, now) if until else None,
        job=job or None,
        text=q or None,
        wrong=wrong,
        facts=read_facts(request),
        device=device or None,
    )


def read_facts(request: Request) -> tuple[tuple[str, str], ...]:
    """Return the facts that the parameters `fact.NAME` ask for. Raises OptionError for too many."""
    pairs = request.query_params.multi_items()
    facts = sorted({(name.removeprefix(FACT), text) for name, text in pairs if name.startswith(FACT) and text})
    if len(facts) > MOST_FACTS or any(len(text) > 250 for pair in facts for text in pair):
        raise OptionError(f"there are more than {MOST_FACTS} facts, or a long one", hint="filter by fewer facts")
    return tuple(facts)


def parse_time(text: str, now: float) -> float:
    """Return `7d`, `12h`, `2w`, a date or a time as seconds; without a zone it is UTC. Raises OptionError.

    A span ends at the last full minute, so that requests of the same minute share their counts.
    """
    text = text.strip()
    if text[-1:] in TIME_UNITS and text[:-1].isascii() and text[:-1].isdigit() and len(text) < 7:
        return now // 60 * 60 - int(text[:-1]) * TIME_UNITS[text[-1]]
    try:
        moment = datetime.fromisoformat(text.replace(" ", "+") if "T" in text else text)
        seconds = (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        seconds = math.nan
    if not -YEAR_10000 < seconds < YEAR_10000:
        raise OptionError(f"{text!r} is not a time", hint="write 7d, 12h, 2w, 2026-11-21 or 2026-11-21T03:00Z")
    return seconds


@dataclass(frozen=True, slots=True)
class IncidentPage:
    """One page of a list of incidents. `next` is the cursor for `after`, None on the last page."""

    incidents: tuple[Incident, ...]
    total: int
    next: str | None

    def as_json(self) -> dict[str, Any]:
        """Return the page as the API does."""
        return {
            "total": self.total,
            "next": self.next,
            "incidents": [rendered.as_dict(item) for item in self.incidents],
        }


def list_incidents(store: Store, query: Filter, *, limit: int = 50, after: str | None = None) -> IncidentPage:
    """Return incidents that match a filter, latest failure first. Raises OptionError for an invalid cursor."""
    incidents = store.search.list_incidents(query, limit=limit + 1, after=after)
    cursor = store.search.cursor_after(incidents[limit - 1]) if len(incidents) > limit else None
    return IncidentPage(tuple(incidents[:limit]), store.search.count_incidents(query), cursor)


@dataclass(frozen=True, slots=True)
class NumberedEvidence:
    """A piece of evidence with its number and the signature or cluster of its finding."""

    number: int
    finding: str | None
    fact: Evidence


def list_evidence(incident: StoredIncident) -> list[NumberedEvidence]:
    """Return all evidence of an incident: findings in their order, each with its facts."""
    facts = [(item.finding, fact) for item in place_findings(incident.diagnosis) for fact in item.finding.evidence]
    return [
        NumberedEvidence(number, finding.signature or finding.cluster, fact)
        for number, (finding, fact) in enumerate(facts)
    ]


@dataclass(frozen=True, slots=True)
class SourceLines:
    """Lines of a source from number `line` on; `marked` are the first and last line of the evidence itself."""

    source: str
    line: int
    marked: tuple[int, int]
    lines: tuple[str, ...]


def lines_around(store: Store, incident: StoredIncident, number: int, *, around: int = 10) -> SourceLines:
    """Return the lines around a piece of evidence if they were stored, else the evidence alone.

    Raises NotFoundError for a number that does not exist.
    """
    pieces = list_evidence(incident)
    if not 0 <= number < len(pieces):
        raise NotFoundError(
            f"{incident.incident.id} has no evidence {number}",
            hint=f"it has {format_count(len(pieces), 'piece')} of evidence, numbered from 0",
        )
    fact = pieces[number].fact
    first = fact.line or 1
    last = max(first, fact.end_line or first)
    document = store.service_data.get_document(store.incidents.find_number(incident.incident.id), "context") or {
        "sources": {}
    }
    for excerpt in document["sources"].get(fact.source, ()):
        start, lines = excerpt["line"], excerpt["lines"]
        if start <= first < start + len(lines):
            begin, end = max(start, first - around), min(start + len(lines) - 1, last + around)
            return SourceLines(fact.source, begin, (first, last), tuple(lines[begin - start : end - start + 1]))
    return SourceLines(fact.source, first, (first, last), tuple((fact.excerpt or fact.text).split("\n")))


def get_document(store: Store, incident: str, kind: str) -> dict[str, Any]:
    """Return a document stored with an incident: `flight` or `environment`. Raises NotFoundError."""
    document = store.service_data.get_document(store.incidents.find_number(incident), kind)
    if document is None:
        hint = "it exists for jobs that were sent to this service; a flight matrix also needs Flight Recorder dumps"
        raise NotFoundError(f"{incident} has no {kind} document", hint=hint)
    return document


def get_signature(catalog: Catalog, signature_id: str) -> Signature:
    """Return a signature of the catalog. Raises NotFoundError."""
    signature = next((item for item in catalog.signatures if item.id == signature_id), None)
    if signature is None:
        raise NotFoundError(
            f"the catalog has no signature {signature_id}", hint="GET /api/v1/signatures lists the signatures"
        )
    return signature


@dataclass(frozen=True, slots=True)
class SearchResults:
    """Results of a search. `catalog` are (kind, id, title) of signatures and guides."""

    catalog: tuple[tuple[str, str, str], ...]
    incidents: tuple[SearchHit, ...]


def search(store: Store, catalog: Catalog, text: str, *, limit: int = 20) -> SearchResults:
    """Return signatures, guides and incidents with these words."""
    if not text.strip():
        return SearchResults((), ())
    if not _catalog_index_cache or _catalog_index_cache[0][0] is not catalog:
        _catalog_index_cache[:] = [(catalog, meaning_search.build_index(catalog.signatures))]
    numbers, hits = meaning_search.search_text(_catalog_index_cache[0][1], store.search, text, limit)
    signatures = [catalog.signatures[number] for number in numbers]
    rows = tuple(("guide" if item.role == "guide" else "signature", item.id, item.title) for item in signatures)
    return SearchResults(rows, tuple(hits))


@dataclass(frozen=True, slots=True)
class ServiceStatus:
    """How current the store, the catalog and the program are. Times are seconds."""

    version: str
    catalog: str
    started_at: float
    incidents: int
    last_ingest: float | None
    tasks: dict[str, int]
    store_version: int
    store_bytes: int


def service_status(store: Store, catalog: Catalog, started_at: float) -> ServiceStatus:
    """Return how current everything is."""
    facts = maintenance.summarize(store.connections)
    return ServiceStatus(
        version=triage.__version__,
        catalog=catalog.version,
        started_at=started_at,
        incidents=int(str(facts["incident"])),
        last_ingest=store.incidents.last_stored_at(),
        tasks=store.tasks.counts(),
        store_version=int(str(facts["version"])),
        store_bytes=int(str(facts["bytes"])),
    )
