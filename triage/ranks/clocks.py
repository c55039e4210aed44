"""The clocks of the hosts: how far they are apart, estimated from events that several hosts log at the same moment.

Such events are the steps of a synchronous training, the end of a rendezvous, a communicator that is ready, or one
collective that all ranks entered. Each event gives the difference of two clocks plus the delay between two lines. The
median over many events is the difference of the clocks, and their scatter is its uncertainty. Nothing here orders
events more exactly than that.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable
from dataclasses import field

from triage.base.lazy_dataclass import dataclass

# Timestamps of glog and torchelastic have whole seconds, so two of the same moment can differ by a second.
RESOLUTION = 2.0
_LEAST_UNCERTAINTY = 1.0
# An event that one host logged at several times (a step number used again) is ignored.
_SAME_MOMENT = 30.0
_FEW = 3


@dataclass(frozen=True, slots=True)
class HostClock:
    """A host's clock: `ahead` seconds before the reference's, ± `uncertainty`, estimated from so many `events`."""

    ahead: float
    uncertainty: float
    events: int


@dataclass
class HostClocks:
    """The clocks of a job: filled by `add_event`, then estimated by `estimate`.

    `by_host` has the hosts that share events with the `reference`, itself included.
    """

    reference: str | None = None
    by_host: dict[str, HostClock] = field(default_factory=dict)
    _times: dict[str, dict[str, list[float]]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(list)))

    def add_event(self, event: str, host: str | None, time: float | None) -> None:
        """Add the time at which `host` logged `event`, by its own clock. All hosts log it at the same moment."""
        if host is not None and time is not None:
            self._times[event][host].append(time)

    def estimate(self) -> None:
        """Estimate every clock against the reference: the host that shares most events with others.

        A host that shares none with it is compared with one that does. Thousands of hosts may share thousands of
        events, so no two hosts are compared needlessly.
        """
        events = [times for by_host in self._times.values() if len(times := _event_times(by_host)) > 1]
        shared: dict[str, int] = defaultdict(int)
        by_host: dict[str, list[dict[str, float]]] = defaultdict(list)
        for times in events:
            for host in times:
                shared[host] += 2 * (len(times) - 1)
                by_host[host].append(times)
        self.reference = min(shared, key=lambda host: (-shared[host], host), default=None)
        if self.reference is None:
            return
        self.by_host = {self.reference: HostClock(0.0, 0.0, shared[self.reference])}
        unknown = set(shared) - {self.reference}
        pending = deque([self.reference])
        while pending and unknown:
            host = pending.popleft()
            base = self.by_host[host]
            for other, differences in sorted(_differences(host, by_host[host], unknown).items()):
                clock = _clock_of(differences)
                self.by_host[other] = HostClock(
                    round(base.ahead + clock.ahead, 3), round(base.uncertainty + clock.uncertainty, 3), clock.events
                )
                pending.append(other)
            unknown -= self.by_host.keys()
        self._times.clear()

    def seconds_ahead(self, host: str | None) -> float:
        """Return the whole seconds to subtract from a time of this host; 0 if they are within the uncertainty."""
        clock = self.by_host.get(host or "")
        is_wrong = clock is not None and abs(clock.ahead) > clock.uncertainty + RESOLUTION
        return float(round(clock.ahead)) if clock is not None and is_wrong else 0.0


def compute_median(numbers: Iterable[float]) -> float:
    """Return the median of at least one number, as the module `statistics` does, which is slow to import."""
    ordered = sorted(numbers)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def _event_times(by_host: dict[str, list[float]]) -> dict[str, float]:
    """Return when each host logged an event, without the hosts that logged it at several times."""
    return {host: compute_median(times) for host, times in by_host.items() if max(times) - min(times) <= _SAME_MOMENT}


def _differences(host: str, events: list[dict[str, float]], unknown: set[str]) -> dict[str, list[float]]:
    """Return for each unknown host how much later it logged these events than `host`."""
    differences: dict[str, list[float]] = defaultdict(list)
    for times in events:
        others = times.keys() & unknown if len(unknown) > len(times) else [one for one in unknown if one in times]
        for other in others:
            differences[other].append(times[other] - times[host])
    return differences


def _clock_of(differences: list[float]) -> HostClock:
    middle = compute_median(differences)
    spread = compute_median(abs(difference - middle) for difference in differences)
    if len(differences) < _FEW:
        uncertainty = max(2 * _LEAST_UNCERTAINTY, max(differences) - min(differences))
    else:
        uncertainty = max(_LEAST_UNCERTAINTY, 3 * spread)
    return HostClock(middle, uncertainty, len(differences))
