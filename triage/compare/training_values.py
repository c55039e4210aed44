"""Summarize what one rank printed of the training, so that two jobs can be compared without their logs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from triage.compare.observed_values import ObservedValues
from triage.compare.quantities import RankValue
from triage.model.environment import TrainingValues

FEWEST_SECONDS = 1.0  # a time of whole seconds says nothing of a shorter part
MOST_QUANTITIES, MOST_STEPS = 12, 6  # at either end of the text
_FIRST_TEXTS = 8  # texts whose starts are read; a job has its lowest rank in one of these
_AGREEMENTS = ("must", "maybe")


def summarize_training(values: ObservedValues) -> TrainingValues | None:
    """Return the pace and the values of the last attempt of the lowest rank that prints steps; None without any."""
    ends = [value for value in values.ends if value.agreement in _AGREEMENTS and value.step is not None]
    if not ends or values.run_of:
        return None
    first = min(ends, key=lambda value: (value.writer, value.source))
    names = list(values.finders)
    place = names.index(first.source) + 1
    starts = values.read_starts(place) if place <= _FIRST_TEXTS else []
    of_rank = [
        value
        for value in dict.fromkeys([*starts, *ends])
        if (value.source, value.writer) == (first.source, first.writer) and value.agreement in _AGREEMENTS
    ]
    attempt = max(value.attempt for value in of_rank)
    printed = sorted((value for value in of_rank if value.attempt == attempt), key=lambda value: value.offset)
    stepped = [value for value in printed if value.step is not None]
    return TrainingValues(
        _steps_per_second(stepped), max((value.step or 0 for value in stepped), default=None), _by_quantity(stepped)
    )


def _steps_per_second(values: Sequence[RankValue]) -> float | None:
    """Return the pace from the first to the last step with a time; None where steps or times do not ascend."""
    timed = [(value.origin.time, value.step) for value in values if value.origin.time is not None]
    if not timed:
        return None
    (begin, first), (end, last) = timed[0], timed[-1]
    seconds, steps = (end or 0.0) - (begin or 0.0), (last or 0) - (first or 0)
    return round(steps / seconds, 6) if steps > 0 and seconds >= FEWEST_SECONDS else None


def _by_quantity(values: Sequence[RankValue]) -> dict[str, tuple[tuple[int, str], ...]]:
    """Return the first and the last steps of each quantity; a later line of a step replaces an earlier one."""
    by_name: dict[str, dict[int, str]] = defaultdict(dict)
    for value in values:
        if value.step is not None:
            by_name[value.key.lower()][value.step] = value.text
    names = sorted(by_name, key=lambda name: ("." in name, name))[:MOST_QUANTITIES]
    chosen = {}
    for name in names:
        pairs = sorted(by_name[name].items())
        chosen[name] = tuple(dict.fromkeys([*pairs[:MOST_STEPS], *pairs[-MOST_STEPS:]]))
    return chosen
