"""Which stamps may be compared: those of one clock, and those of two hosts whose clocks the steps of the training tie
together.

Clocks of hosts may be minutes apart, so a stamp orders nothing on another host. All ranks do a step together, though:
where two hosts
report the same step, the difference of their stamps is that of their clocks. Nothing here depends on what a clock
shows, only on
differences, so that a shifted clock changes no answer.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from triage.model.evidence import Evidence, Origin
from triage.ranks.identity import short

# On two hosts, events closer than this are in no order, however well their clocks are tied.
RESOLUTION = 2.0
# On one host, stamps with fractions that are closer than this are in no order: programs write when they come to it.
FINE = 0.2
# An agent tells of the end of a process when it looks, and it may first stop the others: its stamp is the latest time
# there is.
EXIT_LAG = 35.0

Step = tuple[int, int]  # attempt and number


@dataclass(frozen=True, slots=True)
class Clocks:
    """`shift`: host to the seconds by which its clock is ahead of the reference; hosts that nothing ties to it are not
    there.

    `unsure`: host to the seconds by which that may be wrong, as far as the job's clocks say (`ranks.clocks`).
    """

    hosts: frozenset[str] = frozenset()
    shift: Mapping[str, float] = field(default_factory=dict)
    unsure: Mapping[str, float] = field(default_factory=dict)

    def doubt(self, one: str | None, other: str | None) -> float:
        """Two times of one clock, read on these hosts, that are closer than this many seconds are in no order."""
        if one == other:
            return FINE
        return max(RESOLUTION, sum(self.unsure.get(short(host or ""), 0.0) for host in (one, other)))

    def span(self, fact: Evidence) -> tuple[str, float, float] | None:
        """(clock, the earliest and the latest time at which it can have happened, as far as its stamp tells). None: the
        fact has no time.

        A stamp of whole seconds is anything within its second, that of a line before is no end, and an agent tells of a
        process when it looks.
        """
        reading = self.at(fact.origin, fact.source)
        if reading is None:
            return None
        clock, when = reading
        # The stamp itself, for what is taken off may have a fraction.
        later = math.inf if fact.fields and late(fact) else 0.0 if fact.origin.time % 1 else 1.0  # type: ignore[operator]
        return clock, (when - EXIT_LAG if fact.kind == "exit" else when), when + later

    def read(self, fact: Evidence) -> tuple[str, float] | None:
        """(clock, time): times with the same clock can be compared. None: the fact has no time."""
        return self.at(fact.origin, fact.source)

    def at(self, origin: Origin, source: str) -> tuple[str, float] | None:
        """The same for a line of this source."""
        when, host = origin.time, origin.host
        if when is None:
            return None
        if len(self.hosts) < 2:
            return "", when
        if host is None:
            return (f"source {source}" if origin.rank is None else f"rank {origin.rank}"), when
        return ("", when - self.shift[host]) if host in self.shift else (f"host {host}", when)


def clocks(
    steps: Iterable[tuple[Origin, int]], hosts: Iterable[str], unsure: Mapping[str, float] | None = None
) -> Clocks:
    """From (origin, step) of lines near the end of the logs, origins completed, and all hosts of the job."""
    names = frozenset(hosts)
    if len(names) < 2:
        return Clocks(names)
    seen: dict[str, dict[Step, list[float]]] = {}
    for origin, step in steps:
        if origin.host is not None and origin.time is not None:
            seen.setdefault(origin.host, {}).setdefault((origin.attempt, step), []).append(origin.time)
    return Clocks(names, _tied(seen), unsure or {})


def _tied(seen: Mapping[str, Mapping[Step, Sequence[float]]]) -> dict[str, float]:
    """From the first host by name outwards: each host that shares a step with one that is placed already."""
    import statistics

    middle = {
        host: {step: statistics.median(times) for step, times in steps.items()} for host, steps in sorted(seen.items())
    }
    if not middle:
        return {}
    shift = {next(iter(middle)): 0.0}
    pending = list(shift)
    while pending and len(shift) < len(middle):
        known = pending.pop(0)
        for host, steps in middle.items():
            if host not in shift and (common := steps.keys() & middle[known].keys()):
                shift[host] = shift[known] + statistics.median(steps[step] - middle[known][step] for step in common)
                pending.append(host)
    return shift


@dataclass(frozen=True, slots=True)
class Begin:
    """When something began, by clock: `told` the time of its first line, `possible` and `sure` the earliest and the
    latest at which it can have
    happened (infinite where its lines carry only the stamps of others before them), `where` the host that tells
    `told`."""

    told: Mapping[str, float] = field(default_factory=dict)
    possible: Mapping[str, float] = field(default_factory=dict)
    sure: Mapping[str, float] = field(default_factory=dict)
    where: Mapping[str, str | None] = field(default_factory=dict)


def begins(facts: Sequence[Evidence], clock: Clocks) -> Begin:
    """When the first of the facts happened."""
    told: dict[str, float] = {}
    possible: dict[str, float] = {}
    sure: dict[str, float] = {}
    where: dict[str, str | None] = {}
    for fact in facts:
        if (span := clock.span(fact)) is None:
            continue
        name, earliest, latest = span
        when = earliest + EXIT_LAG if fact.kind == "exit" else earliest
        if name not in told:
            told[name], possible[name], sure[name], where[name] = when, earliest, latest, fact.origin.host
            continue
        if when < told[name]:
            told[name], where[name] = when, fact.origin.host
        if earliest < possible[name]:
            possible[name] = earliest
        if latest < sure[name]:
            sure[name] = latest
    return Begin(told, possible, sure, where)


def late(fact: Evidence) -> bool:
    """Can it have happened later than its time, which is that of a line before?"""
    return fact.fields.get("stamp") == "earlier"
