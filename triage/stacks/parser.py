"""Printed stacks → the stack model."""

from __future__ import annotations

from triage.stacks.cleanup import clean
from triage.stacks.forms import FORMS, GROUPS
from triage.stacks.model import Stacks

_MAX_SEARCHED = 1 << 20


def parse_stacks(text: str) -> list[Stacks]:
    """Return the stacks in a text, one for each form with frames in it, in the order of FORMS. Never raises."""
    lines = clean(text)
    searched = "\n".join(lines)
    if len(searched) > _MAX_SEARCHED:  # every form that occurs also occurs at one of the ends
        searched = f"{searched[: _MAX_SEARCHED // 2]}\n{searched[-_MAX_SEARCHED // 2 :]}"
    result: list[Stacks] = []
    done: set[str] = set()
    for form in FORMS:
        if form.name in done or not form.mark.search(searched):
            continue
        stacks = form.read(lines)
        if stacks is not None and any(thread.frames for thread in stacks.threads):
            result.append(stacks)
            done.update(*(group for group in GROUPS if form.name in group))
    return result
