"""Which timestamps can be compared: those of one clock, and those of two hosts whose clocks shared steps tie together.

Clocks of hosts may be minutes apart, so a timestamp orders nothing on another host. But all ranks do a step together:
where two hosts report the same step, the difference of their timestamps is that of their clocks. Only differences
count here, so a clock that is wrong changes no answer.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import field

from triage.base.lazy_dataclass import dataclass
from triage.model.evidence import Evidence, Origin
from triage.ranks.clocks import RESOLUTION, compute_median
from triage.ranks.identity import short_host
from triage.records.activity import Activity

# On one host, timestamps with fractions that are closer than this are in no order: programs write with a delay.
FINE_RESOLUTION = 0.2
# An agent reports the end of a process when it polls, and may stop the others first: its time is the latest possible.
EXIT_DELAY = 35.0
# Kernels log local time and collectors UTC. Zones differ by whole half hours, at most by so much; what a failure of a
# machine causes follows within the delay, which whole seconds and a late flush may turn round.
ZONE_STEP = 1800.0
MOST_ZONES = 26 * 3600.0
_ZONE_DELAY = (-2.0, 120.0)

Step = tuple[int, int]  # attempt and number


@dataclass(frozen=True, slots=True)
class Clocks:
    """`offsets`: host to the seconds by which its clock is ahead of the reference; untied hosts are not in it.

    `errors`: host to the seconds by which that may be wrong, as `ranks.clocks` estimates. `shared_files`: the sources
    in which lines of several hosts stand between each other.
    """

    hosts: frozenset[str] = frozenset()
    offsets: Mapping[str, float] = field(default_factory=dict)
    errors: Mapping[str, float] = field(default_factory=dict)
    shared_files: frozenset[str] = frozenset()

    def uncertainty(self, one: str | None, other: str | None) -> float:
        """Return the seconds within which two times of one clock, read on these hosts, are in no order."""
        if one == other:
            return FINE_RESOLUTION
        return max(RESOLUTION, sum(self.errors.get(short_host(host or ""), 0.0) for host in (one, other)))

    def interval(self, fact: Evidence) -> tuple[str, float, float] | None:
        """Return (clock, earliest, latest time at which it can have happened), or None for a fact without a time.

        A timestamp of whole seconds is anywhere in its second, and that of an earlier line has no upper end.
        """
        reading = self.read(fact)
        if reading is None:
            return None
        clock, when = reading
        # The timestamp itself, because the offset of a clock may have a fraction.
        width = math.inf if fact.inherits_time else 0.0 if fact.origin.time % 1 else 1.0  # type: ignore[operator]
        return clock, (when - EXIT_DELAY if fact.kind == "exit" else when), when + width

    def read(self, fact: Evidence) -> tuple[str, float] | None:
        """Return (clock, time) of a fact, or None without a time. Times of the same clock can be compared."""
        return self.read_origin(fact.origin, fact.source)

    def read_origin(self, origin: Origin, source: str) -> tuple[str, float] | None:
        """Return the same for a line of this source."""
        when, host = origin.time, origin.host
        if when is None:
            return None
        if len(self.hosts) < 2:
            return "", when
        if host is None:
            return (f"source {source}" if origin.rank is None else f"rank {origin.rank}"), when
        return ("", when - self.offsets[host]) if host in self.offsets else (f"host {host}", when)


def is_zone_apart(cause: float, effect: float) -> bool:
    """Whether an effect follows its cause shortly if the two times are of zones that are whole half hours apart."""
    delay = effect - cause
    steps, rest = divmod(delay - _ZONE_DELAY[0], ZONE_STEP)
    return steps != 0 and abs(delay) < MOST_ZONES and rest <= _ZONE_DELAY[1] - _ZONE_DELAY[0]


def stands_before(one: Evidence, other: Evidence, shared_files: Set[str] = frozenset()) -> bool:
    """Whether the first of two lines of a file stands above the second and its time is earlier, too."""
    first, then = one.origin.time, other.origin.time
    if first is None or then is None or not stands_above(one, other, shared_files):
        return False
    return first < then - RESOLUTION


def stands_above(one: Evidence, other: Evidence, shared_files: Set[str] = frozenset()) -> bool:
    """Whether the first of two lines of a file stands above the second, and that orders them.

    Lines of two known hosts may stand one host after the other, so their places order nothing outside `shared_files`.
    """
    is_of_other_host = None not in (one.origin.host, other.origin.host) and one.origin.host != other.origin.host
    return one.offset < other.offset and not (is_of_other_host and one.source not in shared_files)


def tie_clocks(
    activities: Iterable[tuple[str, Activity]], hosts: Iterable[str], errors: Mapping[str, float] | None = None
) -> Clocks:
    """Tie the clocks of all hosts of a job by the steps in the first and last lines of its sources."""
    names = frozenset(hosts)
    if len(names) < 2:
        return Clocks(names)
    times: dict[str, dict[Step, list[float]]] = {}
    spans: dict[str, dict[str, tuple[int, int]]] = {}
    for source, activity in activities:
        origin, offset = activity.origin, activity.offset
        if origin.host is None:
            continue
        first, last = spans.setdefault(source, {}).get(origin.host, (offset, offset))
        spans[source][origin.host] = min(first, offset), max(last, offset)
        if activity.step is not None and origin.time is not None:
            times.setdefault(origin.host, {}).setdefault((origin.attempt, activity.step), []).append(origin.time)
    shared = frozenset(source for source, by_host in spans.items() if _all_overlap(by_host.values()))
    return Clocks(names, _estimate_offsets(times), errors or {}, shared)


def _all_overlap(spans: Collection[tuple[int, int]]) -> bool:
    """Whether several hosts write, and the lines of none end before those of another begin."""
    return len(spans) > 1 and max(first for first, _ in spans) < min(last for _, last in spans)


def _estimate_offsets(times: Mapping[str, Mapping[Step, Sequence[float]]]) -> dict[str, float]:
    """From the first host by name outwards: each host that shares a step with one whose offset is known."""
    middle = {
        host: {step: compute_median(stamps) for step, stamps in steps.items()} for host, steps in sorted(times.items())
    }
    if not middle:
        return {}
    offsets = {next(iter(middle)): 0.0}
    pending = list(offsets)
    while pending and len(offsets) < len(middle):
        known = pending.pop(0)
        for host, steps in middle.items():
            if host not in offsets and (common := steps.keys() & middle[known].keys()):
                offsets[host] = offsets[known] + compute_median(steps[step] - middle[known][step] for step in common)
                pending.append(host)
    return offsets


@dataclass(frozen=True, slots=True)
class StartTimes:
    """When something began, by clock.

    `first` is the time of its first line and `host` the host that wrote it; `earliest` and `latest` bound when it can
    have happened (`latest` is infinite where its lines only inherit the time of earlier lines).
    """

    first: Mapping[str, float] = field(default_factory=dict)
    earliest: Mapping[str, float] = field(default_factory=dict)
    latest: Mapping[str, float] = field(default_factory=dict)
    host: Mapping[str, str | None] = field(default_factory=dict)


def find_start(facts: Sequence[Evidence], clocks: Clocks) -> StartTimes:
    """Return when the first of the facts happened."""
    first: dict[str, float] = {}
    earliest: dict[str, float] = {}
    latest: dict[str, float] = {}
    hosts: dict[str, str | None] = {}
    for fact in facts:
        if (interval := clocks.interval(fact)) is None:
            continue
        clock, low, high = interval
        when = low + EXIT_DELAY if fact.kind == "exit" else low
        if clock not in first or when < first[clock]:
            first[clock], hosts[clock] = when, fact.origin.host
        if clock not in earliest or low < earliest[clock]:
            earliest[clock] = low
        if clock not in latest or high < latest[clock]:
            latest[clock] = high
    return StartTimes(first, earliest, latest, hosts)
