"""Stats: incidents by cause, week, and hosts and devices that come back."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from triage.render.bars import Bar, weeks
from triage.service import queries
from triage.service.deps import TheStore, Viewer
from triage.service.filters import asked
from triage.service.pages.show import both, page
from triage.store.search import Count, Filter

router = APIRouter()


@dataclass(frozen=True, slots=True)
class Stats:
    """The sums of the incidents that the filter lets through."""

    incidents: int
    verdicts: tuple[Count, ...]
    signatures: tuple[Count, ...]
    hosts: tuple[Count, ...]
    devices: tuple[Count, ...]
    weeks: tuple[Bar, ...]
    feedback: tuple[tuple[str, int, int], ...]
    pictures: str


@both(router, "/stats")
def stats(request: Request, store: TheStore, _: Viewer, wanted: Annotated[Filter, Depends(asked)]) -> Response:
    """What comes back, and where."""
    sums = queries.sums(store, wanted)
    drawn = weeks(sums.weeks, wanted.until or time.time(), most=20)
    said = tuple(store.feedback.counts()[:20])
    view = Stats(sums.incidents, sums.verdicts, sums.signatures, sums.hosts, sums.devices, drawn.bars, said, drawn.svg)
    return page(request, "stats.html", view)
