"""Last words: from the tail of each source the last step and time of every rank, and whether it said that it was done."""

from __future__ import annotations

import re
from dataclasses import dataclass

from triage.model import Origin
from triage.ranks.layouts import PLAIN, Layout
from triage.ranks.prefix import Parsed
from triage.ranks.text import Line, Text, split_line

STEP = re.compile(r"(?i)\b(?:global[_ ]?step|step|iteration|iter|batch)[ :=#]*\[? *(\d{1,12})\b")
PROGRESS = re.compile(r"(?i)\b(?:global[_ ]?step|step|iteration|iter|batch|epoch)[ :=#]*\[? *\d|it/s\b|s/it\b")
FINISHED = re.compile(
    r"(?i)\b(?:training|run|job|fine-?tuning|evaluation|pretraining)\b.{0,20}\b(?:finished|complete[d]?|done|succeeded)\b"
    r"|\b(?:finished|completed) (?:training|successfully)\b|\ball (?:ranks|workers) (?:finished|done)\b|succeeded\b.{0,40}\bworker"
)
_LINES = 600
# Of each writer so many telling lines are looked at, of lines without a writer more.
_EACH, _BARE = 3, 60
_WRITER = re.compile(rb"\[[Rr]ank ?\d+\]|^\[[^\]]{1,40}\]:|^ *\d+: ")
_TELLING = re.compile(rb"(?i)step|iter|batch|epoch|finish|complet|done|succe|\d\d:\d\d:\d\d")


@dataclass(frozen=True, slots=True)
class Word:
    """A line near the end of a source."""

    origin: Origin
    offset: int
    step: int | None
    finished: bool


def words(tail: bytes, offset: int, year: int, layout: Layout = PLAIN) -> list[Word]:
    """What the last lines of each writer say of a rank, a time, a step or the end, in file order. `offset` is where `tail` starts."""
    position = tail.find(b"\n") + 1 if offset else 0
    lines = tail[position:].split(b"\n")[-_LINES:]
    end = offset + len(tail)
    text = Text("", lambda start, length: tail[max(0, start - offset) : max(0, start - offset + length)], end, year, layout)
    dressed = layout is not PLAIN
    seen: dict[str | bytes, int] = {}
    found = []
    for data in reversed(lines):
        end -= len(data)
        line: Line | None = None
        if dressed and data:
            line = next(iter(text.whole(data, end)[-1:]), None)
            key = _writer_of(line.parsed) if line else b""
            data = line.parsed.text.encode("utf-8", "replace") if line else b""
        else:
            writer = _WRITER.search(data[:96])
            key = writer.group() if writer else b""
        count = seen.get(key, 0)
        if data and count < (_EACH if key else _BARE) and (not count or _TELLING.search(data)):
            seen[key] = count + 1
            line = line or split_line(data, end, year)[-1]
            found.append(_word(line.parsed, line.offset))
        end -= 1
    return found[::-1]


def _writer_of(parsed: Parsed) -> str:
    return parsed.writer or ("" if parsed.origin.rank is None else f"rank {parsed.origin.rank}")


def _word(parsed: Parsed, offset: int) -> Word:
    step = STEP.search(parsed.text)
    return Word(parsed.origin, offset, int(step[1]) if step else None, FINISHED.search(parsed.text) is not None)
