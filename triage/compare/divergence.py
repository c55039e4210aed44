"""Find quantities that ranks print, that must agree, and that diverge: the first step, the odd ranks or nodes.

The head and the tail of every text show whether ranks agree at the start and at the end. Only when they do not, the
first differing step is searched, in a few of the files.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

from triage.base.lazy_re import lazy_re
from triage.base.rank_ranges import format_ranks
from triage.compare import step_comparison
from triage.compare.differing_sides import format_difference_of_values
from triage.compare.first_difference import FirstDifference, find_first_difference
from triage.compare.observed_values import ObservedValues, group_by_quantity
from triage.compare.quantities import RankValue
from triage.compare.step_comparison import Row, StepComparison
from triage.evidence.inference import LASTING, make_inferences
from triage.model.evidence import Evidence

_MAX_END_STEPS = 6  # common steps that are compared at either end
_FIRST_TEXTS = 8  # texts whose starts show whether the others need to be read
_VALUE_LIST = lazy_re(r"(?P<quantity>\S*\w)[^\s\w]* (?:(?:is|are|was|were) )?inconsistent: \[(?P<values>[^\]\n]*)")


def find_divergence(values: ObservedValues) -> list[FirstDifference]:
    """The first difference of each quantity that diverged, within each run."""
    differences: list[FirstDifference] = []
    for run in sorted(set(values.run_of.values())) or [""]:
        ends = [value for value in values.ends if value.run == run]
        for key, same in group_by_quantity(ends, "exact", "must", "maybe", "fixed").items():
            difference = _find_difference(key, same, values)
            differences += [difference] if difference is not None else []
    return differences + _find_fixed_differences(values, {one.key for one in differences})


def _find_difference(key: str, ends: Sequence[RankValue], values: ObservedValues) -> FirstDifference | None:
    """The first difference of one quantity; None where the ranks agree, or need not agree."""
    agreement = ends[0].agreement
    _, last = compare_end_steps(ends)
    if all(item.outcome == "equal" for item in last.values()):
        return None
    if agreement == "maybe" and _differs_from_the_start(key, last, values):
        return None
    writers = {value.writer for value in ends}
    starts = (value for value in values.read_starts(len(values.finders)) if value.key == key)
    everything = [*(value for value in starts if value.writer in writers), *ends]
    rows, compared = compare_end_steps(list(dict.fromkeys(everything)))
    kind = step_comparison.classify_difference(agreement, rows, compared)
    if kind == "none" or (kind == "odd" and values.has_model_parts):
        return None
    return find_first_difference(key, rows, compared, values)


def _find_fixed_differences(values: ObservedValues, known: set[str]) -> list[FirstDifference]:
    """Differences of quantities that are printed once, at the start."""
    differences: list[FirstDifference] = []
    if values.has_model_parts or not values.may_have_fixed:
        return []
    for run in sorted(set(values.run_of.values())) or [""]:
        starts = [value for value in values.read_starts(len(values.finders)) if value.run == run]
        for key, same in group_by_quantity(starts, "fixed").items():
            difference = _find_difference(key, same, values) if key not in known else None
            differences += [difference] if difference is not None else []
    return differences


def compare_end_steps(
    values: Sequence[RankValue],
) -> tuple[Mapping[int | None, Row], dict[int | None, StepComparison]]:
    """The values of one quantity by step, and the comparison of the first and the last common steps."""
    rows = step_comparison.group_by_step(values)
    steps = step_comparison.list_common_steps(rows)
    steps = [*steps[:_MAX_END_STEPS], *steps[max(_MAX_END_STEPS, len(steps) - _MAX_END_STEPS) :]]
    return rows, {step: step_comparison.compare_step(rows[step]) for step in steps}


def _differs_from_the_start(key: str, last: Mapping[int | None, StepComparison], values: ObservedValues) -> bool:
    """Whether ranks have different values by design: at all last steps, and in the first texts at all first steps."""
    if any(item.outcome != "mixed" for item in last.values()):
        return False
    starts = [value for value in values.read_starts(_FIRST_TEXTS) if value.key == key]
    first = compare_end_steps(starts)[1]
    return bool(first) and all(item.outcome == "mixed" for item in first.values())


def infer_divergence(
    differences: Iterable[FirstDifference], facts: Sequence[Evidence], remarks: Mapping[str, str]
) -> list[Evidence]:
    """One inference for each odd rank of each quantity that diverged.

    `remarks` are clauses by quantity that are added to its sentence.
    """
    inferences = [fact for one in differences for fact in _infer_value_diverged(one, remarks.get(one.key, ""))]
    return inferences + _infer_from_value_lists(facts)


def _infer_value_diverged(difference: FirstDifference, remark: str) -> list[Evidence]:
    groups = difference.comparison.groups
    affected = difference.comparison.odd or tuple(value for group in groups for value in group)
    shown = groups[1][0]
    inference = make_inferences(
        "value-diverged",
        [value.rank for value in affected if value.rank is not None],
        format_difference_of_values(difference) + remark,
        value_evidence(shown),
        quantity=difference.key,
        step=str(difference.step if difference.step is not None else ""),
    )[0]
    if difference.step is not None:
        inference = dataclasses.replace(inference, fields={**inference.fields, LASTING: "yes"})
    return [_place_at(inference, value) for value in _one_of_each(affected)]


def _one_of_each(values: Sequence[RankValue]) -> list[RankValue]:
    """One value of each rank, or of each host where no rank is known."""
    return list({value.rank if value.rank is not None else value.origin.host: value for value in values}.values())


def _place_at(fact: Evidence, value: RankValue) -> Evidence:
    """An inference at the line of its own rank, with the host of that rank."""
    origin = dataclasses.replace(fact.origin, rank=value.rank, host=value.origin.host)
    return dataclasses.replace(
        fact, origin=origin, source=value.source, offset=value.offset, end=value.offset, excerpt=value.line
    )


def value_evidence(value: RankValue) -> Evidence:
    """The line of a value as evidence, for an inference that rests on it."""
    return Evidence(
        "value", value.agreement, value.line, value.origin, value.source, value.offset, value.offset, {}, value.line
    )


def _infer_from_value_lists(facts: Sequence[Evidence]) -> list[Evidence]:
    """`WARNING: w inconsistent: [1.0, 1.0, 1.5, 1.0]`: one rank prints the values of all, in the order of the ranks."""
    inferences: list[Evidence] = []
    known: set[str] = set()
    for fact in facts:
        match = _VALUE_LIST.search(fact.text) if "inconsistent: [" in fact.text else None
        if match is None or match["values"] in known:
            continue
        known.add(match["values"])
        texts = [text.strip() for text in match["values"].split(",")]
        usual = max(sorted(set(texts)), key=texts.count)
        odd = [rank for rank, text in enumerate(texts) if text != usual]
        is_clear = len(texts) - len(odd) >= step_comparison.MAJORITY * len(texts)
        if odd and is_clear and len(texts) >= step_comparison.MIN_RANKS:
            sides = f"{format_ranks(odd)} {'have' if len(odd) > 1 else 'has'} {texts[odd[0]]}, the others {usual}"
            text = f"{match['quantity']} differs between ranks that must agree: {sides}"
            inferences += make_inferences("value-diverged", odd, text, fact, quantity=match["quantity"])
    return inferences
