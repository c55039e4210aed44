"""The shape of the family: a speaker reads a block and says which facts it holds."""

from __future__ import annotations

from typing import Protocol

from triage.evidence.redact import redact
from triage.model.evidence import Block, Evidence

EXCERPT_LINES = 40
TEXT_CHARACTERS = 8000


class Speaker(Protocol):
    """One module a speaker. `read` gives the facts in `block`, or nothing when somebody else wrote it."""

    def __call__(self, block: Block) -> list[Evidence]: ...


def evidence(block: Block, kind: str, component: str, text: str, **fields: str) -> Evidence:
    """Evidence from a block; the only door from log text to facts, so secrets are taken out here."""
    return Evidence(
        kind=kind,
        component=component,
        text=redact(text.strip("\n"))[:TEXT_CHARACTERS],
        origin=block.origin,
        source=block.source,
        offset=block.headline,
        end=block.end,
        fields={name: redact(value) for name, value in {**fields, **_of_block(block)}.items() if value},
        excerpt="\n".join(shorten(tuple(redact("\n".join(block.lines)).split("\n")))),
    )


def _of_block(block: Block) -> dict[str, str]:
    """What the block knows of all its facts. `stamp` is "earlier" where the time is that of a line before, so that it
    happened then or later.
    """
    earlier = not block.dated and block.origin.time is not None
    return {"goes_on": "yes" if block.goes_on else "", "aside": block.aside, "stamp": "earlier" if earlier else ""}


def shorten(lines: tuple[str, ...]) -> list[str]:
    """The first and last lines of a long block, saying how many were left out between."""
    if len(lines) <= EXCERPT_LINES:
        return list(lines)
    head, tail = EXCERPT_LINES // 4, EXCERPT_LINES - EXCERPT_LINES // 4 - 1
    return [*lines[:head], f"… {len(lines) - head - tail} lines …", *lines[-tail:]]
