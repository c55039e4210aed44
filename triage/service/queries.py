"""What the API and the pages show, as plain dicts and dataclasses; routes only put it into words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from triage.model import Incident, Remembered
from triage.render import incidents as shown
from triage.store import Store
from triage.store.search import Filter


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
