"""Draft how a signature could learn a new wording: a pattern from the line, and the line as a sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from triage.catalog.derive import derive_pattern
from triage.catalog.lint import list_capture_names
from triage.catalog.near_misses import NearMiss, NearMissIndex, describe_near_misses
from triage.catalog.yaml_quoting import double_quote, single_quote

MAX_LINE = 400  # characters of a line that becomes a pattern and a sample


@dataclass(frozen=True, slots=True)
class WordingDraft:
    """A signature that a line looks like a new wording of.

    `summary` is the sentence that says so, `path` the file in the catalog, `yaml` what to add to it.
    """

    signature: str
    summary: str
    path: str
    yaml: str


def draft_wordings(texts: Sequence[str], index: NearMissIndex) -> tuple[WordingDraft, ...]:
    """A draft for each signature that one of the texts looks like a new wording of, from the first such text."""
    drafts: dict[str, WordingDraft] = {}
    for text in texts:
        for miss in index.find(text):
            if miss.signature.id not in drafts:
                drafts[miss.signature.id] = draft_wording(miss, text)
    return tuple(drafts.values())


def draft_wording(miss: NearMiss, text: str) -> WordingDraft:
    """The draft of one near miss, as the parts of a signature file that change."""
    signature = miss.signature
    line = text.strip().split("\n", 1)[0][:MAX_LINE]
    captures = sorted(list_capture_names(signature))
    lines = [
        f"revision: {signature.revision + 1}",
        "match:",
        "  any:",
        *([f"    # name the same captures as before: {', '.join(captures)}"] if captures else []),
        *([f"    - kind: {miss.leaf.kind}"] if miss.leaf.kind else []),
        f"    {' ' if miss.leaf.kind else '-'} text: {single_quote(derive_pattern([line]))}",
        "samples:",
        "  match:",
        f"    - {{text: {double_quote(line)}}}",
    ]
    path = signature.id.replace(".", "/", 1) + ".yaml"
    return WordingDraft(signature.id, describe_near_misses([miss]), path, "\n".join(lines) + "\n")
