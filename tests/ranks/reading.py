"""Texts in memory, and blocks out of them."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable

from hypothesis import strategies as st

from triage.model.evidence import Block
from triage.ranks.blocks import build
from triage.ranks.text import Text
from triage.ranks.tracebacks import HEADER


def text_of(data: bytes | str, year: int = 2026) -> Text:
    """A source of `data`."""
    raw = data.encode() if isinstance(data, str) else data
    return Text("job.log", lambda offset, length: raw[offset : offset + length], len(raw), year)


def blocks(data: bytes | str, *literals: str) -> list[Block]:
    """The blocks around the lines that hold one of `literals`."""
    raw = data.encode() if isinstance(data, str) else data
    hits, at = [], 0
    for line in raw.split(b"\n"):
        found = tuple(literal for literal in literals if literal.encode() in line)
        if found:
            hits.append((at, at + len(line), found, 0))
        at += len(line) + 1
    return [block for block, _ in build(text_of(raw), hits)]


def block(data: bytes | str, *literals: str) -> Block:
    """The only block."""
    [found] = blocks(data, *literals)
    return found


def raised(action: Callable[[], object]) -> list[str]:
    """The lines of the traceback that Python itself prints of what `action` raises."""
    try:
        action()
    except BaseException:
        return traceback.format_exc().rstrip("\n").split("\n")
    raise AssertionError("nothing was raised")


def interleaved(draw: st.DrawFn, writers: Iterable[list[str]]) -> list[str]:
    """The lines of several writers in any order that keeps each writer's own."""
    queues = [list(lines) for lines in writers]
    merged = []
    while any(queues):
        queue = draw(st.sampled_from([queue for queue in queues if queue]))
        count = draw(st.integers(1, 4))
        merged += queue[:count]
        del queue[:count]
    return merged


__all__ = ["HEADER", "block", "blocks", "interleaved", "raised", "text_of"]
