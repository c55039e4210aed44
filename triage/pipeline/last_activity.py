"""What a rank did last, for a root of which only an exit status is known."""

from __future__ import annotations

from dataclasses import replace

from triage.diagnose.headline import has_no_message
from triage.model.diagnosis import Finding
from triage.pipeline.results import AnalysedJob

_MOST_RANKS = 3
_LONGEST_TITLE, _LONGEST_LINE = 120, 300


def with_last_activity(root: Finding, analysed: AnalysedJob) -> Finding:
    """Return the root with the last lines of its ranks, where it has no message of its own."""
    evidence = [fact for fact in root.evidence if fact.kind != "ending"]
    if root.signature is not None or not root.ranks or not evidence or not all(map(has_no_message, evidence)):
        return root
    lines = [line for line in analysed.texts.last_lines(analysed.extracted) if line.rank in root.ranks and line.text]
    if not lines:
        return root
    sentences = [
        f"Rank {line.rank} wrote last in {line.source}: {line.text[:_LONGEST_LINE]}" for line in lines[:_MOST_RANKS]
    ]
    title = f"{root.title}; its last line: {lines[0].text[:_LONGEST_TITLE]}" if len(root.ranks) == 1 else root.title
    return replace(root, title=title, why=(*root.why, *sentences))
