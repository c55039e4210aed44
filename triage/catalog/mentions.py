"""Lines that mention a failure and have none: ordinary log levels, tests that pass, comments, manuals, settings, source
in which something was searched.
"""

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
# `grep -n`: a file, the number of the line, and source; loggers write a blank before their message.
_SOURCE = lazy_re(
    rb"\A[\w./+-]{1,200}\.(?:py|cc|cpp|cu|h|hpp|c|go|rs|java)[:-]\d{1,6}[:-]"
    rb"(?: {4}|(?:class|def|raise|throw|import) |#|//)"
)
# `[ok] …` and `✓ …`, as checklists and init systems mark what passed.
_PASSED = lazy_re(rb"\A(?:\[ {0,4}(?:ok|pass|passed|OK|PASS|PASSED) {0,4}\]|\xe2\x9c[\x85\x93\x94]) ")
_LONGEST = 4000


def is_mention(evidence: DistinctEvidence) -> bool:
    """Whether a message only mentions what it says: source, a check that passed, or a remark of the program itself."""
    if evidence.kind != "message":
        return False
    line = evidence.bytes[:_LONGEST].split(b"\n", 1)[0].lstrip()
    return _is_quotation(line) or (evidence.component == "app" and _MENTION.search(line) is not None)


def mentions_failure(line: str) -> bool:
    """Whether a line of any program only mentions a failure. A heading of Markdown, `# RuntimeError: …`, states it."""
    data = line[:_LONGEST].lstrip(" #").encode("utf-8", "replace")
    return _is_quotation(data) or _MENTION.search(data) is not None


def _is_quotation(line: bytes) -> bool:
    return _SOURCE.match(line) is not None or _PASSED.match(line) is not None
