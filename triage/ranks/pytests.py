"""What pytest says of tests that failed: its short summary names them, and the section of each above it holds the
exception behind `E`.

Format: terminal reporter of pytest 6 to 9: `= short test summary info =`, then `FAILED path::test - Type: message` a
line; sections begin with
`____ test ____`, and the lines of the exception with `E` and spaces.
"""

from __future__ import annotations

from collections.abc import Iterable

from triage.base.lazy_re import lazy_re
from triage.ranks.text import Line

SUMMARY = "short test summary info"
FAILED = lazy_re(r"(?P<how>FAILED|ERROR) (?P<test>\S+?\.py(?:::.+?)?)(?: - (?P<said>.*))?$")
_OPENS = lazy_re(r"=+ short test summary info =+$")
_SECTION = lazy_re(r"_{3,} (?:ERROR (?:at \w+ of|collecting) )?(?P<name>.+?) _{3,}$")
_ENDS = lazy_re(r"[=!]{3,} ")
_REASON = lazy_re(r"E   +\S|E$")
PLACE = lazy_re(r"(?P<file>\S+\.py):(?P<line>\d+): (?!in )")
MOST = 1000  # failures


def opens(line: Line) -> bool:
    return SUMMARY in line.parsed.text and _OPENS.match(line.parsed.text) is not None


def entries(following: Iterable[Line]) -> list[Line]:
    """The lines of the summary that name failures."""
    found: list[Line] = []
    for line in following:
        if _ENDS.match(line.parsed.text) or len(found) == MOST:
            break
        if FAILED.match(line.parsed.text):
            found.append(line)
    return found


def reasons(before: Iterable[Line]) -> dict[str, list[Line]]:
    """For each section above the summary, by its name: the last lines with `E` in it, the code above and the place
    below them. `before`: the nearest first.
    """
    found: dict[str, list[Line]] = {}
    group: list[Line] = []
    done = False
    for line in before:
        text = line.parsed.text
        section = _SECTION.match(text)
        if section:
            found.setdefault(section["name"], list(reversed(group)))
            group, done = [], False
        elif not done and (_REASON.match(text) or (not group and PLACE.match(text))):
            group.append(line)
        elif not done and group and _REASON.match(group[-1].parsed.text):
            if text.startswith(">"):  # the code that raised it
                group.append(line)
            done = True  # an exception further up in the section was handled by, or led to, this one
    return found


def name_of(entry: str) -> str:
    """The name of the section that belongs to a line of the summary: `path::Class::test[1]` → `Class.test[1]`."""
    match = FAILED.match(entry)
    path, _, test = match["test"].partition("::") if match else ("", "", "")
    return test.replace("::", ".") or path
