"""The headings that `tail -n +1 *.log` and `head` write above each of several files."""

from __future__ import annotations

from triage.base.lazy_re import lazy_re

# A collector may have put its prefix before the heading.
HEADING = lazy_re(rb"(?m)^[^\n=>]{0,160}==> (?P<name>[^\n<>]{1,300}) <==\r?$")


def begins_with_heading(head: bytes) -> bool:
    """Whether a text begins with a heading, and none comes twice: `tail -f` writes one at each change of the file."""
    if HEADING.match(head.removeprefix(b"\xef\xbb\xbf")) is None:
        return False
    names = [match["name"] for match in HEADING.finditer(head)]
    return len(set(names)) == len(names)
