"""The interface of forms: each recognises its texts by a mark, and reads stacks from cleaned lines."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Protocol

from triage.base import signal_texts
from triage.stacks.model import Stacks

SIGNAL_NUMBERS = {
    "4": "SIGILL",
    "5": "SIGTRAP",
    "6": "SIGABRT",
    "7": "SIGBUS",
    "8": "SIGFPE",
    "9": "SIGKILL",
    "11": "SIGSEGV",
    "13": "SIGPIPE",
    "15": "SIGTERM",
}
SIGNAL_TEXTS = {
    **signal_texts.SIGNAL_TEXTS,
    "Floating-point exception": "SIGFPE",
    "Process abort signal": "SIGABRT",
    "Erroneous arithmetic operation": "SIGFPE",
    "Access to an undefined portion of a memory object": "SIGBUS",
}


class Form(Protocol):
    """A way in which programs print stacks; `mark` matches in every text of this form and in few others."""

    name: str
    mark: re.Pattern[str]

    def read(self, lines: Iterable[str]) -> Stacks | None:
        """Return the stacks in lines without prefixes, None for none. Skips other lines, and never raises."""
        ...


def parse_hex(text: str | None) -> int | None:
    """Return a hexadecimal number of at most 64 bits, with or without 0x; None for other texts."""
    if not text:
        return None
    try:
        value = int(text, 16)
    except ValueError:
        return None
    return value if 0 <= value < 1 << 64 and "_" not in text else None


def parse_decimal(text: str | None) -> int | None:
    """Return a decimal number of at most 10 digits (a line, a pid); None for other texts."""
    return int(text) if text and len(text) <= 10 and text.isdecimal() else None
