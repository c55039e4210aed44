"""Numbers in the names of files that are ranks: `slurm-123_4.out`, `worker-3.log`.

A number may also be that of an array job, a pod, a run or a rotated file. It is a rank where there is a file for each
rank of the stated world, or where the lines of several of the files name the rank that their own name has, or their
processes call themselves by that number, and no line of another names another. All files of one job number of Slurm
count together, so that those of stderr, which tasks without errors leave out, take part; others are named alike but for
one number and the stream.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from types import MappingProxyType

from triage.base.lazy_re import lazy_re
from triage.ranks.file_names import TASK_NAMING, remove_compression
from triage.ranks.process_numbers import ProcessNumber, find_ranks_by_numbers
from triage.ranks.sole_ranks import name_process

_FEWEST = 2
_NUMBER = lazy_re(r"(?<!\d)\d{1,6}(?!\d)")
_ROTATED = lazy_re(r"\.(?:log|txt|out|err)\.\d{1,3}$")
Family = Mapping[int, Collection[str]]
"""The files of each number."""
Stated = Callable[[str, int], Collection[int]]
"""Returns the ranks that a file names, whose name has a number."""


def find_ranks_of_tasks(
    sources: Iterable[str],
    by_source: Mapping[str, Collection[int]],
    sizes: Collection[int],
    numbers: Mapping[str, Collection[ProcessNumber]] = MappingProxyType({}),
) -> dict[str, int]:
    """Return the rank of each source whose number, or that of its process, is its rank.

    `by_source` has the ranks that its lines name, `numbers` those by which its process calls itself.
    """
    names = list(sources)
    called = {source: {one.number for one in of} for source, of in numbers.items() if not by_source.get(source)}

    def stated(source: str, number: int) -> Collection[int]:
        """Return the ranks that a file names, as far as they can differ from the number in its name."""
        own = called.get(source, set())
        return by_source.get(source) or ({number} if number in own else own)

    unstated = {source for source in names if not by_source.get(source)}  # the lines of the others say more
    numbered = {
        source: number
        for source, number in _take_ranks(_list_numbered(names, stated) if unstated else (), stated, sizes)
        if source in unstated
    }
    ranks = (
        find_ranks_by_numbers(numbers, by_source, sizes)
        | numbered
        | dict(_take_ranks(_list_tasks(names), stated, sizes))
    )
    return {name: ranks[name] for name in names if name in ranks}


def _take_ranks(families: Iterable[Family], stated: Stated, sizes: Collection[int]) -> Iterator[tuple[str, int]]:
    """Yield the files and numbers of families whose numbers are ranks."""
    for family in families:
        if set(family) == set(range(max(sizes, default=0))) or _agree_with_lines(family, stated):
            for number, members in family.items():
                yield from ((source, number) for source in members)


def _list_tasks(sources: Iterable[str]) -> Iterator[Family]:
    """Yield the files of each job number of Slurm by their task."""
    jobs: dict[str, dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
    for source in sources:
        if (match := TASK_NAMING.pattern.search(remove_compression(source))) is not None:
            jobs[match["job"]][int(match["task"])].append(source)
    yield from jobs.values()


def _list_numbered(sources: Iterable[str], stated: Stated) -> Iterator[Family]:
    """Yield the files that are named alike but for one number, if no line of them names another rank."""
    families: dict[tuple[str, str], dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
    for source in sources:
        name = remove_compression(source)
        if _ROTATED.search(name) is None:
            process = name_process(name)
            for match in _NUMBER.finditer(process):
                families[process[: match.start()], process[match.end() :]][int(match[0])].append(source)
    for family in families.values():
        if len(family) >= _FEWEST and all(
            set(stated(name, number)) <= {number} for number, names in family.items() for name in names
        ):
            yield family


def _agree_with_lines(family: Family, stated: Stated) -> bool:
    pairs = {
        (number, next(iter(ranks)))
        for number, names in family.items()
        for name in names
        if len(ranks := stated(name, number)) == 1
    }
    return len(pairs) >= _FEWEST and all(number == rank for number, rank in pairs)
