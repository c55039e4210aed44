"""Printed stacks → the stack model.

Before the forms read a text, its colours, carriage returns, fences, quotes, prompts and prefixes are removed.
"""

from __future__ import annotations

import re
from collections import Counter

from triage.base.lazy_re import lazy_re
from triage.stacks.forms import FORMS, GROUPS
from triage.stacks.model import Stacks

_MAX_SEARCHED = 1 << 20
_COLOUR = lazy_re(r"\x1b\[[0-9;?]*[A-Za-z]")
_PROMPT = lazy_re(r"^(?:\((?:gdb|lldb|cuda-gdb|rr|Pdb)\) )+")
_FENCE = lazy_re(r"^\s*(?:```\w*|~~~\w*)\s*$")
_WIDE = str.maketrans("（）：", "():")
# Where the text of a dump begins in a line with a prefix.
_DUMP_TEXT = lazy_re(
    r"frame #\d+: |#\d+ +(?:0x[0-9a-f]+ |\S+ \(|<signal)|Thread \d+ \(|(?:Current t|T)hread 0x[0-9a-f]+|  File \"|"
    r"Fatal Python error: |    @ +0x[0-9a-f]+|\[ *\d+\] +\S+|\*\*\* |Exception raised from |={3,} ?\S|"
    r"Program terminated| *\d+ +0x[0-9a-f]{6,} |\S+\([^()\s]*\) ?\[0x[0-9a-f]+\]|#\d+ +(?:Object|Source) \"|TID \d+:|"
    r"\* thread #|\((?:C|Python)\) File \"|Stack trace of thread|C\+\+ CapturedTraceback|#\d+ +[\w(~<]|"
    r"  Binary file \"|crash (?:reason|pid):|Process \d+: |Thread (?:0x)?\w+ \((?:active|idle)|"
    r"    [\w.<>:~]+ \([^()]+:\d+\)$|thread '[^'\n]*' panicked at |stack backtrace:|   +\d+: [\w<]| {9,}at |"
    r"Stacktrace:|\[ *\d+\.\d{6}\] | {1,4}\d+# \S|   at [\w.`]+\([^()]*\)(?: in \S+:line \d+)?$|"
    r"Image +PC |\S+ +[0-9A-F]{16} +\w+ +(?:\d|Unknown)|[\w!#.]+ at \.?/\S+\.\w+:\d+|signal \(\d|Exception Type: |"
    r"\d{1,4} +\S+\s+0x[0-9a-f]+ \S.* \+ \d|    at \S.* \(\S+:\d+:\d+\)$|stack traceback:|"
    r"\t\S+:\d+: in |-{5} Native stack| +\d+: 0x[0-9a-f]{4,} |\s+[0-9a-f]{6,16} \S.*\+0x[0-9a-f]+ \("
)
# Not prefixes: Open MPI's own, which the form reads to separate processes, and numbers and marks of frames.
_PART_OF_FRAME = lazy_re(
    r"(?:(?:\s|^)(?:\[[^\]\s]+:\d+\]|\[bt\]|[\[(] ?\d+[\])]|#?\d+:?|[*.]+|=+|frame|thread)(?=\s|$))+\s*$"
)
_SAMPLED_LINES = 400
_DIGITS = lazy_re(r"\d+")
_PAGER = lazy_re(r"-{2,3}Type <(?:return|RET)>.*?-{2,3}(?!-)")


def parse_stacks(text: str) -> list[Stacks]:
    """Return the stacks in a text, one for each form with frames in it, in the order of FORMS. Never raises."""
    lines = clean(text)
    searched = "\n".join(lines)
    if len(searched) > _MAX_SEARCHED:  # every form that occurs also occurs at one of the ends
        searched = f"{searched[: _MAX_SEARCHED // 2]}\n{searched[-_MAX_SEARCHED // 2 :]}"
    result: list[Stacks] = []
    done: set[str] = set()
    for form in FORMS:
        if form.name in done or not form.mark.search(searched):
            continue
        stacks = form.read(lines)
        if stacks is not None and any(thread.frames for thread in stacks.threads):
            result.append(stacks)
            done.update(*(group for group in GROUPS if form.name in group))
    return result


def clean(text: str) -> list[str]:
    """Return the lines of `text` without prefixes; cheap for clean texts."""
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
    """Join the text before the pager's question with the next line."""
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
    return (
        [re.sub(r"^ ?(?:> ?)+", "", line) for line in lines]
        if sum(line.startswith((">", " >")) for line in lines) * 2 >= sum(bool(line.strip()) for line in lines)
        else lines
    )


def _without_prefix(lines: list[str]) -> list[str]:
    """Drop the prefixes that most lines of the dump have; digits in them may differ (a pid, a timestamp)."""
    counts: Counter[str] = Counter()
    dump_lines = 0
    for line in lines[:_SAMPLED_LINES]:
        match = _DUMP_TEXT.search(line, 0, 400)
        if match is None:
            continue
        dump_lines += 1
        prefix = _PART_OF_FRAME.sub("", line[: match.start()]).rstrip()
        if prefix:
            counts[_DIGITS.sub("0", prefix)] += 1
    shapes = [
        shape
        for shape, count in counts.most_common(8)
        if count * 4 >= dump_lines and (count > 1 or dump_lines <= 2) and len(shape) <= 200
    ]
    if not shapes or sum(counts[shape] for shape in shapes) * 2 < dump_lines:
        return lines
    shapes.sort(key=len, reverse=True)
    pattern = re.compile("(?:" + "|".join(_DIGITS.sub(r"\\d+", re.escape(shape)) for shape in shapes) + ") ?")
    return [line[match.end() :] if (match := pattern.match(line)) else line for line in lines]
