"""Two catalogs compared, for a person or a program."""

from __future__ import annotations

import dataclasses
import json

from triage.catalog.diff import Diff
from triage.render.safe import safe_line
from triage.render.words import plural


def as_text(found: Diff) -> str:
    """A line a signature that changed, a line a finding that would change, and the sums."""
    lines = []
    for change in found.changes:
        raised = (
            f" (revision {change.old_revision} to {change.new_revision})"
            if change.old_revision != change.new_revision
            else ""
        )
        lines.append(
            safe_line(
                f"{change.what} {change.signature}{raised}{': ' + ', '.join(change.parts) if change.parts else ''}"
            )
        )
    lines += [""] if found.changes and found.moved else []
    for moved in found.moved:
        signs = [*(f"-{name}" for name in moved.gone), *(f"+{name}" for name in moved.new)]
        root = [f"root cause {moved.root[0]} becomes {moved.root[1]}"] if moved.root else []
        lines.append(safe_line(f"{moved.where}: {', '.join([*signs, *root])}"))
    sums = (
        f"{plural(len(found.changes), 'signature')} differ; findings change in {len(found.moved)} of {found.looked_at}"
    )
    return "\n".join([*lines, sums]) + "\n"


def as_json(found: Diff) -> str:
    return json.dumps(dataclasses.asdict(found), indent=2, ensure_ascii=False) + "\n"
