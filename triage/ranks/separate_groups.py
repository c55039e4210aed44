"""Find out whether processes that should form one group form several: each rank is there several times.

A restarted process has the rank of the one before, and so has a copy of a log. Two processes with one rank are of two
groups where their hosts, files or launcher's prefixes differ, or where both started before either failed.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from triage.base.lazy_dataclass import dataclass
from triage.ranks.places import short_host
from triage.ranks.sole_ranks import name_process

# Processes of one launch start within so many seconds of each other on one host, and on several hosts.
ON_ONE_HOST = 30.0
ON_ALL_HOSTS = 300.0
_AT_ONCE = 0.01  # two handlers of one logger write a line within so many seconds


@dataclass(frozen=True, slots=True)
class Membership:
    """A process is rank `rank` of `size`; rank -1: its line says only how many there are.

    label: what its launcher or collector writes before its lines; `host` "" and `pid` -1: the line does not say.
    form: a number for the text of a line without a pid.
    """

    rank: int
    size: int
    label: str = ""
    host: str = ""
    pid: int = -1
    time: float | None = None
    offset: int = 0
    form: int = 0


@dataclass(frozen=True, slots=True)
class SeparateGroups:
    """Groups of `size` ranks each. `processes` of all groups, `hosts` of each group, `are_apart`: no host has two.

    places: file and launcher's prefix to the number of processes there. `may_be_copies`: a logger may have written
      lines twice, which would be the lines of two processes otherwise.
    """

    size: int
    processes: int
    hosts: tuple[str, ...]
    are_apart: bool
    places: Mapping[tuple[str, str], int]
    may_be_copies: bool = False

    def count_processes(self, places: Iterable[tuple[str, str]]) -> int:
        """Return how many processes can have written lines at these places, one each."""
        lines = Counter(places)
        return sum(min(count, max(1, self.places.get(place, 0))) for place, count in lines.items())


Stated = tuple[str, Membership]
"""A source, and what one of its lines says."""


def find_separate_groups(
    memberships: Iterable[Stated], failures: Mapping[str, Sequence[int]], hosts: Mapping[str, str]
) -> SeparateGroups | None:
    """Return the groups if there are several of the same size, and none larger.

    `failures` gives for each source where it shows failures, `hosts` the one name of each host that has several.
    """
    stated = list(memberships)
    size = max((one.size for _, one in stated), default=0)
    processes = _list_processes((one for one in stated if one[1].rank >= 0), hosts)
    by_rank: dict[int, list[Stated]] = defaultdict(list)
    for one in processes:
        by_rank[one[1].rank].append(one)
    is_complete = set(by_rank) == set(range(size)) and all(one.size == size for _, one in processes)
    if not is_complete or any(len(claims) < 2 for claims in by_rank.values()):
        return None
    pairs = [(claims[0], other) for claims in by_rank.values() for other in claims[1:]]
    if not all(_are_together(one, other, failures) for one, other in pairs):
        return None
    names = [[one.host for _, one in claims] for claims in by_rank.values()]
    return SeparateGroups(
        size,
        len(processes),
        tuple(sorted({name for of_rank in names for name in of_rank} - {""})),
        all("" not in of_rank and len(set(of_rank)) == len(of_rank) for of_rank in names),
        Counter((name_process(source), one.label) for source, one in processes),
        all(len(claims) == 2 and _may_be_copies(*claims) for claims in by_rank.values()),
    )


def _list_processes(stated: Iterable[Stated], hosts: Mapping[str, str]) -> list[Stated]:
    """Return what each process says first, in the order of the files.

    Lines without a pid are of several processes if one place has the same line several times.
    """
    by_form: dict[tuple[object, ...], dict[int, list[Stated]]] = defaultdict(lambda: defaultdict(list))
    for source, one in stated:
        host = short_host(one.host) if one.host else ""
        named = replace(one, host=hosts.get(host, host))
        place = (one.pid,) if one.pid >= 0 else (one.label, name_process(source))
        by_form[(one.rank, named.host, *place)][one.form].append((source, named))
    processes: list[Stated] = []
    for forms in by_form.values():
        claims = max(forms.values(), key=len)
        processes += claims[:1] if claims[0][1].pid >= 0 else claims
    return processes


def _are_together(one: Stated, other: Stated, failures: Mapping[str, Sequence[int]]) -> bool:
    """Whether two processes with the same rank can be of one launch, and neither is a restart of the other.

    The clocks of two hosts that have their own files may be far apart.
    """
    (source, first), (other_source, second) = one, other
    if source == other_source and (first.host, first.label) == (second.host, second.label):
        begin, end = sorted((first.offset, second.offset))
        if any(begin < offset < end for offset in failures.get(source, ())):
            return False
    if first.time is None or second.time is None or (first.host != second.host and source != other_source):
        return True
    return abs(first.time - second.time) <= (ON_ONE_HOST if first.host == second.host else ON_ALL_HOSTS)


def _may_be_copies(one: Stated, other: Stated) -> bool:
    """Whether two lines may be of one process whose logger writes each line twice."""
    (source, first), (other_source, second) = one, other
    is_one_place = (source, first.label, first.host) == (other_source, second.label, second.host)
    if not is_one_place or first.pid >= 0:
        return False
    return first.time is None or second.time is None or abs(first.time - second.time) < _AT_ONCE
