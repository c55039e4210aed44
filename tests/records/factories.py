"""Texts in memory, and the blocks in them."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable

from hypothesis import strategies as st

from triage.model.evidence import Block
from triage.records.blocks import build_blocks
from triage.records.text import Text
from triage.records.tracebacks import HEADER


def text_of(data: bytes | str, year: int = 2026) -> Text:
    """Return `data` as a source."""
    raw = data.encode() if isinstance(data, str) else data
    return Text("job.log", lambda offset, length: raw[offset : offset + length], len(raw), year)


def blocks(data: bytes | str, *literals: str) -> list[Block]:
    """Return the blocks of the lines that hold one of `literals`."""
    raw = data.encode() if isinstance(data, str) else data
    hits, at = [], 0
    for line in raw.split(b"\n"):
        literals_in_line = tuple(literal for literal in literals if literal.encode() in line)
        if literals_in_line:
            hits.append((at, at + len(line), literals_in_line, 0))
        at += len(line) + 1
    return [block for block, _ in build_blocks(text_of(raw), hits)]


def block(data: bytes | str, *literals: str) -> Block:
    """Return the only block."""
    [only] = blocks(data, *literals)
    return only


def traceback_of(action: Callable[[], object]) -> list[str]:
    """Return the lines of the traceback that Python prints for what `action` raises."""
    try:
        action()
    except BaseException:
        return traceback.format_exc().rstrip("\n").split("\n")
    raise AssertionError("nothing was raised")


def interleaved(draw: st.DrawFn, writers: Iterable[list[str]]) -> list[str]:
    """Return the lines of several writers in any order that keeps each writer's own."""
    queues = [list(lines) for lines in writers]
    merged = []
    while any(queues):
        queue = draw(st.sampled_from([queue for queue in queues if queue]))
        count = draw(st.integers(1, 4))
        merged += queue[:count]
        del queue[:count]
    return merged


__all__ = ["HEADER", "block", "blocks", "interleaved", "text_of", "traceback_of"]
