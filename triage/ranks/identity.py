"""Who is who: global ranks from local ranks, pids, hosts and file names, as far as the files of the job agree.

Nothing is guessed: a rank that no map gives stays None. One convention is used and said: when only one host is seen,
every known pair of local and global rank is equal and the world is not several times as large, local ranks are taken as
ranks. Where hosts are not named, each run
directory of torchrun counts as one, because the agent of every host makes its own; and where several files have a local
rank 3 and name no
host, they may be of several hosts.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from triage.base.lazy_re import lazy_re
from triage.model.evidence import Origin
from triage.ranks.clocks import Clocks
from triage.ranks.files import TASK, origin_of

_RUN = lazy_re(r"(?P<run>.*?)/?attempt_\d+/\d+/")
# What the files of one process differ in: its stream, its attempt, and the age of what was rotated.
_SAME = lazy_re(
    r"(?i)std(?:out|err)|(?<=[._-])(?:out|err|log|txt)(?:\.\d+)?(?:\.(?:gz|xz|zst|bz2))?$|attempt[_-]?\d+|restart[_-]?\d+"
)
_PCI = lazy_re(r"(?:([0-9a-fA-F]{1,8}):)?([0-9a-fA-F]{1,2}):([0-9a-fA-F]{1,2})(?:\.\d)?")


# Before the name of a source that stands for the unknown host of its lines.
FILE = "\0"
# Of a world that is larger no list of ranks is made.
_WORLD = 1 << 17


@dataclass(frozen=True, slots=True)
class Member:
    """A process that says which rank of how many it has in a communicator, which need not be that of all ranks."""

    source: str
    origin: Origin
    rank: int
    size: int
    bus: str = ""


@dataclass
class JobMap:
    """Built by `learn` from every origin seen, closed by `settle`, then asked by `complete`.

    `clocks` says how far the clocks of the hosts are apart, and how sure that is.
    """

    by_pid: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    by_local: dict[tuple[str, int], set[int]] = field(default_factory=lambda: defaultdict(set))
    by_source: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    hosts: dict[int, set[str]] = field(default_factory=lambda: defaultdict(set))
    by_bus: dict[tuple[str, tuple[int, int, int]], set[int]] = field(default_factory=lambda: defaultdict(set))
    sources: dict[str, Origin] = field(default_factory=dict)
    runs: set[str] = field(default_factory=set)
    ranks: set[int] = field(default_factory=set)
    sizes: set[int] = field(default_factory=set)
    members: list[Member] = field(default_factory=list)
    clocks: Clocks = field(default_factory=Clocks)
    named: set[str] = field(default_factory=set)  # hosts that local ranks were said with
    addresses: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))  # IP address to hosts
    by_device: dict[tuple[str, int], set[int]] = field(
        default_factory=lambda: defaultdict(set)
    )  # IP address and device to ranks
    _unplaced: set[tuple[str, str | None, int]] = field(default_factory=set)
    # What would have to be gathered from the maps for every line of files without a host's name.
    _machines: set[str] = field(default_factory=set)
    _of_local_rank: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    _local_is_rank: bool = True
    _locals: set[int] = field(default_factory=set)
    _bare: dict[int, set[str]] = field(
        default_factory=lambda: defaultdict(set)
    )  # local rank to files that name no host

    def learn_member(self, member: Member) -> None:
        """What a process says of a communicator; it counts if that turns out to be the one of all ranks."""
        self.members.append(member)

    def settle(self) -> None:
        """All has been seen: the communicators of all ranks give the ranks of their processes, smaller ones number
        their own members.
        """
        size = max(self.sizes | {member.size for member in self.members}, default=0)
        for member in self.members:
            if member.size == size:
                self.sizes.add(size)
                self.learn(member.source, dataclasses.replace(member.origin, rank=member.rank))
                if member.bus and member.origin.host is not None:
                    self.learn_bus(member.origin.host, member.bus, member.rank)
        self.members.clear()
        self._settle_tasks()
        for source, host, local in sorted(self._unplaced, key=str):
            rank = self.complete(source, Origin(host=host, local_rank=local)).rank
            if rank is not None:
                self.ranks.add(rank)
        self._unplaced.clear()
        self.clocks.settle()

    def _settle_tasks(self) -> None:
        """`slurm-123_4.out` is of task 4 or of job 4 of an array: of a task, where there are as many as the world is
        said to be large.
        """
        tasks: dict[str, dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
        for source in self.sources:
            if found := TASK.pattern.search(source):
                tasks[source[: found.start("task")]][int(found["task"])].append(source)
        for numbered in tasks.values():
            if set(numbered) == set(range(max(self.sizes, default=0))):
                for task, sources in numbered.items():
                    self.ranks.add(task)
                    for source in sources:
                        if self.sources[source].rank is None:
                            self.sources[source] = dataclasses.replace(self.sources[source], rank=task)

    def learn(self, source: str, origin: Origin) -> None:
        """Take in what one line says of its writer."""
        named = self._named(source)
        rank = origin.rank if origin.rank is not None else named.rank
        if origin.host is not None and origin.local_rank is not None:
            self.named.add(short(origin.host))
            self._machines.add(short(origin.host))
        if rank is None:
            unplaced = origin.local_rank if origin.local_rank is not None else named.local_rank
            if unplaced is not None:
                self._locals.add(unplaced)
                self._unplaced.add((source, origin.host or named.host, unplaced))
                if origin.host is None and named.host is None and not _RUN.match(source):
                    self._bare[unplaced].add(_SAME.sub("", source))
            return
        self.ranks.add(rank)
        host = origin.host or named.host
        if origin.rank is not None:
            self.by_source[source].add(rank)
        pid = origin.pid if origin.pid is not None else named.pid
        if pid is not None:
            self.by_pid[pid].add(rank)
        local = origin.local_rank if origin.local_rank is not None else named.local_rank
        if local is not None:
            self._locals.add(local)
            for place in _places(source, host):
                self.by_local[(place, local)].add(rank)
            self._of_local_rank[local].add(rank)
            self._local_is_rank &= local == rank
        if host is not None:
            self.hosts[rank].add(short(host))
            self._machines.add(short(host))

    def complete(self, source: str, origin: Origin) -> Origin:
        """`origin` with what the maps and the name of its source add."""
        named = self._named(source)
        local = origin.local_rank if origin.local_rank is not None else named.local_rank
        host = origin.host or named.host
        rank = origin.rank
        if rank is None:
            rank = self._guessed(source, named, origin, host, local)
        if host is None and rank is not None and len(self.hosts.get(rank, ())) == 1:
            host = next(iter(self.hosts[rank]))
        stream, attempt = origin.stream or named.stream, origin.attempt or named.attempt
        if (rank, local, host, stream, attempt) == (
            origin.rank,
            origin.local_rank,
            origin.host,
            origin.stream,
            origin.attempt,
        ):
            return origin
        return dataclasses.replace(origin, rank=rank, local_rank=local, host=host, stream=stream, attempt=attempt)

    def _guessed(self, source: str, named: Origin, origin: Origin, host: str | None, local: int | None) -> int | None:
        """The first map that knows just one rank for a writer who does not say it."""
        guesses: tuple[Callable[[], set[int]], ...] = (
            lambda: {named.rank} if named.rank is not None and not self.of_several(source) else set(),
            lambda: self._of_pid(host, origin.pid if origin.pid is not None else named.pid),
            lambda: self._of_local(source, host, local),
            # A file of one worker: what it says of its rank anywhere holds for all of it.
            lambda: (
                self.by_source.get(source, set()) if named.local_rank is not None or named.pid is not None else set()
            ),
        )
        for guess in guesses:
            found = guess()
            if len(found) == 1:
                return next(iter(found))
        return None

    def of_several(self, source: str) -> bool:
        """Do its lines name its own rank and others, or many? Then `rank_0/job.log` is called after something else,
        such as a node.
        """
        found = self.by_source.get(source, set())
        return len(found) > (1 if self._named(source).rank in found else 2)

    def on_one_clock(self, origin: Origin) -> Origin:
        """`origin` with its time as the reference's clock would have shown it, where the host's clock is known to be
        wrong.
        """
        if not self.clocks.by_host:
            return origin
        ahead = self.clocks.ahead(short(origin.host)) if origin.host is not None and origin.time is not None else 0.0
        return dataclasses.replace(origin, time=origin.time - ahead) if ahead and origin.time is not None else origin

    def learn_bus(self, host: str, bus_id: str, rank: int) -> None:
        """NCCL's Init line prints the GPU's PCI address as one hexadecimal number: domain, bus (8 bits), device (8),
        function (4).
        """
        number = int(bus_id, 16)
        self.by_bus[(short(host), (number >> 20, number >> 12 & 0xFF, number >> 4 & 0xFF))].add(rank)

    def rank_at(self, host: str | None, bus_id: str) -> int | None:
        """The rank whose GPU is at `0000:9b:00` of the host; without a host, if only one host has a rank there."""
        parts = _PCI.fullmatch(bus_id)
        if parts is None:
            return None
        place = (int(parts[1] or "0", 16), int(parts[2], 16), int(parts[3], 16))
        found = {
            rank
            for (name, bus), ranks in self.by_bus.items()
            if bus == place and (host is None or short(host) == name)
            for rank in ranks
        }
        return next(iter(found)) if len(found) == 1 else None

    def world_size(self) -> int | None:
        """The largest size that any line states, or that the ranks seen demand."""
        sizes = set(self.sizes)
        if self.ranks:
            sizes.add(max(self.ranks) + 1)
        return max(sizes, default=None)

    def missing(self) -> tuple[int, ...]:
        """Ranks of the world that no line and no name of a file names."""
        size = self.world_size() or 0
        return tuple(sorted(set(range(size)) - self.ranks)) if size <= _WORLD else ()

    def host_ranks(self) -> dict[str, tuple[int, ...]]:
        hosts: dict[str, set[int]] = defaultdict(set)
        for rank, names in self.hosts.items():
            for name in names:
                hosts[name].add(rank)
        return {name: tuple(sorted(ranks)) for name, ranks in sorted(hosts.items())}

    def one_host(self) -> bool:
        """Only one host is seen, no known pair of local and global rank differs, and the world is not that of several
        such hosts.
        """
        return self._one_place() and self._local_is_rank and not self._of_more()

    def _of_more(self) -> bool:
        """Is the stated size of the world twice the local ranks seen, or thrice? Then these are those of one node of
        several.
        """
        here, size = len(self._locals), max(self.sizes, default=0)
        return here > 0 and size > here and size % here == 0 and self._locals == set(range(here))

    def _one_place(self) -> bool:
        return len(self._machines) <= 1 and len(self.runs) <= 1 and not self.scattered()

    def scattered(self) -> int:
        """How many files have the same local rank and name no host; 0 where none has what another has."""
        most = max(map(len, self._bare.values()), default=0)
        return most if most > 1 else 0

    def _of_pid(self, host: str | None, pid: int | None) -> set[int]:
        """Pids count within a host: a rank that is known to be on another one is not meant."""
        found = self.by_pid.get(pid, set()) if pid is not None else set()
        return {rank for rank in found if host is None or not self._elsewhere(rank, short(host))}

    def _elsewhere(self, rank: int, host: str) -> bool:
        """Is the rank known to be on another host? An address and a name may be the same one."""
        names = self.hosts.get(rank, set())
        return bool(names) and host not in names and all(_is_address(name) == _is_address(host) for name in names)

    def _of_local(self, source: str, host: str | None, local: int | None) -> set[int]:
        if local is None:
            return set()
        for place in _places(source, host):
            if (found := self.by_local.get((place, local))) and (place[0] != FILE or self._is_one_node(place, local)):
                return found
        found = self._of_local_rank.get(local, set()) if self._one_place() and self._machines | self.runs else set()
        return found or ({local} if self.one_host() else set())

    def _is_one_node(self, place: str, local: int) -> bool:
        """Are the ranks in a file without hosts one node's? Another one's local rank could be meant where a single pair
        alone is known.
        """
        pairs = [(number, rank) for (name, number), ranks in self.by_local.items() if name == place for rank in ranks]
        return len(pairs) > 1 and len({rank - number for number, rank in pairs}) == 1

    def _named(self, source: str) -> Origin:
        named = self.sources.get(source)
        if named is None:
            named = self.sources[source] = origin_of(source)
            if named.host is not None:
                self._machines.add(short(named.host))
            run = _RUN.match(source)
            if run and named.host is None:
                self.runs.add(run["run"])
        return named


def short(host: str) -> str:
    """NCCL cuts names at the first dot, others do not: one machine is one name. Addresses stay whole."""
    return host if _is_address(host) else host.split(".", 1)[0]


def _is_address(host: str) -> bool:
    return (host[:1].isdigit() and "." in host) or ":" in host


def _places(source: str, host: str | None) -> tuple[str, ...]:
    """What stands for the host of a line: its name, the run directory of its source, or the source where neither is
    known.
    """
    run = _RUN.match(source)
    return (*((short(host),) if host is not None else ()), *((f"{run['run']}/",) if run else ())) or (FILE + source,)


def learn_all(job: JobMap, origins: Iterable[tuple[str, Origin]]) -> None:
    for source, origin in origins:
        job.learn(source, origin)
