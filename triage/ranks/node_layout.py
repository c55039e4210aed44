"""From a local rank and its node to the rank: `node rank × processes per node + local rank`.

It counts only if the size of a node is known, the world is a multiple of it, and no known rank contradicts. The index
of a node is stated (`--node_rank 1`), or its known ranks show it, or all nodes have numbered names (`node_0/`,
`node_1/`), or they are the pods of one job (`train-master-0`, `train-worker-0`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import field

from triage.base.lazy_dataclass import dataclass
from triage.base.lazy_re import lazy_re

_NODE_NAME = lazy_re(r"(?i)(?:^|/)(?:[\w.-]*?[_.-])?(?:node|host|machine|nnode)[_-]?(?P<node>\d{1,4})(?=[/._-]|$)")
# Pods of a job: `train-worker-3` of an operator, `train-3` of a StatefulSet, `train-3-x7k2p` of an indexed Job.
_POD_NAME = lazy_re(
    r"(?:^|/)(?P<job>[a-z0-9][a-z0-9.-]*?)-(?:(?P<role>master|chief|leader|worker|server|replica|node)-)?(?P<node>\d{1,4})"
    r"(?P<suffix>-[bcdfghjklmnpqrstvwxz2456789]{5})?(?:\.(?:log|txt|out|err))?$"
)
_FIRST_ROLES = ("master", "chief", "leader")
_SOURCE = "\0"  # before a place that is a source: its host is unknown
Pairs = Mapping[tuple[str, int], set[int]]


@dataclass
class NodeLayout:
    """What is known of nodes. A place is a host, a run directory, or a source where neither is known.

    `sizes` has the stated numbers of processes per node, `counts` those of nodes, `stated` the node ranks of places.
    `index` and `size` are derived by `resolve`.
    """

    sizes: set[int] = field(default_factory=set)
    counts: set[int] = field(default_factory=set)
    stated: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    index: dict[str, int] = field(default_factory=dict)
    size: int = 0

    def resolve(self, world: int, places: Mapping[str, str], local_ranks: set[int], pairs: Pairs) -> None:
        """Derive the index of each node.

        `places` maps each place to the path that names it, `pairs` (place, local rank) to ranks.
        """
        self.index.clear()
        numbered = _numbered_nodes(places) or _order_pods(places)
        self.size = self._find_size(world, local_ranks, len(set(numbered.values())))
        if not self.size:
            return
        for (place, local), ranks in pairs.items():
            if len(ranks) == 1 and not place.startswith(_SOURCE):
                self.index[place] = (next(iter(ranks)) - local) // self.size
        stated = self._find_stated()
        count = world // self.size
        named = numbered if set(numbered.values()) == set(range(count)) and 1 < count <= 10 else {}
        known = {**self.index, **stated}
        is_contradicted = any(known.get(place, node) != node for place, node in named.items())
        self.index = known if is_contradicted else {**named, **known}
        if not self._agrees_with(pairs):
            self.index, self.size = {}, 0

    def _find_stated(self) -> dict[str, int]:
        """Return the stated node ranks of places.

        A file without a host may be that of all nodes, unless several files have a node each.
        """
        stated = {place: next(iter(nodes)) for place, nodes in self.stated.items() if len(nodes) == 1}
        of_files = [node for place, node in stated.items() if place.startswith(_SOURCE)]
        if len(of_files) > 1 and len(set(of_files)) == len(of_files):
            return stated
        return {place: node for place, node in stated.items() if not place.startswith(_SOURCE)}

    def _find_size(self, world: int, local_ranks: set[int], nodes: int) -> int:
        """Return the number of processes on each node, if the world is a multiple of it and all agree; else 0."""
        counts = self.counts or ({nodes} if nodes > 1 else set())
        sizes = self.sizes or {world // count for count in counts if count and world % count == 0}
        size = next(iter(sizes)) if len(sizes) == 1 else 0
        is_whole = size > 0 and world > 0 and world % size == 0 and max(local_ranks, default=0) < size
        return size if is_whole and all(size * count == world for count in self.counts) else 0

    def _agrees_with(self, pairs: Pairs) -> bool:
        return all(
            rank % self.size == local and rank // self.size == self.index.get(place, rank // self.size)
            for (place, local), ranks in pairs.items()
            for rank in ranks
        )

    def rank_of(self, places: Iterable[str], local: int) -> int | None:
        """Return the rank of a local rank at the first of these places whose node is known."""
        nodes = [self.index[place] for place in places if place in self.index]
        return nodes[0] * self.size + local if nodes and self.size and local < self.size else None

    def has_other_nodes(self) -> bool:
        """Does any line say that there are several nodes, or that it is of another node than the first?"""
        return max(self.counts, default=1) > 1 or any(max(nodes) > 0 for nodes in self.stated.values())


def _numbered_nodes(places: Mapping[str, str]) -> dict[str, int]:
    """Return the index that the name of each place states, from 0, if every name has one and all look alike."""
    numbers: dict[str, int] = {}
    shapes = set()
    for place, match in _matches(places):
        numbers[place] = int(match[0])
        shapes.add(match[1])
    if not numbers or len(numbers) != len(places) or len(shapes) != 1:
        return {}
    lowest = min(numbers.values())
    return {place: number - lowest for place, number in numbers.items()} if lowest in (0, 1) else {}


def find_pod_ordinal(name: str) -> tuple[str, str, int] | None:
    """Return job, role and number in the name of a pod."""
    match = _POD_NAME.search(name)
    return (
        (match["job"] + ("-#####" if match["suffix"] else ""), match["role"] or "", int(match["node"]))
        if match
        else None
    )


def _order_pods(places: Mapping[str, str]) -> dict[str, int]:
    """Return the index of each place by the numbers of pods, all of one job; the master stands before the workers."""
    pods = {place: pod for place, path in places.items() if (pod := find_pod_ordinal(path)) is not None}
    if len(pods) != len(places) or len({job for job, _, _ in pods.values()}) != 1:
        return {}
    first = {place for place, (_, role, _) in pods.items() if role in _FIRST_ROLES}
    roles = {role for place, (_, role, _) in pods.items() if place not in first}
    if len(first) > 1 or len(roles) > 1:
        return {}
    return {place: 0 if place in first else number + len(first) for place, (_, _, number) in pods.items()}


def count_processes(places: Collection[str], pairs: Iterable[tuple[str, int]]) -> int:
    """Return the number of processes if (place, local rank) shows the same local ranks from 0 in all places; else 0."""
    known: dict[str, set[int]] = defaultdict(set)
    for place, local in pairs:
        known[place].add(local)
    size = max(map(len, known.values()), default=0)
    is_even = set(known) == set(places) and all(ranks == set(range(size)) for ranks in known.values())
    return size * len(places) if is_even else 0


def _matches(places: Mapping[str, str]) -> Iterator[tuple[str, tuple[str, str]]]:
    for place, path in places.items():
        match = _NODE_NAME.search(path)
        if match is not None:
            yield place, (match["node"], path[: match.start("node")])
