"""Read the training step that a log line states."""

from __future__ import annotations

from triage.base.digit_masks import ask_masked_text
from triage.base.lazy_re import lazy_re

_STEP = lazy_re(
    r"(?i)(?<![a-z0-9])(?:(?:global|train|training|optimizer|current)[_ -]?)?"
    r"(?:step|iteration|iter|num_updates|update|batch|it(?=[=:]))['\"]?[ :=#]*\[? *(\d{1,12})\b"
)
# `120/500`, `[ 120/ 500]`: a step and the last one; a date has two slashes.
_OF_TOTAL = lazy_re(r"(?:^|[\s\[(|])(\d{1,12}) ?/ {0,6}\d{1,12}(?=[\s\]),:;|]|$)")
_EPOCH = lazy_re(r"(?i)(?<![a-z0-9])epoch['\"]?[ :=#]*\[? *(\d{1,9})\b(?!\.\d)")


def read_step(text: str) -> int | None:
    """Return the step in a line: `step 12`, `'step': 12`, `12/500`, or else the epoch; None if it states none."""
    place = _find_step(text)
    return int(text[place]) if place is not None else None


@ask_masked_text
def _find_step(text: str) -> slice | None:
    for pattern in (_STEP, _OF_TOTAL, _EPOCH):
        match = pattern.search(text)
        if match is not None:
            return slice(*match.span(1))
    return None


def read_last_step(text: str) -> int | None:
    """Return the step in the last of some lines that names one by a word."""
    steps = _STEP.findall(text)
    return int(steps[-1]) if steps else None
