"""What a rank did last, for a root that does not say it: only an exit status is known, or the rank never came."""

from __future__ import annotations

from dataclasses import replace

from triage.diagnose.headline import has_no_message
from triage.model import Evidence, InferenceDetail, LastLine, StackDetail
from triage.model.diagnosis import Finding
from triage.pipeline.results import AnalysedJob

_MOST_RANKS = 3
_LONGEST_TITLE, _LONGEST_LINE = 120, 300
_MISSING = frozenset(
    ("compile-skew", "lagging-rank", "left-first", "log-stopped", "missed-barrier", "never-joined", "uneven-steps")
)
"""Rules that name ranks for which others wait, and which wait in no call themselves."""


def with_last_activity(root: Finding, analysed: AnalysedJob) -> Finding:
    """Return the root with the last lines of its ranks, where it has no message of its own or infers that they hang."""
    if root.signature is not None:
        return _with_lines_before_hang(root, analysed)
    evidence = [fact for fact in root.evidence if fact.kind != "ending"]
    if not root.ranks or not evidence or not all(map(has_no_message, evidence)):
        return root
    lines = [line for line in analysed.texts.last_lines(analysed.extracted) if line.rank in root.ranks and line.text]
    if not lines:
        return root
    title = f"{root.title}; its last line: {lines[0].text[:_LONGEST_TITLE]}" if len(root.ranks) == 1 else root.title
    return replace(root, title=title, why=(*root.why, *_describe(lines)))


def _describe(lines: list[LastLine]) -> list[str]:
    return [
        f"Rank {line.rank} wrote last in {line.source.rsplit('/', 1)[-1]}: {line.text[:_LONGEST_LINE]}"
        for line in lines[:_MOST_RANKS]
    ]


def _with_lines_before_hang(root: Finding, analysed: AnalysedJob) -> Finding:
    """Return the root with the last lines of few ranks that others waited for; a stack says more than such a line."""
    with_stack = {fact.origin.rank for fact in analysed.result.facts if isinstance(fact.detail, StackDetail)}
    ranks = set(root.ranks) - with_stack
    if not ranks or len(root.ranks) > _MOST_RANKS or not any(map(_names_missing, root.evidence)):
        return root
    extracted = analysed.extracted
    own = [
        (source, activity)
        for source, activity in extracted.activity
        if not activity.is_of_runtime and extracted.job.complete(source, activity.origin).rank in ranks
    ]
    lines = analysed.texts.last_lines(replace(extracted, activity=own))
    return replace(root, why=(*root.why, *_describe([line for line in lines if line.text])))


def _names_missing(fact: Evidence) -> bool:
    return isinstance(fact.detail, InferenceDetail) and fact.detail.rule in _MISSING
