"""Find out whether the files are of several runs of one program, by their names and by the ranks in them."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from triage.base.lazy_re import lazy_re
from triage.compare.quantities import RankValue
from triage.ranks.file_names import parse_file_name
from triage.ranks.identity import JobMap

_RUN = lazy_re(
    r"(?i)(?<![a-z])(?:re-?runs?|runs?|trial|try|exp|experiment|repeat|repetition|rep|repro|execution|launch|first|"
    r"second|third|original|baseline|again)(?![a-z])|\d{8}[_T-]\d{4,6}|\d{4}-\d\d-\d\d"
)
_RANK_IN_NAME = lazy_re(r"(?i)[._-]?(?:global[._-]?|local[._-]?)?rank[._-]?\d+")
_UNKNOWN = -1


def find_runs(values: Iterable[RankValue], job: JobMap) -> dict[str, str]:
    """Return source to run; empty unless several directories or files each hold the same ranks.

    Directories of hosts and of attempts are no runs.
    """
    ranks: dict[str, set[int]] = defaultdict(set)
    for value in values:
        ranks[value.source].add(_UNKNOWN if value.rank is None else value.rank)
    run_of = {source: name for source, name in _distinct_parts(sorted(ranks)).items() if not _is_other_part(name)}
    members: dict[str, set[int]] = defaultdict(set)
    for source, name in run_of.items():
        members[name] |= ranks[source]
    named = {name: of_run for name, of_run in members.items() if _RUN.search(name)}
    chosen = named if len(named) > 1 else members if len(members) == len({*run_of.values()}) else {}
    if len(chosen) < 2 or (len(run_of) < len(ranks) and not named) or not _hold_same_world(chosen, job, bool(named)):
        return {}
    return {source: name for source, name in run_of.items() if name in chosen}


def _distinct_parts(sources: Sequence[str]) -> dict[str, str]:
    """Return source to the first part of its path that is not common to all, without rank and ending."""
    paths = [source.split("/") for source in sources]
    depth = sum(1 for _ in itertools.takewhile(lambda parts: len(set(parts)) == 1, zip(*paths, strict=False)))
    parts: dict[str, str] = {}
    for source, path in zip(sources, paths, strict=True):
        name = path[min(depth, len(path) - 1)]
        is_file = depth >= len(path) - 1
        parts[source] = _RANK_IN_NAME.sub("", name.partition(".")[0] if is_file else name)
    return parts


def _is_other_part(name: str) -> bool:
    stated = parse_file_name(f"{name}/x.log")
    return not name or stated.host is not None or "attempt" in name.lower()


def _hold_same_world(members: Mapping[str, set[int]], job: JobMap, is_named: bool) -> bool:
    """Whether all have the same ranks, and these are a whole world, as far as one is stated."""
    ranks = next(iter(members.values()))
    if any(of_run != ranks for of_run in members.values()):
        return False
    world = max(job.sizes, default=0)
    is_whole = ranks == set(range(len(ranks))) and world in (0, len(ranks))
    return is_named or is_whole or (ranks == {_UNKNOWN} and world < 2)
