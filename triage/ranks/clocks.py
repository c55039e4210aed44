"""The clocks of the hosts: how far apart they are, by events that several hosts saw at once.

Such events are the steps of a synchronous training, the end of a rendezvous, a communicator that is ready, one collective that all ranks
entered. Each gives the difference of two clocks and the delay between two lines; the median over many is the clocks', and how much
they scatter is how sure it is. Nothing here orders events closer than that.
"""

from __future__ import annotations

from collections import defaultdict
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
    """Built by `see`, closed by `settle`. `by_host` has the hosts that share events with the `reference`, itself included."""

    reference: str | None = None
    by_host: dict[str, Clock] = field(default_factory=dict)
    _seen: dict[str, dict[str, list[float]]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(list)))

    def see(self, event: str, host: str | None, time: float | None) -> None:
        """`host` saw `event`, which all hosts see at the same moment, at `time` of its own clock."""
        if host is not None and time is not None:
            self._seen[event][host].append(time)

    def settle(self) -> None:
        """Estimate every clock against the host that shares most events with others; hosts that share none with it, through one that does."""
        pairs = self._differences()
        shared: dict[str, int] = defaultdict(int)
        for (one, other), differences in pairs.items():
            shared[one] += len(differences)
            shared[other] += len(differences)
        self.reference = min(shared, key=lambda host: (-shared[host], host), default=None)
        if self.reference is None:
            return
        self.by_host = {self.reference: Clock(0.0, 0.0, shared[self.reference])}
        pending = [self.reference]
        while pending:
            known = pending.pop(0)
            for (one, other), differences in sorted(pairs.items()):
                if one == known and other not in self.by_host:
                    found = _clock(differences)
                    base = self.by_host[known]
                    self.by_host[other] = Clock(round(base.ahead + found.ahead, 3), round(base.doubt + found.doubt, 3), found.events)
                    pending.append(other)
        self._seen.clear()

    def ahead(self, host: str | None) -> float:
        """What to take off a time of this host so that it can be compared; 0 where the difference is no more than what is not known.

        Whole seconds, for less is not known, and a stamp that has no fraction gets none.
        """
        clock = self.by_host.get(host or "")
        return float(round(clock.ahead)) if clock is not None and abs(clock.ahead) > clock.doubt + RESOLUTION else 0.0

    def doubt(self, one: str | None, other: str | None) -> float | None:
        """Two times of these hosts that are closer than this (in seconds, after `ahead`) are in no order. None: nothing is known of their clocks."""
        if one == other:
            return RESOLUTION
        mine, theirs = self.by_host.get(one or ""), self.by_host.get(other or "")
        return None if mine is None or theirs is None else max(RESOLUTION, mine.doubt + theirs.doubt)

    def _differences(self) -> dict[tuple[str, str], list[float]]:
        """For two hosts (either way round) how much later the second's stamps of the same events are."""
        import statistics

        pairs: dict[tuple[str, str], list[float]] = defaultdict(list)
        for by_host in self._seen.values():
            once = {host: statistics.median(times) for host, times in by_host.items() if max(times) - min(times) <= _ONCE}
            for one in once:
                for other in once:
                    if one != other:
                        pairs[one, other].append(once[other] - once[one])
        return pairs


def _clock(differences: list[float]) -> Clock:
    import statistics

    middle = statistics.median(differences)
    spread = statistics.median(abs(difference - middle) for difference in differences)
    few = len(differences) < _FEW
    doubt = max(_LEAST_DOUBT * (2 if few else 1), (max(differences) - min(differences)) if few else 3 * spread)
    return Clock(middle, doubt, len(differences))
