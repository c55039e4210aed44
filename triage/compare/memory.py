"""Memory per rank, compared beside an out-of-memory error: is one rank much fuller than the others?"""

from __future__ import annotations

from collections.abc import Sequence

from triage.compare.quantities import Value
from triage.compare.values import Values, of_worth
from triage.compare.words import say_ranks
from triage.evidence.inference import inferred
from triage.model.evidence import Evidence

# So much more than the median, relatively and in bytes, is no accident of the moment.
FULLER = 1.3
AT_LEAST = 1e9
_ORDER = ("memory allocated", "allocated", "mem allocated", "max memory allocated")


def out_of_memory(facts: Sequence[Evidence]) -> bool:
    """Does any fact tell of an accelerator that ran out of memory?"""
    return any("out of memory" in fact.text for fact in facts)


def imbalanced(values: Values) -> list[Evidence]:
    """One inference for the fullest ranks, if they are much fuller than the median; of one quantity only."""
    import statistics

    told = of_worth(values.ends, "memory")
    for key in sorted(told, key=lambda key: (key.lower().replace("_", " ") not in _ORDER, key)):
        last = _last(told[key])
        numbers = {rank: value.number for rank, value in last.items() if value.number is not None}
        if len(numbers) < 2:
            continue
        middle = statistics.median_low(numbers.values())
        full = [rank for rank, number in numbers.items() if number >= FULLER * middle and number - middle >= AT_LEAST]
        if full:
            top = max(full, key=lambda rank: (numbers[rank], -rank))
            text = (
                f"memory use differs between ranks: rank {top} has {numbers[top] / 1e9:.2f} GB {key.lower().replace('_', ' ')}, "
                f"the median is {middle / 1e9:.2f} GB"
            ) + (f"; as full are {say_ranks([rank for rank in full if rank != top])}" if len(full) > 1 else "")
            value = last[top]
            basis = Evidence(
                "value", "memory", value.line, value.origin, value.source, value.offset, value.offset, {}, value.line
            )
            return inferred("memory-imbalance", full, text, basis, quantity=key)
    return []


def _last(values: Sequence[Value]) -> dict[int, Value]:
    """The last value of each rank, at the last step that all of them tell if there is one."""
    ranks = {value.rank for value in values}
    shared = set.intersection(*({value.step for value in values if value.rank == rank} for rank in ranks)) - {None}
    step = max((step for step in shared if step is not None), default=None)
    found: dict[int, Value] = {}
    for value in sorted(values, key=lambda value: (value.attempt, value.source, value.offset)):
        if step is None or value.step == step:
            found[value.rank] = value
    return found
