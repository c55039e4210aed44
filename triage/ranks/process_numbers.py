"""Numbers by which processes call themselves, where no line has a rank: `process 2 of 4`, Gloo's `Rank 2 is connected`.

Such a number may also be that in a smaller group, or that of a worker that is no rank. It is a rank where the numbers
of all processes together are those of one group, each once, or where the names of their files have the same numbers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping

from triage.base.lazy_dataclass import dataclass
from triage.base.masked_re import masked_re
from triage.ranks.sole_ranks import name_process

_FEWEST = 2
_LONGEST = 400
_OF_GROUP = masked_re(
    r"(?i)\b(?:process|task|trainer)(?:[ _](?:id|index))?[ :=#]{1,2}(\d{1,6})(?: ?/ ?| out of | of )(\d{1,7})\b(?! ?%)"
)
# gloo/transport/tcp, and torch and JAX around it: the peers are all members but the process itself.
_GLOO = masked_re(r"\[Gloo\] Rank (\d{1,6}) is connected to (\d{1,7}) peer ranks")
# The arguments of jax.distributed.initialize, and its environment.
_ALONE = masked_re(r"(?i)(?<![A-Za-z])(?:jax_)?process_(?:id|index)['\"]?[ :=]{1,2}(\d{1,6})\b")


def numbers_itself(line: str) -> bool:
    """Whether `read_process_numbers` may find a number in a line; no single digit decides that."""
    return any(pattern.may_match(line) for pattern in (_OF_GROUP, _GLOO, _ALONE))


@dataclass(frozen=True, slots=True)
class ProcessNumber:
    """A process calls itself `number` of `size`; 0: it does not say of how many."""

    number: int
    size: int = 0


def read_process_numbers(line: str) -> Iterator[ProcessNumber]:
    """Yield the numbers by which the writer of a line calls itself."""
    line = line[:_LONGEST]
    for match in _OF_GROUP.finditer(line):
        yield ProcessNumber(int(match[1]), int(match[2]))
    for match in _GLOO.finditer(line):
        yield ProcessNumber(int(match[1]), int(match[2]) + 1)
    for match in _ALONE.finditer(line):
        yield ProcessNumber(int(match[1]))


def find_ranks_by_numbers(
    numbers: Mapping[str, Collection[ProcessNumber]],
    by_source: Mapping[str, Collection[int]],
    sizes: Collection[int] = (),
) -> dict[str, int]:
    """Return the rank of each source whose process is the only one with its number in the largest group.

    None where a number of the group is missing or stands in the files of two processes, where lines of any of them name
    another rank, or where `sizes` has a larger world.
    """
    size = max((one.size for of in numbers.values() for one in of), default=0)
    if size < max(sizes, default=0):
        return {}
    files: dict[str, set[str]] = defaultdict(set)
    in_largest: dict[str, set[int]] = defaultdict(set)
    for source, of in numbers.items():
        files[name_process(source)].add(source)
        in_largest[name_process(source)].update(one.number for one in of if one.size == size)
    ranks = {process: next(iter(of)) for process, of in in_largest.items() if len(of) == 1}
    is_complete = len(ranks) == len(in_largest) >= _FEWEST and sorted(ranks.values()) == list(range(size))
    by_file = {source: rank for process, rank in ranks.items() for source in files[process]} if is_complete else {}
    agree = all(set(by_source.get(source, ())) <= {rank} for source, rank in by_file.items())
    return by_file if agree else {}
