"""The interface of extractors: each reads a block and returns the facts in it."""

from __future__ import annotations

from functools import partial
from typing import Protocol

from triage.evidence.redact import redact_with
from triage.evidence.redaction import load_redaction
from triage.model import Block, Detail, Evidence

EXCERPT_LINES = 40
TEXT_CHARACTERS = 8000


class Extractor(Protocol):
    """The `extract` function of one module: the facts in `block`, or none when the block is of another kind."""

    def __call__(self, block: Block) -> list[Evidence]: ...


def make_evidence(
    block: Block, kind: str, component: str, text: str, detail: Detail | None = None, **fields: str
) -> Evidence:
    """Return one fact of a block. All facts of logs are made here, so this is where secrets are taken out."""
    text, lines = text.strip("\n"), "\n".join(block.lines)
    redact = partial(redact_with, load_redaction())
    clean = redact(text)
    return Evidence(
        kind=kind,
        component=component,
        text=clean[:TEXT_CHARACTERS],
        origin=block.origin,
        source=block.source,
        offset=block.headline,
        end=block.end,
        fields={name: redact(value) for name, value in fields.items() if value},
        excerpt="\n".join(shorten(tuple((clean if text == lines else redact(lines)).split("\n")))),
        detail=detail,
        inherits_time=not block.has_own_time and block.origin.time is not None,
    )


def shorten(lines: tuple[str, ...]) -> list[str]:
    """Return the first and last lines of a long block, and between them how many were left out."""
    if len(lines) <= EXCERPT_LINES:
        return list(lines)
    head, tail = EXCERPT_LINES // 4, EXCERPT_LINES - EXCERPT_LINES // 4 - 1
    return [*lines[:head], f"… {len(lines) - head - tail} lines …", *lines[-tail:]]
