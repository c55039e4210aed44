"""A stop from outside of a job that had stood still: it may have hung, or have evaluated or saved for long.

The steps that ranks report show it: before the stop all ranks made none for far longer than between any two of them.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence

from triage.base.rank_ranges import format_ranks
from triage.diagnose.candidates import Candidate
from triage.model import Evidence

LEAST = 60.0
"""Seconds without a step before a stop; a shorter pause is nothing."""
TIMES_LONGER = 5.0
"""So many times as long as the longest pause between two steps must it be."""
_FEWEST_STEPS = 3


def describe_silence(
    stop: Candidate, step_times: Mapping[int, Sequence[float]], last_step: Mapping[int, int], ranks: Collection[int]
) -> str:
    """Return a sentence about the time without steps before a stop; empty where it is too short.

    `step_times` are the times of the last steps of ranks, in seconds, `ranks` those of the job.
    """
    stopped = min((time for time in map(_own_time, stop.facts) if time is not None), default=None)
    if stopped is None or not step_times or set(ranks) - step_times.keys():
        return ""
    pauses = [pause for times in step_times.values() for pause in _list_pauses(times)]
    latest = max(max(times) for times in step_times.values())
    silent = stopped - latest
    if not pauses or silent < max(LEAST, TIMES_LONGER * max(pauses)):
        return ""
    behind = _describe_behind(last_step)
    return f"No rank made a step in the {silent:.0f} s before: it may have hung before it was stopped{behind}"


def _list_pauses(times: Sequence[float]) -> list[float]:
    if len(times) < _FEWEST_STEPS:
        return []
    return [then - one for one, then in itertools.pairwise(sorted(times))]


def _own_time(fact: Evidence) -> float | None:
    return None if fact.inherits_time else fact.origin.time


def _describe_behind(last_step: Mapping[int, int]) -> str:
    """Return which ranks had reported fewer steps than most, if they are the fewer."""
    steps = sorted(last_step.values())
    usual = steps[len(steps) // 2]
    behind = [rank for rank, step in last_step.items() if step < usual]
    return f"; {format_ranks(behind)} last reported step {min(steps)}, most others {usual}" if behind else ""
