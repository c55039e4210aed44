"""The table that torchelastic's agent prints when a process failed, and its own traceback above it: no last lines."""

from __future__ import annotations

from collections.abc import Sequence

from triage.base.lazy_re import lazy_re
from triage.records.text import Line
from triage.records.tracebacks import HEADER

_HEADLINE = lazy_re(r"^[\w.]{0,100}ChildFailedError: ?$")
_RULE = lazy_re(r"^={20,}$")
# Frames of the agent above the headline, and lines of the table below it; both ends have rules.
_LONGEST_TRACEBACK, _LONGEST_TABLE, _FEWEST_RULES = 60, 400, 2


def without_tables(lines: Sequence[Line], levels: Sequence[str]) -> tuple[list[Line], list[str]]:
    """Return the lines of a writer, with their levels, without those of the agent's tables."""
    if not any("ChildFailedError" in line.parsed.text for line in lines):
        return list(lines), list(levels)
    own = set(range(len(lines)))
    for index, line in enumerate(lines):
        if _HEADLINE.match(line.parsed.text):
            own -= set(range(_find_start(lines, index), _find_stop(lines, index)))
    return [lines[index] for index in sorted(own)], [levels[index] for index in sorted(own)]


def _find_start(lines: Sequence[Line], headline: int) -> int:
    """Return the index of the header of the agent's traceback, else that of its last line."""
    for index in range(headline, max(-1, headline - _LONGEST_TRACEBACK), -1):
        if HEADER in lines[index].parsed.text:
            return index
    return headline


def _find_stop(lines: Sequence[Line], headline: int) -> int:
    """Return the index behind the rule that closes the table; a table that was cut ends with the lines."""
    rules = 0
    for index in range(headline, min(len(lines), headline + _LONGEST_TABLE)):
        rules += _RULE.match(lines[index].parsed.text) is not None
        if rules == _FEWEST_RULES:
            return index + 1
    return min(len(lines), headline + _LONGEST_TABLE)
