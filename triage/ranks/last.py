"""Last words: from the tail of each source the last step and time of every rank, and whether it said that it was done."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from triage.base.lazy_re import lazy_re
from triage.model.evidence import Origin
from triage.ranks.layouts import PLAIN, Layout
from triage.ranks.prefix import Parsed
from triage.ranks.text import Line, Text, split_line

STEP = lazy_re(r"(?i)\b(?:global[_ ]?step|step|iteration|iter|batch)[ :=#]*\[? *(\d{1,12})\b")
PROGRESS = lazy_re(
    r"(?i)\b(?:global[_ ]?step|step|iteration|iter|batch|epoch)[ :=#]*\[? *\d|it/s\b|s/it\b|\bsaved\b.{0,40}\bstep[_-]\d"
)
FINISHED = lazy_re(
    r"(?i)\b(?:training|run|job|fine-?tuning|evaluation|pretraining)\b.{0,20}\b(?:finished|complete[d]?|done|succeeded)\b"
    r"|\b(?:finished|completed) (?:training|successfully)\b|\ball (?:ranks|workers) (?:finished|done)\b|succeeded\b.{0,40}\bworker"
)
# A rank is silent when the others went on for longer: checkpoints and evaluations of one rank take minutes, and
# time-outs longer.
SILENCE = 60.0
# Of a file with many writers so much is looked through for those that the tail does not hold.
BACK = 1 << 24
_CHUNK = 1 << 20
# What a rank was about when its log stopped, where that can explain why it did not come.
DOING = (
    (
        "compiling",
        lazy_re(
            r"(?i)torch\._(?:inductor|dynamo)|\bcompiling\b|\bautotun|\btorch\.compile\b|building extension module"
        ),
    ),
    (
        "saving",
        lazy_re(
            r"(?i)\b(?:sav(?:e|es|ing)|gathering|consolidating|writing)\b.{0,60}\b(?:checkpoint|ckpt|state[ _]?dict|model)"
        ),
    ),
    (
        "epoch-over",
        lazy_re(
            r"(?i)\bepoch \d+ (?:done|finished|complete)|\bvalidat(?:e|ing|ion)\b|\bevaluating\b|end of (?:data|epoch)|no more batches"
        ),
    ),
)
_LINES = 600
_WRITTEN = lazy_re(
    r"(?i)\b(?:sav(?:e|es|ed|ing)|writ(?:e|es|ing)|wrote|dump(?:ed|ing)?)\b.{0,60}?\b(?:to|in|into|as|at)\b[ :=]*['\"]?(/[^\s'\",;]+)"
)
# What DOING, FINISHED and _WRITTEN look for, in lower case: most lines hold none of it.
_ACTS = (
    *(
        "compil",
        "autotun",
        "_inductor",
        "_dynamo",
        "building ext",
        "sav",
        "gathering",
        "consolidating",
        "writ",
        "wrote",
        "dump",
    ),
    *("epoch", "validat", "evaluat", "end of", "no more", "finish", "complete", "done", "succeeded"),
)
# Of each writer so many telling lines are looked at, of lines without a writer more.
_EACH, _BARE, _SOLE = 3, 60, 8
_WRITER = lazy_re(rb"\[[Rr]ank ?\d+\]|^\[[^\]]{1,40}\]:|^ *\d+: ")
_TELLING = lazy_re(rb"(?i)step|iter|batch|epoch|finish|complet|done|succe|\d\d:\d\d:\d\d")


@dataclass(frozen=True, slots=True)
class Word:
    """A line near the end of a source. `doing` is a name of DOING, `path` the file or directory that it says is
    written.
    """

    origin: Origin
    offset: int
    writer: str
    step: int | None
    finished: bool
    doing: str = ""
    path: str = ""


def words(
    tail: bytes, offset: int, year: int, layout: Layout = PLAIN, *, whole: bool = False, one: bool = False
) -> list[Word]:
    """What the last lines of each writer say of a rank, a time, a step or the end, in file order.

    `offset` is where `tail` starts, `whole`: with a line; `one`: a single rank wrote all of it, so that a few lines are
    enough.
    """
    position = tail.find(b"\n") + 1 if offset and not whole else 0
    lines = tail[position:].split(b"\n")[-_LINES:]
    end = offset + len(tail)
    text = Text(
        "", lambda start, length: tail[max(0, start - offset) : max(0, start - offset + length)], end, year, layout
    )
    dressed = layout.dressed
    bare = _SOLE if one else _BARE
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
        if data and count < (_EACH if key else bare) and (not count or _TELLING.search(data)):
            seen[key] = count + 1
            line = line or split_line(data, end, year, layout.table)[-1]
            found.append(_word(line.parsed, line.offset))
        end -= 1
    return found[::-1]


def fell_silent(last: Mapping[int, float], finished: Collection[int]) -> dict[int, float]:
    """Ranks whose last line is older than most others' by more than SILENCE, with the seconds from it to the median of
    the others' last lines.

    `last` are the times of the last lines; ranks that said they were done have a right to be silent. Of two ranks none
    is most.
    """
    import statistics

    if len(last) < 3:
        return {}
    usual = statistics.median(last.values())
    return {
        rank: usual - time for rank, time in sorted(last.items()) if rank not in finished and usual - time > SILENCE
    }


def back(
    read: Callable[[int, int], bytes], size: int, writers: Sequence[str], year: int, layout: Layout = PLAIN
) -> list[Word]:
    """The last words of `writers` that the tail does not hold, looked for backwards in a file that many write, BACK
    bytes at most.
    """
    wanted = {writer.encode() for writer in writers if writer}
    found: list[Word] = []
    stop = max(0, size - BACK)
    end = size
    while wanted and end > stop:
        start = max(stop, end - _CHUNK)
        data = b"\n" + read(start, end - start)
        latest = {
            match[1]: match.start(1)
            for match in re.finditer(b"\n(" + b"|".join(map(re.escape, sorted(wanted, reverse=True))) + b")", data)
        }
        for writer, place in latest.items():
            found += words(data[place:].split(b"\n", 1)[0], start + place - 1, year, layout, whole=True)
            wanted.discard(writer)
        end = start
    return sorted(found, key=lambda word: word.offset)


def _writer_of(parsed: Parsed) -> str:
    return parsed.writer or ("" if parsed.origin.rank is None else f"rank {parsed.origin.rank}")


def _word(parsed: Parsed, offset: int) -> Word:
    step = STEP.search(parsed.text)
    number = int(step[1]) if step else None
    lower = parsed.text.lower()
    if not any(act in lower for act in _ACTS):
        return Word(parsed.origin, offset, parsed.writer, number, False)
    doing = next((name for name, pattern in DOING if pattern.search(parsed.text)), "")
    path = _WRITTEN.search(parsed.text)
    return Word(
        parsed.origin,
        offset,
        parsed.writer,
        number,
        FINISHED.search(parsed.text) is not None,
        doing,
        path[1].rstrip(".") if path else "",
    )
