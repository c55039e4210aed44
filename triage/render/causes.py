"""Causes of failures with the sums of their incidents, as text, JSON or CSV."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from triage.model.store import Cause
from triage.render import table
from triage.render.json import dump_json
from triage.render.phrases import format_count
from triage.render.table import Cell, day, iso
from triage.render.terminal import Paint
from triage.render.text import NARROWEST, WIDTH

SCHEMA = "triage.causes/1"
_TIMES = ("first_at", "last_at", "first_stored", "last_stored", "fixed_at", "ignored_until")
_HEAD = ("cause", "status", "this week", "all", "jobs", "last failure", "hosts", "what")


def format_hosts(cause: Cause) -> str:
    """Return the hosts with the most failures, and how many others there are."""
    more = cause.host_count - len(cause.hosts)
    return ", ".join(cause.hosts) + (f" +{more}" if more > 0 else "")


def as_dict(cause: Cause) -> dict[str, Any]:
    """Return a cause as its JSON object."""
    values: dict[str, Any] = {name: getattr(cause, name) for name in Cause.__dataclass_fields__}
    times = {name: iso(values[name]) for name in _TIMES}
    return {**values, "hosts": list(cause.hosts), "days": list(cause.days), **times}


def listing(causes: Sequence[Cause], total: int, *, width: int | None = None, color: bool = False) -> str:
    """Return one line for each cause. A time that is only the one of the ingest has a question mark."""
    if not causes:
        return "no causes\n"
    rows = [
        (
            *(cause.id, cause.status, str(cause.recent), str(cause.incidents), str(cause.jobs)),
            *(day(cause.last_at)[:16] + ("" if cause.last_has_time else "?"), format_hosts(cause), cause.title),
        )
        for cause in causes
    ]
    lines = table.as_text(_HEAD, rows, max(width or WIDTH, NARROWEST), Paint(color), right=(2, 3, 4))
    more = f"{len(causes)} of {format_count(total, 'cause')}; --limit shows more\n" if total > len(causes) else ""
    return "\n".join(lines) + "\n" + more


def listing_as_json(causes: Sequence[Cause], total: int) -> str:
    """Return the causes and how many there are in all."""
    return dump_json({"schema": SCHEMA, "total": total, "causes": [as_dict(cause) for cause in causes]})


def listing_as_csv(causes: Sequence[Cause]) -> str:
    """Return one row for each cause."""
    names = list(Cause.__dataclass_fields__)
    rows: list[list[Cell]] = []
    for cause in causes:
        item = as_dict(cause)
        rows.append([" ".join(map(str, item[name])) if isinstance(item[name], list) else item[name] for name in names])
    return table.as_csv(names, rows)
