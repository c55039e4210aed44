"""The job map: find the global rank of a line from local ranks, pids, hosts and file names, as far as the files agree.

Nothing is guessed: a rank that no map gives stays None. One convention is used: if only one host is known, every known
pair of local and global rank is equal, and the world is not several times as large, local ranks are global ranks. Where
no host is named, each run directory of torchrun counts as a host, because every host's agent makes its own. If several
files have the same local rank and name no host, they may be of several hosts.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from triage.base.lazy_re import lazy_re
from triage.model.evidence import Origin
from triage.ranks.clocks import HostClocks
from triage.ranks.file_names import TASK_NAMING, parse_file_name

T = TypeVar("T")

# Before the name of a source, in place of a host: the unknown host of its lines.
UNKNOWN_HOST_OF = "\0"
_RUN_DIRECTORY = lazy_re(r"(?P<run>.*?)/?attempt_\d+/\d+/")
# How the names of one process's files differ: by stream, attempt, and the number of a rotated file.
_PROCESS_VARIANTS = lazy_re(
    r"(?i)std(?:out|err)|(?<=[._-])(?:out|err|log|txt)(?:\.\d+)?(?:\.(?:gz|xz|zst|bz2))?$|attempt[_-]?\d+|"
    r"restart[_-]?\d+"
)
_PCI_ADDRESS = lazy_re(r"(?:([0-9a-fA-F]{1,8}):)?([0-9a-fA-F]{1,2}):([0-9a-fA-F]{1,2})(?:\.\d)?")
# The missing ranks of a larger world are not listed.
_LARGEST_WORLD = 1 << 17


@dataclass(frozen=True, slots=True)
class CommunicatorMember:
    """A process with its rank in a communicator of `size`, which may be smaller than the job. `bus` is its GPU's."""

    source: str
    origin: Origin
    rank: int
    size: int
    bus: str = ""


@dataclass
class JobMap:
    """Which ranks, hosts, pids and GPUs belong together: filled by `learn`, then by `resolve`, asked by `complete`.

    `by_pid`, `by_local` (host and local rank), `by_source`, `by_bus` (host and PCI address) and `by_device` (IP address
    and device) give ranks. `hosts` gives the hosts of a rank, `addresses` those of an IP address. `sources` has what
    the file names state, `sizes` the stated world sizes, and `clocks` the differences between the hosts' clocks.
    """

    by_pid: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    by_local: dict[tuple[str, int], set[int]] = field(default_factory=lambda: defaultdict(set))
    by_source: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    hosts: dict[int, set[str]] = field(default_factory=lambda: defaultdict(set))
    by_bus: dict[tuple[str, tuple[int, int, int]], set[int]] = field(default_factory=lambda: defaultdict(set))
    sources: dict[str, Origin] = field(default_factory=dict)
    run_directories: set[str] = field(default_factory=set)
    ranks: set[int] = field(default_factory=set)
    sizes: set[int] = field(default_factory=set)
    members: list[CommunicatorMember] = field(default_factory=list)
    clocks: HostClocks = field(default_factory=HostClocks)
    addresses: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    by_device: dict[tuple[str, int], set[int]] = field(default_factory=lambda: defaultdict(set))
    _unplaced: set[tuple[str, str | None, int]] = field(default_factory=set)
    # Summaries of the maps, kept because every line of a file without a host needs them.
    _known_hosts: set[str] = field(default_factory=set)
    _ranks_by_local: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    _local_is_rank: bool = True
    _local_ranks: set[int] = field(default_factory=set)
    # Local rank to the files with it that name no host.
    _hostless_files: dict[int, set[str]] = field(default_factory=lambda: defaultdict(set))

    def learn_member(self, member: CommunicatorMember) -> None:
        """Add a member of a communicator; it counts if that turns out to be the communicator of all ranks."""
        self.members.append(member)

    def resolve(self) -> None:
        """Derive what needs all sources: ranks of communicator members and of tasks, and the clocks.

        Only the largest communicator has global ranks; a smaller one numbers its own members.
        """
        size = max(self.sizes | {member.size for member in self.members}, default=0)
        for member in self.members:
            if member.size == size:
                self.sizes.add(size)
                self.learn(member.source, dataclasses.replace(member.origin, rank=member.rank))
                if member.bus and member.origin.host is not None:
                    self._learn_gpu(member.origin.host, member.bus, member.rank)
        self.members.clear()
        self._resolve_tasks()
        for source, host, local in sorted(self._unplaced, key=str):
            rank = self.complete(source, Origin(host=host, local_rank=local)).rank
            if rank is not None:
                self.ranks.add(rank)
        self._unplaced.clear()
        self.clocks.estimate()

    def _resolve_tasks(self) -> None:
        """Take the number in `slurm-123_4.out` as a rank if there are as many tasks as the stated world size.

        Otherwise it is the number of an array job.
        """
        tasks: dict[str, dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
        for source in self.sources:
            if match := TASK_NAMING.pattern.search(source):
                tasks[source[: match.start("task")]][int(match["task"])].append(source)
        for by_number in tasks.values():
            if set(by_number) == set(range(max(self.sizes, default=0))):
                for task, sources in by_number.items():
                    self.ranks.add(task)
                    for source in sources:
                        if self.sources[source].rank is None:
                            self.sources[source] = dataclasses.replace(self.sources[source], rank=task)

    def learn(self, source: str, origin: Origin) -> None:
        """Add what one line says about its writer."""
        stated = self._stated(source)
        rank = _first(origin.rank, stated.rank)
        host = origin.host or stated.host
        local = _first(origin.local_rank, stated.local_rank)
        if origin.host is not None and origin.local_rank is not None:
            self._known_hosts.add(short_host(origin.host))
        if local is not None:
            self._local_ranks.add(local)
        if rank is None:
            if local is not None:
                self._unplaced.add((source, host, local))
                if host is None and not _RUN_DIRECTORY.match(source):
                    self._hostless_files[local].add(_PROCESS_VARIANTS.sub("", source))
            return
        self.ranks.add(rank)
        if origin.rank is not None:
            self.by_source[source].add(rank)
        pid = _first(origin.pid, stated.pid)
        if pid is not None:
            self.by_pid[pid].add(rank)
        if local is not None:
            for place in _host_keys(source, host):
                self.by_local[(place, local)].add(rank)
            self._ranks_by_local[local].add(rank)
            self._local_is_rank &= local == rank
        if host is not None:
            self.hosts[rank].add(short_host(host))
            self._known_hosts.add(short_host(host))

    def complete(self, source: str, origin: Origin) -> Origin:
        """Return `origin` with what the maps and the name of its source add."""
        stated = self._stated(source)
        local = _first(origin.local_rank, stated.local_rank)
        host = origin.host or stated.host
        rank = origin.rank
        if rank is None:
            rank = self._rank_from_maps(source, stated, origin, host, local)
        if host is None and rank is not None and len(self.hosts.get(rank, ())) == 1:
            host = next(iter(self.hosts[rank]))
        stream, attempt = origin.stream or stated.stream, origin.attempt or stated.attempt
        if (rank, local, host, stream, attempt) == (
            origin.rank,
            origin.local_rank,
            origin.host,
            origin.stream,
            origin.attempt,
        ):
            return origin
        return dataclasses.replace(origin, rank=rank, local_rank=local, host=host, stream=stream, attempt=attempt)

    def _rank_from_maps(
        self, source: str, stated: Origin, origin: Origin, host: str | None, local: int | None
    ) -> int | None:
        """Return the rank from the first map that gives exactly one."""
        is_of_one_worker = stated.local_rank is not None or stated.pid is not None
        lookups: tuple[Callable[[], set[int]], ...] = (
            lambda: {stated.rank} if stated.rank is not None and not self.has_several_ranks(source) else set(),
            lambda: self.ranks_of_pid(host, _first(origin.pid, stated.pid)),
            lambda: self._ranks_of_local(source, host, local),
            # In the file of one worker, a rank in any line holds for all lines.
            lambda: self.by_source.get(source, set()) if is_of_one_worker else set(),
        )
        for lookup in lookups:
            ranks = lookup()
            if len(ranks) == 1:
                return next(iter(ranks))
        return None

    def has_several_ranks(self, source: str) -> bool:
        """Do its lines name other ranks than its file name? Then `rank_0/job.log` is named after a node, say."""
        ranks = self.by_source.get(source, set())
        return len(ranks) > (1 if self._stated(source).rank in ranks else 2)

    def with_corrected_time(self, origin: Origin) -> Origin:
        """Return `origin` with its time by the reference's clock, if the host's clock is known to be wrong."""
        if not self.clocks.by_host or origin.host is None or origin.time is None:
            return origin
        ahead = self.clocks.seconds_ahead(short_host(origin.host))
        return dataclasses.replace(origin, time=origin.time - ahead) if ahead else origin

    def _learn_gpu(self, host: str, bus_id: str, rank: int) -> None:
        """Add a GPU by NCCL's PCI address: one hexadecimal number of domain, bus, device (8 bits each) and function (4
        bits).
        """
        number = int(bus_id, 16)
        self.by_bus[(short_host(host), (number >> 20, number >> 12 & 0xFF, number >> 4 & 0xFF))].add(rank)

    def rank_of_gpu(self, host: str | None, bus_id: str) -> int | None:
        """Return the rank whose GPU is at `0000:9b:00` of the host; without a host, if only one host has one there."""
        parts = _PCI_ADDRESS.fullmatch(bus_id)
        if parts is None:
            return None
        address = (int(parts[1] or "0", 16), int(parts[2], 16), int(parts[3], 16))
        users = {
            rank
            for (name, bus), ranks in self.by_bus.items()
            if bus == address and (host is None or short_host(host) == name)
            for rank in ranks
        }
        return next(iter(users)) if len(users) == 1 else None

    def world_size(self) -> int | None:
        """Return the largest stated world size, or more if a higher rank is known; without one, the number of ranks if
        none is missing between them. None: a rank that is missing may be one that nobody gave.
        """
        sizes = set(self.sizes)
        if self.ranks and (sizes or len(self.ranks) == max(self.ranks) + 1):
            sizes.add(max(self.ranks) + 1)
        return max(sizes, default=None)

    def missing_ranks(self) -> tuple[int, ...]:
        """Return the ranks of a stated world that no line and no file name names."""
        size = self.world_size() or 0
        return tuple(sorted(set(range(size)) - self.ranks)) if size <= _LARGEST_WORLD else ()

    def ranks_by_host(self) -> dict[str, tuple[int, ...]]:
        """Return the ranks of each host, both sorted."""
        hosts: dict[str, set[int]] = defaultdict(set)
        for rank, names in self.hosts.items():
            for name in names:
                hosts[name].add(rank)
        return {name: tuple(sorted(ranks)) for name, ranks in sorted(hosts.items())}

    def is_one_host(self) -> bool:
        """Is only one host known, are local ranks equal to ranks, and is the world not several such hosts?"""
        return self._has_one_host() and self._local_is_rank and not self._is_part_of_world()

    def _is_part_of_world(self) -> bool:
        """Is the stated world size a multiple of the local ranks, so that these are one node's of several?"""
        local, size = len(self._local_ranks), max(self.sizes, default=0)
        return local > 0 and size > local and size % local == 0 and self._local_ranks == set(range(local))

    def _has_one_host(self) -> bool:
        return len(self._known_hosts) <= 1 and len(self.run_directories) <= 1 and not self.count_hostless_files()

    def count_hostless_files(self) -> int:
        """Return how many files have the same local rank and name no host; 0 if no two do."""
        most = max(map(len, self._hostless_files.values()), default=0)
        return most if most > 1 else 0

    def ranks_of_pid(self, host: str | None, pid: int | None) -> set[int]:
        """Return the ranks with this pid, except those on other hosts."""
        ranks = self.by_pid.get(pid, set()) if pid is not None else set()
        return {rank for rank in ranks if host is None or not self._is_elsewhere(rank, short_host(host))}

    def _is_elsewhere(self, rank: int, host: str) -> bool:
        """Is the rank on another host? An address and a name may be the same host."""
        names = self.hosts.get(rank, set())
        return bool(names) and host not in names and all(_is_address(name) == _is_address(host) for name in names)

    def _ranks_of_local(self, source: str, host: str | None, local: int | None) -> set[int]:
        if local is None:
            return set()
        for key in _host_keys(source, host):
            ranks = self.by_local.get((key, local))
            if ranks and (key[0] != UNKNOWN_HOST_OF or self._is_one_node(key)):
                return ranks
        if self._has_one_host() and self._known_hosts | self.run_directories and local in self._ranks_by_local:
            return self._ranks_by_local[local]
        return {local} if self.is_one_host() else set()

    def _is_one_node(self, key: str) -> bool:
        """Are the ranks in a file without hosts of one node? A single known pair may be of another node."""
        pairs = [(local, rank) for (name, local), ranks in self.by_local.items() if name == key for rank in ranks]
        return len(pairs) > 1 and len({rank - local for local, rank in pairs}) == 1

    def _stated(self, source: str) -> Origin:
        """Return what the file name of the source states."""
        stated = self.sources.get(source)
        if stated is None:
            stated = self.sources[source] = parse_file_name(source)
            if stated.host is not None:
                self._known_hosts.add(short_host(stated.host))
            run = _RUN_DIRECTORY.match(source)
            if run and stated.host is None:
                self.run_directories.add(run["run"])
        return stated


def short_host(host: str) -> str:
    """Return the host without its domain, as NCCL writes it; an IP address unchanged."""
    return host if _is_address(host) else host.split(".", 1)[0]


def _is_address(host: str) -> bool:
    return (host[:1].isdigit() and "." in host) or ":" in host


def _first(value: T | None, other: T | None) -> T | None:
    return value if value is not None else other


def _host_keys(source: str, host: str | None) -> tuple[str, ...]:
    """Return what stands for the host of a line: its name, its run directory, or its source if neither is known."""
    run = _RUN_DIRECTORY.match(source)
    names = (*((short_host(host),) if host is not None else ()), *((f"{run['run']}/",) if run else ()))
    return names or (UNKNOWN_HOST_OF + source,)
