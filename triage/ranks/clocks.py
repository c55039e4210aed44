"""The clocks of the hosts: how far apart they are, by events that several hosts saw at once.

Such events are the steps of a synchronous training, the end of a rendezvous, a communicator that is ready, one
collective that all ranks
entered. Each gives the difference of two clocks and the delay between two lines; the median over many is the clocks',
and how much
they scatter is how sure it is. Nothing here orders events closer than that.
"""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass, field

# Stamps of glog and torchelastic are whole seconds, so that two of them can be a second apart and mean the same moment.
RESOLUTION = 2.0
_LEAST_DOUBT = 1.0
# An event that one host saw at several times (a step number used again) says nothing.
_ONCE = 30.0
_FEW = 3


@dataclass(frozen=True, slots=True)
class Clock:
    """A host's clock is `ahead` seconds before the reference's, give or take `doubt`, by so many `events`."""

    ahead: float
    doubt: float
    events: int


@dataclass
class Clocks:
    """Built by `see`, closed by `settle`. `by_host` has the hosts that share events with the `reference`, itself
    included.
    """

    reference: str | None = None
    by_host: dict[str, Clock] = field(default_factory=dict)
    _seen: dict[str, dict[str, list[float]]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(list)))

    def see(self, event: str, host: str | None, time: float | None) -> None:
        """`host` saw `event`, which all hosts see at the same moment, at `time` of its own clock."""
        if host is not None and time is not None:
            self._seen[event][host].append(time)

    def settle(self) -> None:
        """Estimate every clock against the host that shares most events with others; hosts that share none with it,
        through one that does.

        Thousands of hosts may see thousands of events: no two hosts are compared that need not be.
        """
        events = [once for by_host in self._seen.values() if len(once := _once(by_host)) > 1]
        shared: dict[str, int] = defaultdict(int)
        of_host: dict[str, list[dict[str, float]]] = defaultdict(list)
        for once in events:
            for host in once:
                shared[host] += 2 * (len(once) - 1)
                of_host[host].append(once)
        self.reference = min(shared, key=lambda host: (-shared[host], host), default=None)
        if self.reference is None:
            return
        self.by_host = {self.reference: Clock(0.0, 0.0, shared[self.reference])}
        unknown = set(shared) - {self.reference}
        pending = deque([self.reference])
        while pending and unknown:
            known = pending.popleft()
            base = self.by_host[known]
            for other, differences in sorted(_differences(known, of_host[known], unknown).items()):
                found = _clock(differences)
                self.by_host[other] = Clock(
                    round(base.ahead + found.ahead, 3), round(base.doubt + found.doubt, 3), found.events
                )
                pending.append(other)
            unknown -= self.by_host.keys()
        self._seen.clear()

    def ahead(self, host: str | None) -> float:
        """What to take off a time of this host so that it can be compared; 0 where the difference is no more than what
        is not known.

        Whole seconds, for less is not known, and a stamp that has no fraction gets none.
        """
        clock = self.by_host.get(host or "")
        return float(round(clock.ahead)) if clock is not None and abs(clock.ahead) > clock.doubt + RESOLUTION else 0.0

    def doubt(self, one: str | None, other: str | None) -> float | None:
        """Two times of these hosts that are closer than this (in seconds, after `ahead`) are in no order. None: nothing
        is known of their clocks.
        """
        if one == other:
            return RESOLUTION
        mine, theirs = self.by_host.get(one or ""), self.by_host.get(other or "")
        return None if mine is None or theirs is None else max(RESOLUTION, mine.doubt + theirs.doubt)


def _once(by_host: dict[str, list[float]]) -> dict[str, float]:
    """When each host saw an event, without the hosts that saw it at several times."""
    import statistics

    return {host: statistics.median(times) for host, times in by_host.items() if max(times) - min(times) <= _ONCE}


def _differences(known: str, events: list[dict[str, float]], unknown: set[str]) -> dict[str, list[float]]:
    """Of the unknown hosts how much later their stamps of these events are than those of the known one."""
    found: dict[str, list[float]] = defaultdict(list)
    for once in events:
        for other in once.keys() & unknown if len(unknown) > len(once) else [host for host in unknown if host in once]:
            found[other].append(once[other] - once[known])
    return found


def _clock(differences: list[float]) -> Clock:
    import statistics

    middle = statistics.median(differences)
    spread = statistics.median(abs(difference - middle) for difference in differences)
    few = len(differences) < _FEW
    doubt = max(_LEAST_DOUBT * (2 if few else 1), (max(differences) - min(differences)) if few else 3 * spread)
    return Clock(middle, doubt, len(differences))
