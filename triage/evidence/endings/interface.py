"""What a form is: the shape of a line that a dying program prints."""

from __future__ import annotations

import re
from typing import Literal

from triage.base.lazy_dataclass import dataclass
from triage.base.lazy_re import lazy_re

Strength = Literal["strong", "weak", "unlike"]
Points = Literal["line", "next line"]
LONGEST_LINE = 2000
"""Lines are matched up to this many characters."""

# How telling a line is, the highest first: only the order matters.
INNER_MESSAGE = 100
MESSAGE = 90
LEVEL_FATAL = 80
LEVEL_ERROR = 70
STATEMENT = 60
STATUS = 50
HINT = 40


@dataclass(frozen=True, slots=True)
class Form:
    """A shape of lines that end a program.

    `pattern` is searched in the line without its prefix. `weight` says how telling the line is. `points_to` the next
    line where that one holds the message. `any_level`: the form counts in a line of a level below error too.
    """

    name: str
    runtime: str
    strength: Strength
    weight: int
    pattern: re.Pattern[str]
    example: str
    points_to: Points = "line"
    any_level: bool = False


def strong(name: str, runtime: str, pattern: str, example: str, weight: int = MESSAGE, to: Points = "line") -> Form:
    """Return a form that any program prints only when it fails."""
    return Form(name, runtime, "strong", weight, lazy_re(pattern), example, to)


def weak(
    name: str,
    runtime: str,
    pattern: str,
    example: str,
    weight: int = STATEMENT,
    to: Points = "line",
    *,
    any_level: bool = False,
) -> Form:
    """Return a form that counts only where nothing usual follows."""
    return Form(name, runtime, "weak", weight, lazy_re(pattern), example, to, any_level)
