"""The merged timeline of a job: failures, last lines and states of its ranks, in the order that the clocks give."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterable, Sequence

from triage.base.lazy_re import lazy_re
from triage.diagnose.reason import ReasoningResult
from triage.model import Event, Evidence, Job, LastLine, RankState, Timeline, Warning

_MOST_TEXT = 300
_NUMBER = lazy_re(r"\d+(?:\.\d+)?")


def build_timeline(
    result: ReasoningResult,
    job: Job,
    states: Sequence[RankState],
    last_lines: Iterable[LastLine],
    warnings: tuple[Warning, ...],
) -> Timeline:
    """Return the timeline; events of the same kind within one second are one event, with all their ranks."""
    root = result.verdict.root
    failures = _failures(result)
    shown = {(rank, event.text) for event in failures for rank in event.ranks}
    events = [*failures, *_last_lines(line for line in last_lines if (line.rank, line.text[:_MOST_TEXT]) not in shown)]
    times = [event.time for event in events if event.root and event.time is not None]
    times = times or [event.time for event in events if not event.last and event.time is not None]
    first = root.first_time if root is not None and root.first_time is not None else min(times, default=None)
    return Timeline(job, first, tuple(sorted(events, key=_order)), tuple(states), 0, warnings)


def cut_timeline(whole: Timeline, around: float | None = None, ranks: frozenset[int] | None = None) -> Timeline:
    """Return the events within `around` seconds of the failure, of these ranks, and the number of those left out.

    Events without a time stay, and so does a cause without a known rank.
    """
    events = []
    for event in whole.events:
        is_far = (
            around is not None
            and whole.around is not None
            and event.time is not None
            and abs(event.time - whole.around) > around
        )
        own = event.ranks if ranks is None else tuple(rank for rank in event.ranks if rank in ranks)
        if not is_far and (own or ranks is None or (event.root and not event.ranks)):
            events.append(dataclasses.replace(event, ranks=own))
    states = tuple(state for state in whole.ranks if ranks is None or state.rank in ranks)
    return dataclasses.replace(whole, events=tuple(events), ranks=states, left_out=len(whole.events) - len(events))


def _order(event: Event) -> tuple[object, ...]:
    return (event.time is None, event.time or 0.0, event.last, not event.root, event.ranks, event.text)


def _failures(result: ReasoningResult) -> list[Event]:
    groups: dict[tuple[str, int | None], list[Evidence]] = defaultdict(list)
    for candidate in result.candidates:
        if candidate.role == "noise":
            continue
        for fact in candidate.facts:
            if fact.kind != "inference":
                groups[(candidate.id, None if fact.origin.time is None else int(fact.origin.time))].append(fact)
    root = result.verdict.root
    return [_failure(name, facts, root is not None and root.id == name) for (name, _), facts in groups.items()]


def _failure(name: str, facts: Sequence[Evidence], is_root: bool) -> Event:
    first = min(facts, key=_earliness)
    return Event(
        time=first.origin.time,
        ranks=tuple(sorted({fact.origin.rank for fact in facts if fact.origin.rank is not None})),
        text=first.text.split("\n", 1)[0][:_MOST_TEXT],
        signature=None if name.startswith("u-") else name,
        count=sum(fact.count for fact in facts),
        root=is_root,
        later=first.origin.time is not None and first.inherits_time,
    )


def _earliness(fact: Evidence) -> tuple[object, ...]:
    origin = fact.origin
    return (origin.time or 0.0, origin.rank is None, origin.rank or 0, fact.source, fact.offset)


def _last_lines(lines: Iterable[LastLine]) -> list[Event]:
    """Return the last lines; those of one second that differ only in numbers are one event."""
    groups: dict[tuple[int | None, str], list[LastLine]] = defaultdict(list)
    for line in lines:
        groups[(None if line.time is None else int(line.time), _NUMBER.sub("0", line.text))].append(line)
    events = []
    for same in groups.values():
        first = min(same, key=lambda line: (line.time or 0.0, line.rank))
        ranks = tuple(sorted(line.rank for line in same))
        events.append(Event(first.time, ranks, first.text[:_MOST_TEXT], None, len(same), last=True))
    return events
