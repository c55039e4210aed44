"""Files and hosts of one rank each: their lines are of that rank, also those that name none.

Only where the ranks are complete: as many files (or hosts) as the world has ranks, and one for each rank. A console
where one rank logs for all of its node is no such file.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from triage.base.digit_masks import mask_text
from triage.base.lazy_re import lazy_re

_LONGEST = 1 << 10  # characters of a name whose mask is remembered
_FEWEST = 2  # of a single file nobody knows whether other ranks write to it
# How the names of one process's files differ: by stream, attempt, and the number of a rotated file.
_VARIANTS = lazy_re(
    r"(?i)(?:(?<=/)|^)(?:logs?|out(?:put)?|err(?:or)?s?)(?=[._-])|std(?:out|err)|(?<=[._-])(?:out|err|log|txt)(?:\.\d+)?(?:\.(?:gz|xz|zst|bz2))?$|attempt[_-]?\d+|"
    r"restart[_-]?\d+"
)


def name_process(source: str) -> str:
    """Return what the names of all files of one process have in common."""
    if len(source) > _LONGEST or "bz2" in source.lower():  # the only digit that the pattern tells from others
        return _VARIANTS.sub("", source)
    parts = _list_common_parts(mask_text(source))
    return source if len(parts) == 1 else "".join([source[part] for part in parts])


@functools.lru_cache(1 << 12)
def _list_common_parts(mask: str) -> Sequence[slice]:
    """Return where it stands in all names with a mask."""
    spans = [match.span() for match in _VARIANTS.finditer(mask)]
    starts, ends = [0, *(end for _, end in spans)], [*(start for start, _ in spans), len(mask)]
    return [slice(start, end) for start, end in zip(starts, ends, strict=True)]


def find_files_of_one_rank(by_source: Mapping[str, Collection[int]], sizes: Collection[int]) -> dict[str, int]:
    """Return the processes whose files name one rank, with it, if each rank of the world has one."""
    ranks: dict[str, set[int]] = defaultdict(set)
    for source, of in by_source.items():
        ranks[name_process(source)].update(of)
    sole = {process: next(iter(of)) for process, of in ranks.items() if len(of) == 1}
    return sole if _is_complete(sole.values(), sizes) else {}


def find_hosts_of_one_rank(hosts: Mapping[int, Collection[str]], sizes: Collection[int]) -> dict[str, int]:
    """Return the hosts with one rank each, if all ranks of the world have their own."""
    ranks = group_by_host(hosts)
    is_sole = all(len(names) <= 1 for names in hosts.values()) and all(len(of) == 1 for of in ranks.values())
    sole = {name: next(iter(of)) for name, of in ranks.items()} if is_sole else {}
    return sole if _is_complete(sole.values(), sizes) else {}


def group_by_host(hosts: Mapping[int, Collection[str]]) -> dict[str, set[int]]:
    """Return the ranks of each host."""
    ranks: dict[str, set[int]] = defaultdict(set)
    for rank, names in hosts.items():
        for name in names:
            ranks[name].add(rank)
    return ranks


def _is_complete(ranks: Iterable[int], sizes: Collection[int]) -> bool:
    numbers = sorted(ranks)
    world = max(sizes, default=len(numbers))
    return world >= _FEWEST and numbers == list(range(world))
