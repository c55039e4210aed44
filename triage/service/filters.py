"""The filters of an address, for lists, sums and pages alike."""

from __future__ import annotations

import math
import time
from typing import Annotated, Literal

from fastapi import Query
from pydantic import BeforeValidator, Field

from triage.base.errors import OptionError
from triage.store.search import Filter

Text = Annotated[str | None, Query(max_length=200)]
Verdict = Annotated[Literal["known", "unknown", "clean"] | None, BeforeValidator(lambda value: value or None)]
Rank = Annotated[
    Annotated[int, Field(ge=0, le=10_000_000)] | None, BeforeValidator(lambda value: None if value == "" else value)
]
FAR = 253_402_300_800.0  # the year 10000


def asked(
    verdict: Verdict = None,
    signature: Text = None,
    cluster: Text = None,
    domain: Text = None,
    host: Text = None,
    rank: Rank = None,
    since: Annotated[
        str | None, Query(max_length=40, description="7d, 12h, 2w, 2026-11-21 or 2026-11-21T03:00Z")
    ] = None,
    until: Annotated[str | None, Query(max_length=40, description="written like since")] = None,
    job: Annotated[str | None, Query(max_length=200, description="part of a job's name or path")] = None,
    q: Annotated[str | None, Query(max_length=400, description="words that they must hold")] = None,
    wrong: Annotated[bool, Query(description="only those of which somebody said that they are wrong")] = False,
) -> Filter:
    """A dependency: the filter that an address asks for. Empty values, as forms send them, do not matter."""
    now = time.time()
    return Filter(
        verdict=verdict,
        signature=signature or None,
        cluster=cluster or None,
        domain=domain or None,
        host=host or None,
        rank=rank,
        since=moment(since, now) if since else None,
        until=moment(until, now) if until else None,
        job=job or None,
        text=q or None,
        wrong=wrong,
    )


def moment(text: str, now: float) -> float:
    """`7d`, `12h`, `2w`, a date or a time as seconds; without a zone it is UTC. Raises OptionError."""
    from datetime import UTC, datetime

    text = text.strip()
    units = {"m": 60, "h": 3600, "d": 86_400, "w": 604_800}
    if text[-1:] in units and text[:-1].isascii() and text[:-1].isdigit() and len(text) < 7:
        return now - int(text[:-1]) * units[text[-1]]
    try:
        when = datetime.fromisoformat(text.replace(" ", "+") if "T" in text else text)
        seconds = (when if when.tzinfo is not None else when.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        seconds = math.nan
    if not -FAR < seconds < FAR:
        raise OptionError(f"{text!r} is no time", hint="write 7d, 12h, 2w, 2026-11-21 or 2026-11-21T03:00Z")
    return seconds
