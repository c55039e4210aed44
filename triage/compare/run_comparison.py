"""Compare runs of one program: values that agree and then part show that a run is not reproducible."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

from triage.compare.differing_sides import join_texts
from triage.compare.divergence import compare_end_steps, value_evidence
from triage.compare.first_difference import FirstDifference, find_first_difference
from triage.compare.observed_values import ObservedValues
from triage.compare.quantities import RankValue
from triage.compare.setting_rules import Condition, Rules
from triage.compare.step_comparison import classify_difference
from triage.evidence.inference import LASTING, make_inferences
from triage.model.evidence import Evidence

_AGREEMENTS = ("exact", "must", "maybe")
_ON = frozenset(("true", "1", "on", "yes"))
_MOST_NAMED = 4
# Switches that programs print, and that only determinism needs.
_PROGRAM_SWITCHES = ("use_deterministic_algorithms", "deterministic", "cudnn_deterministic")


def infer_runs_part(values: ObservedValues, settings: Iterable[Evidence], rules: Rules) -> list[Evidence]:
    """One inference where runs part although they ask for determinism, which is not complete."""
    if not values.run_of:
        return []
    partly_on = describe_partly_on(_stated_settings(settings), rules)
    difference = _find_parting(values) if partly_on else None
    if difference is None:
        return []
    groups = difference.comparison.groups
    names = sorted({value.run for group in groups for value in group})
    part = f"{join_texts(names[:_MOST_NAMED])} agreed until step {difference.equal_step}, differ since step"
    text = f"{difference.key}: runs {part} {difference.step} ({join_texts([group[0].text for group in groups])})"
    inferences = make_inferences(
        "determinism-incomplete",
        {value.rank for value in values.ends if value.run and value.rank is not None},
        f"{text}; determinism is not complete: {partly_on}",
        value_evidence(groups[1][0]),
        quantity=difference.key,
        step=str(difference.step),
    )
    return [dataclasses.replace(fact, fields={**fact.fields, LASTING: "yes"}) for fact in inferences]


def _find_parting(values: ObservedValues) -> FirstDifference | None:
    """The first difference between runs, of the first quantity and the lowest rank that shows one."""
    everything = [*values.read_starts(len(values.finders)), *values.ends]
    by_process: dict[tuple[int, str], list[RankValue]] = {}
    for value in dict.fromkeys(everything):
        if value.agreement in _AGREEMENTS and value.run:
            rank = value.rank if value.rank is not None else -1
            by_process.setdefault((rank, value.key), []).append(value)
    for (_, key), same in sorted(by_process.items()):
        rows, compared = compare_end_steps(same)
        kind = classify_difference(same[0].agreement, rows, compared)
        if len({value.writer for value in same}) > 1 and kind == "drift":
            return find_first_difference(key, rows, compared, values)
    return None


def _stated_settings(settings: Iterable[Evidence]) -> dict[str, set[str]]:
    """All values of each setting, in any run."""
    stated: dict[str, set[str]] = {}
    for fact in settings:
        for name, value in fact.fields.items():
            stated.setdefault(name, set()).add(value)
    return stated


def describe_partly_on(stated: Mapping[str, set[str]], rules: Rules) -> str:
    """`HCCL_DETERMINISTIC=true but LCCL_DETERMINISTIC is not stated`; empty if no switch is on, or all of a group."""
    for group in rules.groups:
        on = [one for one in group.conditions if _holds_everywhere(one, stated)]
        off = [one for one in group.conditions if one not in on]
        if off and any(condition.starts_group for condition in on):
            names = join_texts([f"{one.name}={_join_values(stated[one.name])}" for one in on])
            return f"{names} but {', '.join(_describe_off(one, stated) for one in off[:_MOST_NAMED])}"
    for name in _PROGRAM_SWITCHES:
        on_values = {value.lower() for value in stated.get(name, ())} & _ON
        if on_values:
            return f"{name}={_join_values(stated[name])} alone does not fix the order of all sums"
    return ""


def _holds_everywhere(condition: Condition, stated: Mapping[str, set[str]]) -> bool:
    values = stated.get(condition.name, set())
    return bool(values) and all(condition.holds({condition.name: value}, complete=False) for value in values)


def _describe_off(condition: Condition, stated: Mapping[str, set[str]]) -> str:
    values: Sequence[str] = sorted(stated.get(condition.name, ()))
    return f"{condition.name}={_join_values(values)}" if values else f"{condition.name} is not stated"


def _join_values(values: Iterable[str]) -> str:
    return " and ".join(sorted(values)[:_MOST_NAMED])
