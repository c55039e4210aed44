"""Failures that a test provoked: the lines before announce an injected fault, and the lines behind say: passed."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable

from triage.base.digit_masks import ask_masked, list_masks
from triage.base.lazy_re import lazy_re
from triage.model import Evidence
from triage.records.text import Text

PROVOKED = "provoked"
"""Field of a fact that a test provoked, as the lines around it say."""
_KINDS = frozenset(("message", "kernel", "native", "ending"))
_HINT = b"inject"
_INJECTION = lazy_re(
    r"(?i)\b(?:fault|error|fail|failure)s?[ _-]?inject|"
    r"\binject(?:s|ed|ing)?\b[^\n]{0,40}\b(?:faults?|errors?|failures?|xid)\b"
)
_PASSED = lazy_re(r"\bPASS(?:ED)?\b|(?i:\bas expected\b)|: (?:ok|OK|passed)\s*$")
_NEAR_LINES, _REACH = 3, 1 << 12


@ask_masked
def _may_inject(line: bytes) -> bool:
    return _HINT in line.lower()


def mark_provoked(facts: Iterable[Evidence], text: Text, tail: bytes) -> list[Evidence]:
    """Return the facts of a source; those that a test provoked have the field. `tail` is the end of the source."""
    if not any(_may_inject.of_masks(list_masks(tail))):
        return list(facts)
    return [
        dataclasses.replace(fact, fields={**fact.fields, PROVOKED: "yes"}) if _is_provoked(fact, text) else fact
        for fact in facts
    ]


def _is_provoked(fact: Evidence, text: Text) -> bool:
    if fact.kind not in _KINDS:
        return False
    before = itertools.islice(text.lines_before(fact.offset, _REACH), _NEAR_LINES)
    if not any(_INJECTION.search(line) for line in (fact.text, *(line.raw for line in before))):
        return False
    behind = (line for line in text.lines_from(fact.offset, _REACH) if line.offset > fact.offset)
    return any(_PASSED.search(line.raw) for line in itertools.islice(behind, _NEAR_LINES))
