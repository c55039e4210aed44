"""Which attempt of a restarted job a fact belongs to: by its path, by the launcher's word that it restarts, by time,
else the last.

torchelastic says `… will restart worker group`; Slurm appends to the same file after `DUE TO JOB REQUEUE` (also
PREEMPTION, NODE FAILURE),
which counts where training went on below it.
"""

from __future__ import annotations

import bisect
import dataclasses
from collections.abc import Mapping, Sequence

from triage.base.lazy_re import lazy_re
from triage.diagnose.clocks import Clocks
from triage.model.evidence import Evidence

_RESTART = lazy_re(r"will restart worker group|restarting worker group")
_IN_PATH = lazy_re(r"attempt[_-]?\d")  # as ranks/files.py reads it
_REQUEUE = lazy_re(r"DUE TO (?:JOB REQUEUE|PREEMPTION|NODE FAILURE)")


def assign(facts: Sequence[Evidence], further: Mapping[str, int], clocks: Clocks) -> tuple[list[Evidence], int]:
    """The facts with their attempts, and the number of the last attempt. `further`: source to the offset of its last
    sign of progress.
    """
    marks = _marks(facts, further)
    last = max([fact.origin.attempt for fact in facts] + [len(lines) for lines in marks.values()], default=0)
    if not last:
        return list(facts), 0
    offsets = {source: [fact.offset for fact in lines] for source, lines in marks.items()}
    times = _times(marks, clocks)
    return [_placed(fact, offsets, times, clocks, last) for fact in facts], last


def _marks(facts: Sequence[Evidence], further: Mapping[str, int]) -> dict[str, list[Evidence]]:
    """Source to the lines after which another attempt begins."""
    found: dict[str, list[Evidence]] = {}
    for fact in facts:
        if fact.kind not in ("message", "scheduler") or fact.origin.attempt:
            continue
        if "worker group" not in fact.text and "DUE TO" not in fact.text:
            continue
        if _RESTART.search(fact.text) or (_REQUEUE.search(fact.text) and further.get(fact.source, -1) > fact.offset):
            found.setdefault(fact.source, []).append(fact)
    return {source: sorted(lines, key=lambda fact: fact.offset) for source, lines in found.items()}


def _times(marks: Mapping[str, Sequence[Evidence]], clocks: Clocks) -> dict[str, list[float]]:
    """By clock the times at which attempts ended, of the source that tells of most of them."""
    found: dict[str, list[float]] = {}
    for _, lines in sorted(marks.items()):
        readings = [reading for fact in lines if (reading := clocks.read(fact))]
        for clock in {clock for clock, _ in readings}:
            times = sorted(when for name, when in readings if name == clock)
            if len(times) > len(found.get(clock, ())):
                found[clock] = times
    return found


def _placed(
    fact: Evidence,
    offsets: Mapping[str, Sequence[int]],
    times: Mapping[str, Sequence[float]],
    clocks: Clocks,
    last: int,
) -> Evidence:
    if fact.origin.attempt or _IN_PATH.search(fact.source):
        return fact
    reading = clocks.read(fact)
    if fact.source in offsets:
        number = bisect.bisect_left(offsets[fact.source], fact.offset)
    elif reading is not None and reading[0] in times:
        number = bisect.bisect_left(times[reading[0]], reading[1])
    else:
        number = last
    return dataclasses.replace(fact, origin=dataclasses.replace(fact.origin, attempt=number)) if number else fact
