"""Values of options that need no typer: their names, and their parsers."""

from __future__ import annotations

import re
from typing import Literal

from triage.base.errors import OptionError

# The names of `triage.render.NAMES`; importing them here would cost time, so a test compares the two.
Format = Literal["text", "json", "markdown", "html", "github", "gitlab", "codequality", "junit", "sarif", "slack"]
# Formats that are UTF-8 in any terminal.
UTF8: tuple[Format, ...] = ("json", "html", "gitlab", "codequality", "junit", "sarif", "slack")
FailingVerdict = Literal["known", "unknown", "inconclusive", "any"]
ColorChoice = Literal["auto", "always", "never"]
DEFAULT_CHUNK_SIZE = "256K"

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def is_failing(verdict: str, fail_on: str | None) -> bool:
    """Return whether `--fail-on` asks for this verdict."""
    return fail_on is not None and verdict != "clean" and fail_on in ("any", verdict)


def parse_size(text: str, option: str = "--chunk-size") -> int:
    """Parse `1048576`, `1M` or `64KiB` into a positive number of bytes (units of 1024). Raises OptionError."""
    match = re.fullmatch(r"(\d{1,15})\s*([KMG]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    size = int(match[1]) * _UNITS[match[2].upper()] if match else 0
    if not 0 < size <= 1 << 40:
        raise OptionError(f"{option} {text!r} is not a number of bytes", hint="write 1048576, 1M or 64K")
    return size
