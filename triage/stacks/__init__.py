"""Stacks: what a process was doing when it died or hung, whoever printed it.

`parse` reads backtraces out of text, `reduce` finds the crash point and the signature. The room knows no other room:
logs (`ranks`,
`evidence`), core files and dumps of hung processes (`artifacts`) all speak through this model.
"""

from __future__ import annotations

from triage.stacks.forms import FORMS, GROUPS
from triage.stacks.model import HANDLER, Frame, Stacks, Thread
from triage.stacks.signature import Crash, Note, crashing, name_of, reduce
from triage.stacks.text import clean

_LARGE = 1 << 20


def parse(text: str) -> list[Stacks]:
    """The stacks in a text, one for each form that finds frames of its own, in the order of FORMS. Never raises for
    what the text holds.
    """
    lines = clean(text)
    joined = "\n".join(lines)
    if len(joined) > _LARGE:  # a form that is there at all is there at one of the ends
        joined = f"{joined[: _LARGE // 2]}\n{joined[-_LARGE // 2 :]}"
    found: list[Stacks] = []
    taken: set[str] = set()
    for form in FORMS:
        if form.name in taken or not form.mark.search(joined):
            continue
        stacks = form.read(lines)
        if stacks is not None and any(thread.frames for thread in stacks.threads):
            found.append(stacks)
            taken.update(*(group for group in GROUPS if form.name in group))
    return found


__all__ = [
    "FORMS",
    "HANDLER",
    "Crash",
    "Frame",
    "Note",
    "Stacks",
    "Thread",
    "clean",
    "crashing",
    "name_of",
    "parse",
    "reduce",
]
