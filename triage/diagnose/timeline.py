"""The merged timeline of a job: failures, last lines and states of its ranks, in the order that the clocks give."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterable, Sequence

from triage.base.lazy_re import lazy_re
from triage.diagnose.clocks import late
from triage.diagnose.reason import Result
from triage.model.diagnosis import Event, Job, RankState, Timeline
from triage.model.evidence import Evidence, LastLine, Warning

_TEXT = 300
_NUMBER = lazy_re(r"\d+(?:\.\d+)?")


def timeline(
    result: Result, job: Job, states: Sequence[RankState], lasts: Iterable[LastLine], warnings: tuple[Warning, ...]
) -> Timeline:
    """Events of the same kind within one second are one, with all their ranks."""
    root = result.verdict.root
    failures = _failures(result)
    said = {(rank, event.text) for event in failures for rank in event.ranks}
    events = [*failures, *_last_lines(line for line in lasts if (line.rank, line.text[:_TEXT]) not in said)]
    times = [event.time for event in events if event.root and event.time is not None]
    times = times or [event.time for event in events if not event.last and event.time is not None]
    first = root.first_time if root is not None and root.first_time is not None else min(times, default=None)
    return Timeline(job, first, tuple(sorted(events, key=_order)), tuple(states), 0, warnings)


def cut(whole: Timeline, around: float | None = None, ranks: frozenset[int] | None = None) -> Timeline:
    """What lies within `around` seconds of the failure, and concerns `ranks`. What has no time stays, and so does a
    cause of which no rank is known;
    what is cut off is counted."""
    kept = []
    for event in whole.events:
        far = (
            around is not None
            and whole.around is not None
            and event.time is not None
            and abs(event.time - whole.around) > around
        )
        own = event.ranks if ranks is None else tuple(rank for rank in event.ranks if rank in ranks)
        if not far and (own or ranks is None or (event.root and not event.ranks)):
            kept.append(dataclasses.replace(event, ranks=own))
    states = tuple(state for state in whole.ranks if ranks is None or state.rank in ranks)
    return dataclasses.replace(whole, events=tuple(kept), ranks=states, left_out=len(whole.events) - len(kept))


def _order(event: Event) -> tuple[object, ...]:
    return (event.time is None, event.time or 0.0, event.last, not event.root, event.ranks, event.text)


def _failures(result: Result) -> list[Event]:
    groups: dict[tuple[str, int | None], list[Evidence]] = defaultdict(list)
    root = result.verdict.root
    for candidate in result.candidates:
        if candidate.role == "noise":
            continue
        for fact in candidate.facts:
            if fact.kind != "inference":
                groups[(candidate.id, None if fact.origin.time is None else int(fact.origin.time))].append(fact)
    events = []
    for (name, _), facts in groups.items():
        first = min(
            facts,
            key=lambda fact: (
                fact.origin.time or 0.0,
                fact.origin.rank is None,
                fact.origin.rank or 0,
                fact.source,
                fact.offset,
            ),
        )
        ranks = tuple(sorted({fact.origin.rank for fact in facts if fact.origin.rank is not None}))
        text = first.text.split("\n", 1)[0][:_TEXT]
        signature = None if name.startswith("u-") else name
        is_root = root is not None and root.id == name
        later = first.origin.time is not None and late(first)
        events.append(
            Event(first.origin.time, ranks, text, signature, sum(fact.count for fact in facts), False, is_root, later)
        )
    return events


def _last_lines(lasts: Iterable[LastLine]) -> list[Event]:
    """Ranks whose last lines differ only in numbers, within the same second, are told together."""
    groups: dict[tuple[int | None, str], list[LastLine]] = defaultdict(list)
    for line in lasts:
        groups[(None if line.time is None else int(line.time), _NUMBER.sub("0", line.text))].append(line)
    events = []
    for lines in groups.values():
        first = min(lines, key=lambda line: (line.time or 0.0, line.rank))
        events.append(
            Event(
                first.time, tuple(sorted(line.rank for line in lines)), first.text[:_TEXT], None, len(lines), last=True
            )
        )
    return events
