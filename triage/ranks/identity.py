"""The job map: find the global rank of a line from local ranks, pids, hosts and file names, as far as the files agree.

Nothing is guessed: a rank that no map gives stays None. One convention is used: if only one host is known, every known
pair of local and global rank is equal, and the world is not several times as large, local ranks are global ranks. Where
no host is named, each run directory of torchrun counts as a host, because every host's agent makes its own. If several
files have the same local rank and name no host, they may be of several hosts.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection
from dataclasses import field
from typing import Any, TypeVar, cast

from triage.base.lazy_dataclass import dataclass, replace
from triage.model.details import RankBasis
from triage.model.evidence import Origin
from triage.ranks.clocks import HostClocks
from triage.ranks.communicators import CommunicatorMember
from triage.ranks.file_names import parse_file_name
from triage.ranks.host_names import HostNames, Place
from triage.ranks.host_orders import HostOrder, place_ranks
from triage.ranks.name_evidence import NameEvidence
from triage.ranks.node_layout import NodeLayout, count_processes, find_pod_ordinal
from triage.ranks.npu_processes import NpuProcess, list_npu_members
from triage.ranks.pci_addresses import read_nccl_address, read_pci_address
from triage.ranks.places import RUN_DIRECTORY, UNKNOWN_HOST_OF, host_keys, is_address, short_host
from triage.ranks.process_numbers import ProcessNumber
from triage.ranks.separate_groups import Stated
from triage.ranks.sibling_files import find_hosts_in_names
from triage.ranks.sole_ranks import find_files_of_one_rank, find_hosts_of_one_rank, group_by_host, name_process
from triage.ranks.task_files import find_ranks_of_tasks

T = TypeVar("T")
_LARGEST_WORLD = 1 << 17  # the missing ranks of a larger world are not listed


@dataclass
class JobMap:
    """Which ranks, hosts, pids and GPUs belong together: filled by `learn`, then by `resolve`, asked by `complete`.

    `by_pid`, `by_local` (host and local rank), `by_source` and `by_bus` (host and PCI address) give ranks. `npus` has
    what HCCL says of processes. `hosts` gives the hosts of a rank, `addresses` those of an IP address. `sources` has
    what the file names state, `sizes` the stated world sizes, `clocks` the differences between the hosts' clocks.
    `root` is the start that all names share, `nodes` says which node a place is, `orders` which hosts launchers were
    given, `memberships` which rank of how many processes say that they are; `has_gaps`: not all failures were read;
    `silent_ranks` write nothing in a file that others share; `process_numbers` are by source.
    """

    root: str = ""
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
    npus: set[NpuProcess] = field(default_factory=set)
    nodes: NodeLayout = field(default_factory=NodeLayout)
    orders: set[HostOrder] = field(default_factory=set)
    memberships: list[Stated] = field(default_factory=list)
    has_gaps: bool = False
    silent_ranks: set[int] = field(default_factory=set)
    process_numbers: dict[str, set[ProcessNumber]] = field(default_factory=lambda: defaultdict(set))
    names: NameEvidence = field(default_factory=NameEvidence)
    host_names: HostNames = field(default_factory=HostNames)
    # Source, rank that a text names, and what another map says, with its name.
    contradictions: set[tuple[str, int, int, RankBasis]] = field(default_factory=set)
    _unplaced: set[tuple[str, str | None, int, int | None]] = field(default_factory=set)
    _hosts_of_pids: set[tuple[str, int]] = field(default_factory=set)
    # Summaries of the maps, kept because every line of a file without a host needs them.
    _known_hosts: set[str] = field(default_factory=set)
    _ranks_by_local: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    _local_is_rank: bool = True
    _local_ranks: set[int] = field(default_factory=set)
    # Local rank to the files with it that name no host.
    _hostless_files: dict[int, set[str]] = field(default_factory=lambda: defaultdict(set))
    _by_writer: dict[tuple[str, str, int], set[int]] = field(default_factory=lambda: defaultdict(set))
    _stated_hosts: dict[int, set[str]] = field(default_factory=lambda: defaultdict(set))
    # The files of one process, such as those of its two streams, to its ranks.
    _by_process: dict[str, set[int]] = field(default_factory=dict)
    # Files and hosts of one rank each.
    _sole_of_file: dict[str, int] = field(default_factory=dict)
    _sole_of_host: dict[str, int] = field(default_factory=dict)

    def learn_member(self, member: CommunicatorMember) -> None:
        """Add a member of a communicator; it counts if that turns out to be the communicator of all ranks."""
        self.members.append(member)

    def resolve(self) -> None:
        """Derive what needs all sources: ranks of communicator members and of tasks, and the clocks.

        Only the largest communicator has global ranks; a smaller one numbers its own members.
        """
        self.unify_hosts()
        self.members += list_npu_members(self.npus, self.sources, bool(self.ranks or self.members or self.sizes))
        size = max(self.sizes | {member.size for member in self.members}, default=0)
        for member in self.members:
            if member.size == size:
                self.sizes.add(size)
                self.learn(member.source, replace(member.origin, rank=member.rank))
                if member.bus and member.origin.host is not None:
                    self._learn_gpu(member.origin.host, member.bus, member.rank)
        self.members.clear()
        self._name_sibling_files()
        self._resolve_tasks()
        self._forget_doubtful_names()
        self._place_in_order()
        self._resolve_nodes()
        for source, ranks in self.by_source.items():
            self._by_process[name_process(source)] = self._by_process.get(name_process(source), set()) | ranks
        self._sole_of_file = find_files_of_one_rank(self.by_source, self.sizes)
        self._sole_of_host = find_hosts_of_one_rank(self.hosts, self.sizes)
        for source, host, local, pid in sorted(self._unplaced, key=str):
            if (rank := self.complete(source, Origin(host=host, local_rank=local)).rank) is not None:
                self.ranks.add(rank)
                if pid is not None:
                    self.by_pid[pid].add(rank)
        self._unplaced.clear()
        self._place_pids()
        self.clocks.estimate()

    def learn_same_host(self, source: str, outer: str, inner: str, *, is_stated: bool = False) -> None:
        """Add two names that stand together before a line; without `outer`, that of the source stands outside.

        `is_stated`: the second name stands in its text.
        """
        named = outer or self._stated(source).host
        if named:
            place: Place = "outer prefix" if outer else "file"
            self.host_names.learn(short_host(named), place, short_host(inner), "text" if is_stated else "prefix")

    def learn_writer(self, source: str, host: str, pid: int | None, rank: int | None) -> None:
        """Add the rank of the process whose lines in a source have this pid and host in their prefix, if any."""
        if pid is not None and rank is not None:
            self._by_writer[(source, host, pid)].add(rank)

    def learn_host_of_rank(self, rank: int, host: str) -> None:
        """Add the host that a rank states in its text; that of a prefix is more direct."""
        self._stated_hosts[rank].add(short_host(host))

    def unify_hosts(self) -> None:
        """Give each host one name in all maps, and forget those of collectors, which run none of the processes."""
        self.host_names.resolve()
        if self.host_names.canonical or self.host_names.gatherers:
            self._rename_hosts(self.host_names.gatherers)
        for rank, names in self._stated_hosts.items():
            if not self.hosts.get(rank):
                self.hosts[rank] = {self._name_host(name) for name in names}

    def _rename_hosts(self, gatherers: Collection[str]) -> None:
        for rank, names in self.hosts.items():
            self.hosts[rank] = {self._name_host(name) for name in names}.difference(gatherers)
        self._known_hosts = {self._name_host(name) for name in self._known_hosts}.difference(gatherers)
        by_local, stated_nodes = dict(self.by_local), dict(self.nodes.stated)
        self.by_local.clear()
        self.nodes.stated.clear()
        for (place, local), ranks in by_local.items():
            self.by_local[(self._name_host(place), local)] |= ranks
        for place, nodes in stated_nodes.items():
            self.nodes.stated[self._name_host(place)] |= nodes
        self._unplaced = {
            (source, host and self._name_host(host), local, pid) for source, host, local, pid in self._unplaced
        }
        self.names.rename_hosts(self._name_host)
        for source, stated in self.sources.items():
            if stated.host is not None:
                self.sources[source] = replace(stated, host=self._host_of(stated, stated))

    def _name_host(self, host: str) -> str:
        """Return the one name of a host in all maps; a place that is no host unchanged."""
        if host.startswith(UNKNOWN_HOST_OF) or host.endswith("/"):
            return host
        name = short_host(host)
        return self.host_names.canonical.get(name, name)

    def _name_sibling_files(self) -> None:
        """Give files the hosts in their names, where only the lines of some of them name theirs."""
        hosts = find_hosts_in_names([name for name, one in self.sources.items() if one.host is None], self._known_hosts)
        files = Counter(rank for ranks in self.by_source.values() for rank in ranks)
        for source, host in hosts.items():
            self.sources[source] = replace(self.sources[source], host=host)
            for rank in [one for one in self.by_source.get(source, ()) if files[one] == 1 and not self.hosts.get(one)]:
                self.hosts[rank].add(host)
            for local in self._local_ranks:
                self._hostless_files[local].discard(name_process(source))
                if ranks := self.by_local.pop((UNKNOWN_HOST_OF + source, local), None):
                    self.by_local[(host, local)] |= ranks
        self._known_hosts.update(hosts.values())
        self._unplaced = {(file, host or hosts.get(file), local, pid) for file, host, local, pid in self._unplaced}

    def _place_pids(self) -> None:
        """Give ranks without a host the host on which a launcher lists their pid."""
        for host, pid in sorted(self._hosts_of_pids):
            ranks = self.ranks_of_pid(host, pid)
            if len(ranks) == 1 and not self.hosts.get(next(iter(ranks))):
                self.hosts[next(iter(ranks))].add(short_host(host))
        self._hosts_of_pids.clear()

    def _resolve_tasks(self) -> None:
        """Take numbers of processes and of files, as in `slurm-123_4.out`, as ranks where they are."""
        ranks = find_ranks_of_tasks(self.sources, self.by_source, self.sizes, self.process_numbers)
        for source, task in ranks.items():
            self.ranks.add(task)
            if self.sources[source].rank is None:
                self.sources[source] = replace(self.sources[source], rank=task)

    def _place_in_order(self) -> None:
        """Give ranks the hosts of the order in which a launcher filled them. It does not say that they began."""
        for rank, (name, local) in place_ranks(self.orders, self.sizes, self.hosts).items():
            self.hosts[rank].add(self._name_host(name))
            self.by_local[(self._name_host(name), local)].add(rank)

    def _forget_doubtful_names(self) -> None:
        """Take back the ranks of file names whose lines show that they are not ranks of this job."""
        for source in self.names.find_doubtful(self.sizes, self.by_source):
            self.sources[source] = replace(self.sources[source], rank=None)
        for kind, key, rank in self.names.take_back():
            if kind == "rank":
                self.ranks.discard(rank)
            elif kind == "host":
                self.hosts[rank].discard(cast("str", key))
            elif kind == "pid":
                self.by_pid[cast("int", key)].discard(rank)
            else:
                self.by_local[cast("tuple[str, int]", key)].discard(rank)

    def _resolve_nodes(self) -> None:
        """Find out which node each host, run directory or file without a host is."""
        places = {short_host(host): short_host(host) for _, host, _, _ in self._unplaced if host}
        for source, host, _, _ in self._unplaced:
            places.update({key: source[len(self.root) :] for key in host_keys(source, host) if host is None})
        for place, _ in self.by_local:
            source = place.removeprefix(UNKNOWN_HOST_OF)
            places.setdefault(place, source[len(self.root) :] if source != place else place)
        pods = {machine: name for name, machine in self.host_names.canonical.items() if find_pod_ordinal(name)}
        places = {place: pods.get(place, path) for place, path in places.items()}
        pairs = {key: ranks for key, ranks in self.by_local.items() if ranks}
        world = max(self.sizes, default=0)
        # An operator numbers its pods in the order of the ranks; numbers of hosts alone show nothing.
        if not world and all(map(find_pod_ordinal, places.values())):
            known = [(key, local) for file, host, local, _ in self._unplaced for key in host_keys(file, host)]
            world = count_processes(places, [*self.by_local, *known])
        self.nodes.resolve(world, places, self._local_ranks, pairs)

    def learn_node(self, source: str, host: str | None, node: int, node_size: int, nodes: int) -> None:
        """Add what a line says of its writer's node: its index, how many processes it has, how many nodes there are.

        -1: it does not say so.
        """
        for number, known in ((node_size, self.nodes.sizes), (nodes, self.nodes.counts)):
            if number > 0:
                known.add(number)
        if node >= 0:
            for place in host_keys(source, host or self._stated(source).host):
                self.nodes.stated[place].add(node)

    def learn_process(self, source: str, origin: Origin) -> None:
        """Add the local rank of a process that another one lists, as `ps` does."""
        if origin.local_rank is not None:
            host = origin.host or self._stated(source).host
            self._unplaced.add((source, host, origin.local_rank, origin.pid))

    def learn(self, source: str, origin: Origin) -> None:
        """Add what one line says about its writer."""
        stated = self._stated(source)
        rank = _first(origin.rank, stated.rank)
        host = origin.host or stated.host
        local = _first(origin.local_rank, stated.local_rank)
        if origin.host is not None and stated.host is not None:
            self.host_names.learn(short_host(stated.host), "file", short_host(origin.host), "prefix")
        host = host and self._name_host(host)
        if origin.host is not None and origin.local_rank is not None:
            self._known_hosts.add(self._name_host(origin.host))
        if local is not None:
            self._local_ranks.add(local)
        if rank is None:
            if local is not None:
                self._unplaced.add((source, host, local, _first(stated.pid, origin.pid)))
                if host is None and not RUN_DIRECTORY.match(source):
                    self._hostless_files[local].add(name_process(source))
            elif origin.host is not None and origin.pid is not None:
                self._hosts_of_pids.add((origin.host, origin.pid))
            return
        self.ranks.add(rank)
        if origin.rank is not None:
            self.by_source[source].add(rank)
        joined: list[tuple[str, Any, int]] = [("rank", None, rank)]
        pid = _first(stated.pid, origin.pid)
        if pid is not None:
            self.by_pid[pid].add(rank)
            joined.append(("pid", pid, rank))
        if local is not None:
            for place in host_keys(source, host):
                self.by_local[(place, local)].add(rank)
                joined.append(("local", (place, local), rank))
            self._ranks_by_local[local].add(rank)
            self._local_is_rank &= local == rank
        if host is not None:
            self.hosts[rank].add(host)
            self._known_hosts.add(host)
            joined.append(("host", host, rank))
        self.names.add(source, None if origin.rank is not None else rank, joined)

    def complete(self, source: str, origin: Origin) -> Origin:
        """Return `origin` with what the maps and the name of its source add."""
        return self.place(source, origin)[0]

    def place(self, source: str, origin: Origin) -> tuple[Origin, RankBasis]:
        """Return `origin` with what the maps and the name of its source add, and which of them gave its rank."""
        stated = self._stated(source)
        local = _first(origin.local_rank, stated.local_rank)
        host = self._host_of(origin, stated)
        rank = origin.rank
        basis: RankBasis = ""
        if rank is None:
            rank, basis = self._rank_from_maps(source, stated, origin, host, local)
        if rank is not None and (host is None or is_address(host)):
            host = self.host_of(rank) or host
        stream, attempt = origin.stream or stated.stream, origin.attempt or stated.attempt
        if (rank, local, host, stream, attempt) == (
            origin.rank,
            origin.local_rank,
            origin.host,
            origin.stream,
            origin.attempt,
        ):
            return origin, basis
        placed = replace(origin, rank=rank, local_rank=local, host=host, stream=stream, attempt=attempt)
        return placed, basis

    def host_of(self, rank: int) -> str | None:
        """Return the host of a rank: the only one, or the only one with a name where others are addresses."""
        hosts = self.hosts.get(rank, set())
        named = hosts if len(hosts) == 1 else {host for host in hosts if not is_address(host)}
        return next(iter(named)) if len(named) == 1 else None

    def _host_of(self, origin: Origin, stated: Origin) -> str | None:
        """Return the host that a line or the name of its source states; not that of a collector."""
        host = origin.host or stated.host
        if host is None or not (self.host_names.canonical or self.host_names.gatherers):
            return host
        name = short_host(host)
        return None if name in self.host_names.gatherers else self.host_names.canonical.get(name, host)

    def _rank_from_maps(
        self, source: str, stated: Origin, origin: Origin, host: str | None, local: int | None
    ) -> tuple[int | None, RankBasis]:
        """Return the rank from the first map that gives exactly one, and how that map is called."""
        is_of_one_worker = stated.local_rank is not None or stated.pid is not None
        lookups: tuple[tuple[RankBasis, Callable[[], set[int]]], ...] = (
            (
                "file name",
                lambda: {stated.rank} if stated.rank is not None and not self.has_several_ranks(source) else set(),
            ),
            (
                "pid",
                lambda: self._by_writer.get(
                    (source, origin.host or "", -1 if origin.pid is None else origin.pid), set()
                ),
            ),
            ("pid", lambda: self.ranks_of_pid(host, _first(stated.pid, origin.pid))),
            ("local rank", lambda: self._ranks_of_local(source, host, local)),
            # In the file of one worker, a rank in any line holds for all lines.
            ("same file", lambda: self._by_process.get(name_process(source), set()) if is_of_one_worker else set()),
            ("same file", lambda: self._sole_rank_of(source)),
            ("only rank on its host", lambda: self._sole_rank_on(host)),
        )
        for basis, lookup in lookups:
            ranks = lookup()
            if len(ranks) == 1:
                return next(iter(ranks)), basis
        return None, ""

    def _sole_rank_of(self, source: str) -> set[int]:
        process = name_process(source) if self._sole_of_file else ""
        return {self._sole_of_file[process]} if process in self._sole_of_file else set()

    def _sole_rank_on(self, host: str | None) -> set[int]:
        name = self._name_host(host) if host is not None else ""
        return {self._sole_of_host[name]} if name in self._sole_of_host else set()

    def has_several_ranks(self, source: str) -> bool:
        """Do its lines name other ranks than its file name? Then `rank_0/job.log` is named after a node, say."""
        ranks = self.by_source.get(source, set())
        return len(ranks) > (1 if self._stated(source).rank in ranks else 2)

    def with_corrected_time(self, origin: Origin) -> Origin:
        """Return `origin` with its time by the reference's clock, if the host's clock is known to be wrong."""
        if not self.clocks.by_host or origin.host is None or origin.time is None:
            return origin
        ahead = self.clocks.seconds_ahead(short_host(origin.host))
        return replace(origin, time=origin.time - ahead) if ahead else origin

    def _learn_gpu(self, host: str, bus_id: str, rank: int) -> None:
        self.by_bus[(self._name_host(host), read_nccl_address(bus_id))].add(rank)

    def rank_of_gpu(self, host: str | None, bus_id: str) -> int | None:
        """Return the rank whose GPU is at `0000:9b:00` of the host; without a host, if only one host has one there."""
        address = read_pci_address(bus_id)
        users = {
            rank
            for (name, bus), ranks in self.by_bus.items()
            if bus == address and (host is None or self._name_host(host) == name)
            for rank in ranks
        }
        return next(iter(users)) if len(users) == 1 else None

    def world_size(self) -> int | None:
        """Return the stated size, at least the highest rank + 1; None if it is unknown which ranks are missing."""
        sizes = set(self.sizes)
        if self.ranks and (sizes or len(self.ranks | self.silent_ranks) == max(self.ranks) + 1):
            sizes.add(max(self.ranks) + 1)
        return max(sizes, default=None)

    def missing_ranks(self) -> tuple[int, ...]:
        """Return the ranks of a stated world that no line and no file name names."""
        size = self.world_size() or 0
        return tuple(sorted(set(range(size)) - self.ranks)) if size <= _LARGEST_WORLD else ()

    def ranks_by_host(self) -> dict[str, tuple[int, ...]]:
        """Return the ranks of each host, both sorted."""
        return {name: tuple(sorted(ranks)) for name, ranks in sorted(group_by_host(self.hosts).items())}

    def knows_local_ranks(self) -> bool:
        """Does any line or file name pair a local rank with its rank?"""
        return bool(self._ranks_by_local)

    def is_one_host(self) -> bool:
        """Is only one host known, are local ranks equal to ranks, and is the world not several such hosts?"""
        is_alone = self._has_one_host() and not self.nodes.has_other_nodes()
        return is_alone and self._local_is_rank and not self._is_part_of_world()

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
        return {rank for rank in ranks if host is None or not self._is_elsewhere(rank, self._name_host(host))}

    def _is_elsewhere(self, rank: int, host: str) -> bool:
        """Is the rank on another host? An address and a name may be the same host, unless its address is known."""
        names = self.hosts.get(rank, set())
        return bool(names) and host not in names and all(self.host_names.has_like(name, host) for name in names)

    def _ranks_of_local(self, source: str, host: str | None, local: int | None) -> set[int]:
        if local is None:
            return set()
        for key in host_keys(source, host):
            ranks = self.by_local.get((key, local))
            if ranks and (key[0] != UNKNOWN_HOST_OF or self._is_one_node(key)):
                return ranks
        rank = self.nodes.rank_of(host_keys(source, host), local)
        if rank is not None:
            return {rank}
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
            stated = self.sources[source] = parse_file_name(source, self.root)
            if stated.host is not None:
                self._known_hosts.add(short_host(stated.host))
            run = RUN_DIRECTORY.match(source)
            if run and stated.host is None:
                self.run_directories.add(run["run"])
        return stated


def _first(value: T | None, other: T | None) -> T | None:
    return value if value is not None else other


__all__ = ["UNKNOWN_HOST_OF", "CommunicatorMember", "JobMap", "short_host"]
