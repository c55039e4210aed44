"""Two catalogs compared, for a person or a program."""

from __future__ import annotations

import dataclasses
import json

from triage.catalog.diff import CatalogDiff
from triage.render.phrases import format_count
from triage.render.sanitize import sanitize_line


def as_text(difference: CatalogDiff) -> str:
    """Return a line for each changed signature, a line for each finding that would change, and the sums."""
    lines = []
    for change in difference.changes:
        raised = (
            f" (revision {change.old_revision} to {change.new_revision})"
            if change.old_revision != change.new_revision
            else ""
        )
        lines.append(
            sanitize_line(
                f"{change.what} {change.signature}{raised}{': ' + ', '.join(change.parts) if change.parts else ''}"
            )
        )
    lines += [""] if difference.changes and difference.moved else []
    for moved in difference.moved:
        signs = [*(f"-{name}" for name in moved.gone), *(f"+{name}" for name in moved.new)]
        root = [f"root cause {moved.root[0]} becomes {moved.root[1]}"] if moved.root else []
        lines.append(sanitize_line(f"{moved.where}: {', '.join([*signs, *root])}"))
    changed = format_count(len(difference.changes), "signature")
    verb = "differs" if len(difference.changes) == 1 else "differ"
    sums = f"{changed} {verb}; findings change in {len(difference.moved)} of {difference.looked_at}"
    return "\n".join([*lines, sums]) + "\n"


def as_json(difference: CatalogDiff) -> str:
    """Return the difference as JSON."""
    return json.dumps(dataclasses.asdict(difference), indent=2, ensure_ascii=False) + "\n"
