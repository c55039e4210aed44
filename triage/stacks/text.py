"""Text made ready for the forms: colours, carriage returns, fences, quotes, prompts and the writers' prefixes go."""

from __future__ import annotations

import re
from collections import Counter

from triage.base.lazy_re import lazy_re

_COLOUR = lazy_re(r"\x1b\[[0-9;?]*[A-Za-z]")
_PROMPT = lazy_re(r"^(?:\((?:gdb|lldb|cuda-gdb|rr|Pdb)\) )+")
_FENCE = lazy_re(r"^\s*(?:```\w*|~~~\w*)\s*$")
_WIDE = str.maketrans("（）：", "():")
# Where the text of a dump begins in a line that has a prefix.
_RECORD = lazy_re(
    r"frame #\d+: |#\d+ +(?:0x[0-9a-f]+ |\S+ \(|<signal)|Thread \d+ \(|(?:Current t|T)hread 0x[0-9a-f]+|  File \"|Fatal Python error: |"
    r"    @ +0x[0-9a-f]+|\[ *\d+\] +\S+|\*\*\* |Exception raised from |={3,} ?\S|Program terminated| *\d+ +0x[0-9a-f]{6,} |"
    r"\S+\([^()\s]*\) ?\[0x[0-9a-f]+\]|#\d+ +(?:Object|Source) \"|TID \d+:|\* thread #|\((?:C|Python)\) File \"|Stack trace of thread|"
    r"C\+\+ CapturedTraceback|#\d+ +[\w(~<]|  Binary file \"|crash (?:reason|pid):"
)
# Open MPI's own prefix tells its processes apart, and is read with the frames; numbers and marks of frames are none.
_OWN = lazy_re(r"(?:(?:\s|^)(?:\[[^\]\s]+:\d+\]|\[bt\]|[\[(] ?\d+[\])]|#?\d+:?|[*.]+|=+|frame|thread)(?=\s|$))+\s*$")
_LOOKED_AT = 400
_STAGES = lazy_re(r"\d+")
_PAGER = lazy_re(r"-{2,3}Type <(?:return|RET)>.*?-{2,3}(?!-)")


def clean(text: str) -> list[str]:
    """The lines of `text` without what was put before them. Cheap for texts that are clean."""
    if "\x1b" in text:
        text = _COLOUR.sub("", text)
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if "（" in text or "：" in text:
        text = text.translate(_WIDE)
    lines = text.split("\n")
    if "```" in text or "~~~" in text:
        lines = [line for line in lines if not _FENCE.match(line)]
    if text.startswith((">", " >", "|")) or "\n>" in text:
        lines = _unquoted(lines)
    if "db) " in text:
        lines = [_PROMPT.sub("", line) for line in lines]
    lines = _without_prefix(lines)
    return _without_pager(lines) if "--Type <" in text else lines


def _without_pager(lines: list[str]) -> list[str]:
    """What stands before the pager's question goes on in the next line."""
    out: list[str] = []
    before = ""
    for line in lines:
        match = _PAGER.search(line)
        if match is None:
            out.append(before + line)
            before = ""
        else:
            answer = line[match.end() :].strip()
            before += line[: match.start()] + ("" if answer in ("c", "q") else answer)
    return [*out, before] if before else out


def _unquoted(lines: list[str]) -> list[str]:
    quoted = sum(line.startswith((">", " >")) for line in lines)
    return (
        [re.sub(r"^ ?(?:> ?)+", "", line) for line in lines]
        if quoted * 2 >= sum(bool(line.strip()) for line in lines)
        else lines
    )


def _without_prefix(lines: list[str]) -> list[str]:
    """Drop a prefix that most records have; digits in it may differ (a pid, a stamp)."""
    seen: Counter[str] = Counter()
    records = 0
    for line in lines[:_LOOKED_AT]:
        match = _RECORD.search(line, 0, 400)
        if match is None:
            continue
        records += 1
        prefix = _OWN.sub("", line[: match.start()]).rstrip()
        if prefix:
            seen[_STAGES.sub("0", prefix)] += 1
    if not seen:
        return lines
    shapes = [
        shape
        for shape, count in seen.most_common(8)
        if count * 4 >= records and (count > 1 or records <= 2) and len(shape) <= 200
    ]
    if not shapes or sum(seen[shape] for shape in shapes) * 2 < records:
        return lines
    shapes.sort(key=len, reverse=True)
    pattern = re.compile("(?:" + "|".join(_STAGES.sub(r"\\d+", re.escape(shape)) for shape in shapes) + ") ?")
    return [line[match.end() :] if (match := pattern.match(line)) else line for line in lines]
