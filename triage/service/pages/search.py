"""Search: signatures, guides and incidents with the words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from triage.model.store import Incident
from triage.service import queries
from triage.service.deps import TheCatalog, TheStore, Viewer
from triage.service.pages.show import both, page

router = APIRouter()


@dataclass(frozen=True, slots=True)
class Known:
    """A signature or a guide."""

    kind: str
    id: str
    title: str


@dataclass(frozen=True, slots=True)
class Hit:
    """An incident with the text around the words; the pieces are (text, is it a word that was looked for)."""

    incident: Incident
    pieces: tuple[tuple[str, bool], ...]


@dataclass(frozen=True, slots=True)
class Search:
    """What has the words."""

    words: str
    catalog: tuple[Known, ...]
    incidents: tuple[Hit, ...]


@both(router, "/search")
def search(
    request: Request, store: TheStore, catalog: TheCatalog, _: Viewer, q: Annotated[str, Query(max_length=400)] = ""
) -> Response:
    """Words in any order; the last may be a beginning; in double quotes they stay together."""
    found = queries.search(store, catalog, q)
    hits = tuple(Hit(hit.incident, pieces(hit.snippet)) for hit in found.incidents)
    return page(request, "search.html", Search(q, tuple(Known(*item) for item in found.catalog), hits))


def pieces(snippet: str) -> tuple[tuple[str, bool], ...]:
    """A snippet cut at the marks of the store: words found stand between \\x02 and \\x03."""
    out: list[tuple[str, bool]] = []
    for number, part in enumerate(snippet.split("\x02")):
        word, mark, rest = part.partition("\x03")
        out += [(word, True), (rest, False)] if mark and number else [(part, False)]
    return tuple((text, own) for text, own in out if text)
