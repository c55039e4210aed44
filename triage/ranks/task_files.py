"""The number of a task in a file name, as in `slurm-123_4.out`: a rank of the job, or the number of an array job.

It is a rank where there is a file for each rank of the stated world, or where the lines of several of the files name
the rank that their own name has, and no line of another names another. All files of one job number count together, so
that those of stderr, which tasks without errors leave out, take part.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping

from triage.ranks.file_names import TASK_NAMING, remove_compression

_FEWEST = 2


def find_ranks_of_tasks(
    sources: Iterable[str], by_source: Mapping[str, Collection[int]], sizes: Collection[int]
) -> dict[str, int]:
    """Return the rank of each source whose task is its rank; `by_source` has the ranks that its lines name."""
    jobs: dict[str, dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
    for source in sources:
        if (match := TASK_NAMING.pattern.search(remove_compression(source))) is not None:
            jobs[match["job"]][int(match["task"])].append(source)
    return {
        source: task
        for by_task in jobs.values()
        if set(by_task) == set(range(max(sizes, default=0))) or _agree_with_lines(by_task, by_source)
        for task, names in by_task.items()
        for source in names
    }


def _agree_with_lines(by_task: Mapping[int, Collection[str]], by_source: Mapping[str, Collection[int]]) -> bool:
    stated = {
        (task, next(iter(ranks)))
        for task, names in by_task.items()
        for name in names
        if len(ranks := by_source.get(name, ())) == 1
    }
    return len(stated) >= _FEWEST and all(task == rank for task, rank in stated)
