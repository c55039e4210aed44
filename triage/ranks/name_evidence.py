"""Which ranks only file names give, and which of those names are not believed.

`exp_rank8.log` may be named after an experiment. Its number is taken back if the lines of the file are of several
ranks, or if it would be a rank beyond the known world, unless the names of its siblings count up to it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import count

from triage.base.lazy_dataclass import dataclass
from triage.base.lazy_re import lazy_re

Join = tuple[str, Hashable, int]
_BARE = lazy_re(r"(?i)(?:^|/)rank[_.-]?\d+(?:\.\w+)*(?:$|/)")
_DIGITS = lazy_re(r"\d+")


@dataclass
class NameEvidence:
    """What lines join by themselves, and what they join only with the rank in the name of their file.

    A join is (kind, key, rank), such as ("pid", 412, 3). `doubtful` are the ranks of names that are not believed.
    """

    by_lines: set[Join] = field(default_factory=set)
    by_names: dict[str, set[Join]] = field(default_factory=lambda: defaultdict(set))
    doubtful: dict[str, int] = field(default_factory=dict)
    _ranks: dict[str, int] = field(default_factory=dict)

    def add(self, source: str, named_rank: int | None, joins: Sequence[Join]) -> None:
        """Add what a line joins; `named_rank` if it is the name of the source that gives the rank."""
        if named_rank is None:
            self.by_lines.update(joins)
        else:
            self.by_names[source].update(joins)
            self._ranks[source] = named_rank

    def rename_hosts(self, name_host: Callable[[str], str]) -> None:
        """Give hosts other names."""
        self.by_lines = {_renamed(join, name_host) for join in self.by_lines}
        for source, joins in self.by_names.items():
            self.by_names[source] = {_renamed(join, name_host) for join in joins}

    def find_doubtful(self, sizes: Collection[int], by_source: Mapping[str, Collection[int]]) -> set[str]:
        """Return the sources whose names give a rank that is not believed."""
        of_lines = {rank for kind, _, rank in self.by_lines if kind == "rank"}
        # Without a stated size the ranks of lines are the world if they are at least two and none is missing.
        is_complete = len(of_lines) > 1 and of_lines == set(range(len(of_lines)))
        world = max({*sizes, *([len(of_lines)] if is_complete else [])}, default=0)
        siblings: dict[str, set[int]] = defaultdict(set)
        for source, rank in self._ranks.items():
            siblings[_DIGITS.sub("#", source)].add(rank)
        families = {pattern: ranks | of_lines for pattern, ranks in siblings.items()}
        first_missing = {pattern: _first_missing(ranks) for pattern, ranks in families.items()}
        for source, rank in self._ranks.items():
            pattern = _DIGITS.sub("#", source)
            family = families[pattern]
            is_beyond = bool(world) and rank >= world and first_missing[pattern] < rank
            others = set(by_source.get(source, ())) - {rank}
            # `rank_7.log` is named after its rank, `exp_rank8.log` maybe after an experiment, which lines refute.
            is_beyond |= bool(others) and rank > max(others) and not _BARE.search(source) and len(family) <= 2
            if is_beyond or len(others) > (0 if rank in by_source.get(source, ()) else 2):
                self.doubtful[source] = rank
        return set(self.doubtful)

    def take_back(self) -> Iterator[Join]:
        """Yield the joins that only names give that are not believed."""
        believed = self.by_lines.union(
            *(self.by_names[source] for source in self.by_names if source not in self.doubtful)
        )
        for source in sorted(self.doubtful):
            yield from sorted(self.by_names[source] - believed, key=str)


def _first_missing(ranks: Collection[int]) -> int:
    """Return the smallest rank that is not among them."""
    return next(rank for rank in count() if rank not in ranks)


def _renamed(join: Join, name_host: Callable[[str], str]) -> Join:
    kind, key, rank = join
    if kind == "host" and isinstance(key, str):
        return kind, name_host(key), rank
    if kind == "local" and isinstance(key, tuple):
        return kind, (name_host(key[0]), *key[1:]), rank
    return join
