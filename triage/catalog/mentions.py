"""Lines that mention a failure and have none: ordinary log levels, tests that pass, comments, manuals, settings."""

from __future__ import annotations

from triage.base.lazy_re import lazy_re
from triage.catalog.distinct_evidence import DistinctEvidence

ROLES = frozenset(("cause", "either"))
"""Signatures of these roles do not match such a line."""
_MENTION = lazy_re(
    rb"\A[\[(<| ]{0,3}(?:INFO|DEBUG|TRACE|NOTICE|PASS(?:ED)?|SKIP(?:PED)?)\b|\A(?:# |\"\"\")|\.py::test_|"
    rb"\b(?:[Uu]sually|[Oo]ften) means\b|"
    rb"\A\W{0,8}(?:on|if|when)_\w{1,60} ?[:=]|\"(?:option|key|setting|help|description|default)\": ?\""
)
_LONGEST = 4000


def is_mention(evidence: DistinctEvidence) -> bool:
    """Whether a message of the program itself, not of a library that it uses, only mentions what it says."""
    if evidence.kind != "message" or evidence.component != "app":
        return False
    return _MENTION.search(evidence.bytes[:_LONGEST].split(b"\n", 1)[0].lstrip()) is not None
