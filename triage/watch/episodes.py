"""Pace episodes: the events from the first problem (silent rank, slow steps, stall) until all are over or the job
fails.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from triage.model.watch import Episode, EventKind, WatchEvent

STARTS: tuple[EventKind, ...] = ("silent", "slow", "stalled")
ENDS: tuple[EventKind, ...] = ("back", "usual", "resumed")
_MAX_EVENTS = 20  # events that one episode stores


def extend(episode: Episode | None, event: WatchEvent) -> Episode | None:
    """Return the episode with this event added; the same episode if the event does not concern it."""
    ongoing = episode if episode is not None and episode.problems else None
    if event.kind in STARTS:
        problems = (ongoing.problems if ongoing else frozenset()) | _problem_names(event.kind, event.ranks)
    elif ongoing is not None and event.kind in ENDS:
        problems = ongoing.problems - _problem_names(STARTS[ENDS.index(event.kind)], event.ranks)
    elif ongoing is not None and event.kind == "failure":
        problems = frozenset()
    else:
        return episode
    events = (*(ongoing.events if ongoing else ()), dataclasses.replace(event, diagnosis=None))
    return Episode(events if len(events) <= _MAX_EVENTS else (events[0], *events[1 - _MAX_EVENTS :]), problems)


def _problem_names(kind: EventKind, ranks: Iterable[int]) -> frozenset[str]:
    return frozenset(f"silent {rank}" for rank in ranks) if kind == "silent" else frozenset((kind,))
