"""Which attempt of a restarted job a fact belongs to: by its path, by the place of the launcher's restart line, by
time, else the last.

torchelastic prints `… will restart worker group`. The announcements of Ray, of systemd and of training scripts, and
Slurm's `DUE TO JOB REQUEUE` (also PREEMPTION, NODE FAILURE) count where training went on below them. The log of a
container before its restart (`kubectl logs --previous`) is over where the present one shows progress.
"""

from __future__ import annotations

import bisect
import dataclasses
from collections.abc import Collection, Mapping, Sequence

from triage.base.lazy_re import lazy_re
from triage.base.masked_re import masked_re
from triage.diagnose.time_order import Clocks
from triage.model.evidence import Evidence

_RESTART = masked_re(r"will restart worker group|restarting worker group")
_ANNOUNCED = lazy_re(
    r"(?:[Rr]estarting|[Rr]elaunching) (?:the )?(?:training|all (?:workers|processes|ranks))\b|FailureDecision\.RETRY"
    r"|\[FailurePolicy\] RETRY|Attempting to restore trial|Scheduled restart job, restart counter"
)
_IN_PATH = lazy_re(r"attempt[_-]?\d")  # as ranks/file_names.py reads it
# `worker-0.previous.log`, `previous/worker-0.log`
_PREVIOUS = lazy_re(r"(?i)(?<![^/])prev(?:ious)?/|[._-]prev(?:ious)?(?=[./]|$)")
_REQUEUE = lazy_re(r"DUE TO (?:JOB REQUEUE|PREEMPTION|NODE FAILURE)")


def assign_attempts(
    facts: Sequence[Evidence], last_progress: Mapping[str, int], clocks: Clocks
) -> tuple[list[Evidence], int]:
    """Return the facts with their attempts, and the number of the last attempt.

    `last_progress` has the offset of the last sign of progress by source.
    """
    restarts = _restart_lines(facts, last_progress)
    last = max([fact.origin.attempt for fact in facts] + [len(lines) for lines in restarts.values()], default=0)
    if not last:
        return list(facts), 0
    offsets = {source: [fact.offset for fact in lines] for source, lines in restarts.items()}
    times = _restart_times(restarts, clocks)
    return [_with_attempt(fact, offsets, times, clocks, last) for fact in facts], last


def _restart_lines(facts: Sequence[Evidence], last_progress: Mapping[str, int]) -> dict[str, list[Evidence]]:
    """Return source to the lines after which another attempt begins."""
    restarts: dict[str, list[Evidence]] = {}
    for fact in facts:
        if fact.kind not in ("message", "scheduler") or fact.origin.attempt:
            continue
        went_on = last_progress.get(fact.source, -1) > fact.offset
        if _RESTART.search(fact.text) or (went_on and (_REQUEUE.search(fact.text) or _ANNOUNCED.search(fact.text))):
            restarts.setdefault(fact.source, []).append(fact)
    return {source: sorted(lines, key=lambda fact: fact.offset) for source, lines in restarts.items()}


def _restart_times(restarts: Mapping[str, Sequence[Evidence]], clocks: Clocks) -> dict[str, list[float]]:
    """Return by clock the times at which attempts ended, from the source that reports most of them."""
    by_clock: dict[str, list[float]] = {}
    for _, lines in sorted(restarts.items()):
        readings = [reading for fact in lines if (reading := clocks.read(fact))]
        for clock in {clock for clock, _ in readings}:
            times = sorted(when for name, when in readings if name == clock)
            if len(times) > len(by_clock.get(clock, ())):
                by_clock[clock] = times
    return by_clock


def _with_attempt(
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


def is_before_restart(source: str, progressing: Collection[str]) -> bool:
    """Whether a source is the log of a container before its restart, and its present log is of those that progress."""
    present = _PREVIOUS.sub("", source)
    return present != source and present in progressing
