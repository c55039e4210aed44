"""Diagnose a job in which settings deviate: they count as a cause only where something else went wrong."""

from __future__ import annotations

from collections.abc import Sequence

from triage import compare
from triage.catalog.model import Catalog
from triage.diagnose import ReasoningResult, diagnose
from triage.evidence.extracted import ExtractedJob
from triage.model import Evidence


def diagnose_with_settings(
    compared: compare.ComparisonResult, extracted: ExtractedJob, catalog: Catalog
) -> ReasoningResult:
    """Diagnose with the settings that deviate, and once more without them if nothing else is wrong.

    A setting can explain a failure, but is not a failure itself.
    """
    activity = extracted.activity
    result = diagnose([*compared.facts, *compared.settings], activity, extracted.job, catalog)
    if compared.settings and not _has_other_failures(result, compared.settings):
        return diagnose(compared.facts, activity, extracted.job, catalog)
    return result


def _has_other_failures(result: ReasoningResult, settings: Sequence[Evidence]) -> bool:
    """Return whether anything is wrong with the job besides the settings that deviate."""
    in_settings = {(fact.text, fact.source, fact.offset) for fact in settings}
    return any(
        (fact.text, fact.source, fact.offset) not in in_settings
        for candidate in result.candidates
        if candidate.role not in ("noise", "confirmation")
        for fact in candidate.facts
    )
