"""Launchers that catch the exception of a rank and raise it again in their own process, where alone it is printed."""

from __future__ import annotations

import re
from dataclasses import replace

from triage.base.lazy_re import lazy_re
from triage.testing.composer.model import Exit, Line, Story

_BEGIN = "Traceback (most recent call last):"
_MODULE_FRAME = lazy_re(r'  File "[^"]*", line \d+, in <module>\n(?:    .*\n)+')


def catch_exceptions(story: Story, first: Exit) -> tuple[Story, str]:
    """Return the story without tracebacks that ended ranks, and the one that ended the first rank.

    That has neither its tag nor the frame of the module, since the launcher calls a function. It is empty if the rank
    did not end by an exception. Tracebacks of other ranks stay where they show the cause: the program wrote them.
    """
    last = _ending_traceback(story, first)
    lines = [line for line in story.lines if line is not last and not _is_caught(line)]
    text = re.sub(r"^\[rank\d+\]: ?", "", last.text, flags=re.MULTILINE) if last else ""
    return replace(story, lines=tuple(lines)), _MODULE_FRAME.sub("", text, count=1)


def _ending_traceback(story: Story, end: Exit) -> Line | None:
    if end.status != 1:
        return None
    mine = [line for line in story.lines if line.writer.kind == "rank" and line.writer.number == end.rank]
    raised = [line for line in mine if _BEGIN in line.text.split("\n")[0] and line.at <= end.at]
    return max(raised, key=lambda line: line.at) if raised else None


def _is_caught(line: Line) -> bool:
    return line.writer.kind == "rank" and not line.is_cause and _BEGIN in line.text.split("\n")[0]
