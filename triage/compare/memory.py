"""Compare memory per rank when a device ran out of memory: does one rank use much more than the others?"""

from __future__ import annotations

from collections.abc import Sequence

from triage.base.rank_ranges import format_ranks
from triage.compare.divergence import value_evidence
from triage.compare.observed_values import ObservedValues, group_by_quantity
from triage.compare.quantities import RankValue
from triage.evidence.inference import make_inferences
from triage.model.evidence import Evidence

# More than the median by this factor and by these bytes is not random.
MIN_RATIO = 1.3
MIN_BYTES = 1e9
_PREFERRED_QUANTITIES = ("memory allocated", "allocated", "mem allocated", "max memory allocated")


def has_out_of_memory(facts: Sequence[Evidence]) -> bool:
    """Whether an accelerator ran out of memory."""
    return any("out of memory" in fact.text for fact in facts)


def infer_memory_imbalance(values: ObservedValues) -> list[Evidence]:
    """One inference for the ranks that use much more than the median, from the first quantity that shows it."""
    import statistics

    by_key = group_by_quantity(values.ends, "memory")
    for key in sorted(by_key, key=lambda key: (_plain_name(key) not in _PREFERRED_QUANTITIES, key)):
        last = _last_values(by_key[key])
        numbers = {rank: value.number for rank, value in last.items() if value.number is not None}
        if len(numbers) < 2:
            continue
        median = statistics.median_low(numbers.values())
        full = [rank for rank, used in numbers.items() if used >= MIN_RATIO * median and used - median >= MIN_BYTES]
        if full:
            top = max(full, key=lambda rank: (numbers[rank], -rank))
            others = [rank for rank in full if rank != top]
            text = f"Device memory use differs between ranks: rank {top} has {numbers[top] / 1e9:.2f} GB"
            text += f" {_plain_name(key)}, the median is {median / 1e9:.2f} GB"
            text += f"; {format_ranks(others)} also {'uses' if len(others) == 1 else 'use'} much more" if others else ""
            return make_inferences("memory-imbalance", full, text, value_evidence(last[top]), quantity=key)
    return []


def _plain_name(key: str) -> str:
    return key.lower().replace("_", " ")


def _last_values(values: Sequence[RankValue]) -> dict[int, RankValue]:
    """The last value of each rank, at the last step that all ranks print if there is one."""
    steps: dict[int | None, set[int | None]] = {}
    for value in values:
        steps.setdefault(value.rank, set()).add(value.step)
    shared = set.intersection(*steps.values()) - {None}
    step = max((step for step in shared if step is not None), default=None)
    ordered = sorted(values, key=lambda value: (value.attempt, value.source, value.offset))
    return {value.rank: value for value in ordered if value.rank is not None and (step is None or value.step == step)}
