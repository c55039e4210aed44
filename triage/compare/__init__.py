"""Compare the ranks: settings, values that must agree, memory. Differences become evidence."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from triage.base.forks import LocalProcesses, WorkSharer
from triage.compare.devices import UNHEALTHY
from triage.compare.divergence import find_divergence, infer_divergence
from triage.compare.environment import audit_environment
from triage.compare.first_difference import FirstDifference
from triage.compare.logged_settings import ReadBytes, extract_logged_settings
from triage.compare.memory import has_out_of_memory, infer_memory_imbalance
from triage.compare.message_sizes import infer_wrong_sizes
from triage.compare.observed_values import ObservedValues
from triage.compare.parallel_settings import follows_difference, is_of_program, remark_fixed_differences
from triage.compare.run_comparison import infer_runs_part
from triage.compare.setting_rules import Rules, RulesError, load_rules
from triage.evidence.extracted import ExtractedJob
from triage.evidence.inference import LASTING, make_inferences
from triage.model import Audit, Deviation, Evidence, Source, Warning
from triage.scan.interface import ScanResult

__all__ = ["ComparisonResult", "Rules", "RulesError", "compare_ranks", "load_rules"]

HARMFUL = ("error", "warning")
_MAX_RANKS = 4096  # ranks of one deviation that get an inference of their own


class ComparisonResult(NamedTuple):
    """`facts`: all evidence except dumps of settings. `settings`: inferences from the audit of the settings."""

    facts: list[Evidence]
    settings: list[Evidence]
    audit: Audit
    warnings: list[Warning]


def compare_ranks(
    texts: Sequence[tuple[Source, ScanResult]],
    read_of: Callable[[Source, ScanResult], ReadBytes],
    extracted: ExtractedJob,
    artifacts: Sequence[Evidence],
    rules: Rules,
    sharer: WorkSharer = LocalProcesses(),
) -> ComparisonResult:
    """Compare the ranks of a job; `sharer` reads the values that many ranks print."""
    settings = [fact for fact in artifacts if fact.kind == "environment"] + extract_logged_settings(
        texts, read_of, extracted
    )
    audit = audit_environment(settings, extracted.job, rules, extracted.versions)
    unhealthy = [item for item in audit.deviations if item.rule == UNHEALTHY]
    warnings = [Warning(item.rule, item.evidence[0].source, item.text) for item in unhealthy]
    facts = [*extracted.facts, *(fact for fact in artifacts if fact.kind != "environment")]
    facts += _extract_launched_calls(texts, read_of, extracted)
    ran_out_of_memory = has_out_of_memory(facts)
    values = ObservedValues(texts, read_of, extracted, memory=ran_out_of_memory, sharer=sharer)
    if values.ends:
        from triage.compare.training_values import summarize_training  # most failed jobs print no values

        audit = dataclasses.replace(audit, training=summarize_training(values))
    differences = find_divergence(values)
    facts += infer_divergence(differences, facts, remark_fixed_differences(differences, values))
    facts += infer_wrong_sizes(facts, texts, read_of, extracted)
    facts += infer_runs_part(values, settings, rules)
    facts += infer_memory_imbalance(values) if ran_out_of_memory else []
    return ComparisonResult(facts, _infer_from_audit(audit, differences), audit, warnings)


def _extract_launched_calls(
    texts: Sequence[tuple[Source, ScanResult]],
    read_of: Callable[[Source, ScanResult], ReadBytes],
    extracted: ExtractedJob,
) -> list[Evidence]:
    """Return the calls that NCCL logs, where a text has such lines near its start or end."""
    if not extracted.sources_with_calls:
        return []
    from triage.compare.launched_calls import extract_launched_calls

    chosen = [(source, scan) for source, scan in texts if source.name in extracted.sources_with_calls]
    return extract_launched_calls(chosen, read_of, extracted)


def _infer_from_audit(audit: Audit, differences: Sequence[FirstDifference]) -> list[Evidence]:
    """One inference for each odd rank of each harmful deviation.

    Remarks give none, except those on the same ranks or hosts as values that diverged. Neither does the health of a
    device: it was measured some time before or after the failure.
    """
    inferences: list[Evidence] = []
    for deviation in audit.deviations:
        if deviation.rule == UNHEALTHY or (is_of_program(deviation) and not differences):
            continue
        followed = next((one for one in differences if follows_difference(deviation, one)), None)
        if followed is not None or deviation.severity in HARMFUL:
            inferences += _infer_from_deviation(deviation, followed)
    return inferences


def _infer_from_deviation(deviation: Deviation, followed: FirstDifference | None) -> Iterable[Evidence]:
    """A deviation may or may not do harm, so it weighs no more than the absence of output.

    One on the same ranks as a quantity that diverged is its cause.
    """
    text = f"{deviation.text}: {deviation.why}" if deviation.why else deviation.text
    text += f"; {followed.key} differs between the same ranks" if followed is not None else ""
    fields: dict[str, str] = {LASTING: "yes"} if followed is not None else {}
    ranks, first = deviation.ranks[:_MAX_RANKS], deviation.evidence[0]
    places = {place.origin.rank: place for place in deviation.evidence}
    for inference in make_inferences(deviation.rule, ranks, text, first, basis="absence"):
        place = places.get(inference.origin.rank, first)
        yield dataclasses.replace(
            inference,
            fields={**inference.fields, **fields},
            source=place.source,
            offset=place.offset,
            end=place.end,
            line=place.line,
            end_line=place.end_line,
            excerpt=place.excerpt,
        )
