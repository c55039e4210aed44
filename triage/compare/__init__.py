"""Compare the ranks: settings, values that must agree, memory. Differences become evidence."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from triage.compare.devices import UNHEALTHY
from triage.compare.divergence import ObservedValues, infer_divergence
from triage.compare.environment import audit_environment
from triage.compare.logged_settings import ReadBytes, extract_logged_settings
from triage.compare.memory import has_out_of_memory, infer_memory_imbalance
from triage.compare.setting_rules import Rules, RulesError, load_rules
from triage.evidence.extraction import ExtractedJob
from triage.evidence.inference import make_inferences
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
) -> ComparisonResult:
    """Compare the ranks of a job."""
    settings = [fact for fact in artifacts if fact.kind == "environment"] + extract_logged_settings(
        texts, read_of, extracted.year
    )
    audit = audit_environment(settings, extracted.job, rules, extracted.versions)
    unhealthy = [item for item in audit.deviations if item.rule == UNHEALTHY]
    warnings = [Warning(item.rule, item.evidence[0].source, item.text) for item in unhealthy]
    facts = [*extracted.facts, *(fact for fact in artifacts if fact.kind != "environment")]
    ran_out_of_memory = has_out_of_memory(facts)
    values = ObservedValues(texts, read_of, extracted, memory=ran_out_of_memory)
    facts += infer_divergence(values, facts)
    facts += infer_memory_imbalance(values) if ran_out_of_memory else []
    return ComparisonResult(facts, _infer_from_audit(audit), audit, warnings)


def _infer_from_audit(audit: Audit) -> list[Evidence]:
    """One inference for each odd rank of each harmful deviation.

    Remarks give none. Neither does the health of a device: it was measured some time before or after the failure.
    """
    return [
        inference
        for deviation in audit.deviations
        if deviation.severity in HARMFUL and deviation.rule != UNHEALTHY
        for inference in _infer_from_deviation(deviation)
    ]


def _infer_from_deviation(deviation: Deviation) -> Iterable[Evidence]:
    """A deviation may or may not do harm, so it weighs no more than the absence of output."""
    text = f"{deviation.text}: {deviation.why}" if deviation.why else deviation.text
    ranks, first = deviation.ranks[:_MAX_RANKS], deviation.evidence[0]
    places = {place.origin.rank: place for place in deviation.evidence}
    for inference in make_inferences(deviation.rule, ranks, text, first, basis="absence"):
        place = places.get(inference.origin.rank, first)
        yield dataclasses.replace(
            inference,
            source=place.source,
            offset=place.offset,
            end=place.end,
            line=place.line,
            end_line=place.end_line,
            excerpt=place.excerpt,
        )
