"""Last words: from the tail of each source the last step and time of every rank, and whether it said that it was done."""

from __future__ import annotations

import re
from dataclasses import dataclass

from triage.model import Origin
from triage.ranks.prefix import Parsed
from triage.ranks.text import split_line

STEP = re.compile(r"(?i)\b(?:global[_ ]?step|step|iteration|iter|batch)[ :=#]*\[? *(\d{1,12})\b")
PROGRESS = re.compile(r"(?i)\b(?:global[_ ]?step|step|iteration|iter|batch|epoch)[ :=#]*\[? *\d|it/s\b|s/it\b")
FINISHED = re.compile(
    r"(?i)\b(?:training|run|job|fine-?tuning|evaluation|pretraining)\b.{0,20}\b(?:finished|complete[d]?|done|succeeded)\b"
    r"|\b(?:finished|completed) (?:training|successfully)\b|\ball (?:ranks|workers) (?:finished|done)\b|succeeded\b.{0,40}\bworker"
)
_LINES = 200


@dataclass(frozen=True, slots=True)
class Word:
    """A line near the end of a source."""

    origin: Origin
    offset: int
    step: int | None
    finished: bool


def words(tail: bytes, offset: int, year: int) -> list[Word]:
    """The last lines of a source that say anything of a rank, a time, a step or the end. `offset` is where `tail` starts."""
    found = []
    position = tail.find(b"\n") + 1 if offset else 0
    starts = []
    while position < len(tail):
        end = tail.find(b"\n", position)
        end = len(tail) if end < 0 else end
        starts.append((position, end))
        position = end + 1
    for start, end in starts[-_LINES:]:
        for line in split_line(tail[start:end], offset + start, year)[-1:]:
            found.append(_word(line.parsed, line.offset))
    return found


def _word(parsed: Parsed, offset: int) -> Word:
    step = STEP.search(parsed.text)
    return Word(parsed.origin, offset, int(step[1]) if step else None, FINISHED.search(parsed.text) is not None)
