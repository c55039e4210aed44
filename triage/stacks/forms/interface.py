"""The shape of the family: a form knows a mark by which its texts are told, and reads the stacks out of cleaned lines."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Protocol

from triage.stacks.model import Stacks


class Form(Protocol):
    """`mark` is found in every text of this form and in few others; `read` gives the stacks in lines without prefixes,
    or None.

    `read` passes over lines of others and never raises for what lines hold.
    """

    name: str
    mark: re.Pattern[str]

    def read(self, lines: Iterable[str]) -> Stacks | None: ...


def number(text: str | None) -> int | None:
    """A hexadecimal number of at most 64 bits, with or without 0x; None for anything else."""
    if not text:
        return None
    try:
        value = int(text, 16)
    except ValueError:
        return None
    return value if 0 <= value < 1 << 64 and "_" not in text else None


def decimal(text: str | None) -> int | None:
    """A decimal number that fits where such numbers stand (a line, a pid)."""
    return int(text) if text and len(text) <= 10 and text.isdecimal() else None
