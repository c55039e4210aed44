"""The failed tests of pytest: its short summary names them; the section of each above holds the exception behind `E`.

Format: the terminal reporter of pytest 6 to 9 writes `= short test summary info =`, then one line `FAILED path::test -
Type: message` per failure. Sections begin with `____ test ____`; the lines of the exception begin with `E` and spaces.
"""

from __future__ import annotations

from collections.abc import Iterable

from triage.base.lazy_re import lazy_re
from triage.records.text import Line

SUMMARY = "short test summary info"
FAILED = lazy_re(r"(?P<how>FAILED|ERROR) (?P<test>\S+?\.py(?:::.+?)?)(?: - (?P<message>.*))?$")
PLACE = lazy_re(r"(?P<file>\S+\.py):(?P<line>\d{1,18}): (?!in )")
_OPENS_SUMMARY = lazy_re(r"=+ short test summary info =+$")
_SECTION = lazy_re(r"_{3,} (?:ERROR (?:at \w+ of|collecting) )?(?P<name>.+?) _{3,}$")
_END = lazy_re(r"[=!]{3,} ")
_REASON = lazy_re(r"E   +\S|E$")
_MOST_FAILURES = 1000


def opens_summary(line: Line) -> bool:
    """Does the line open the short summary?"""
    return SUMMARY in line.parsed.text and _OPENS_SUMMARY.match(line.parsed.text) is not None


def failure_lines(following: Iterable[Line]) -> list[Line]:
    """Return the lines of the summary that name failures."""
    failures: list[Line] = []
    for line in following:
        if _END.match(line.parsed.text) or len(failures) == _MOST_FAILURES:
            break
        if FAILED.match(line.parsed.text):
            failures.append(line)
    return failures


def failure_reasons(before: Iterable[Line]) -> dict[str, list[Line]]:
    """Return the reason of each failure, by the name of its section.

    A reason is the last lines with `E` in the section, with the code above and the place below them. `before` are the
    lines above the summary, nearest first.
    """
    reasons: dict[str, list[Line]] = {}
    reason: list[Line] = []
    is_complete = False
    for line in before:
        text = line.parsed.text
        section = _SECTION.match(text)
        if section:
            reasons.setdefault(section["name"], list(reversed(reason)))
            reason, is_complete = [], False
        elif not is_complete and (_REASON.match(text) or (not reason and PLACE.match(text))):
            reason.append(line)
        elif not is_complete and reason and _REASON.match(reason[-1].parsed.text):
            if text.startswith(">"):  # the code that raised it
                reason.append(line)
            is_complete = True  # exceptions further up in the section were handled, or led to this one
    return reasons


def section_name(failure: str) -> str:
    """Return the section name of a failure line: `path::Class::test[1]` → `Class.test[1]`."""
    match = FAILED.match(failure)
    path, _, test = match["test"].partition("::") if match else ("", "", "")
    return test.replace("::", ".") or path
