"""What `triage catalog check` found: for a person, a program, or the annotations of a GitHub workflow."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence

from triage.catalog.problems import Problem
from triage.render.commands import command
from triage.render.safe import safe_line
from triage.render.words import plural


def as_text(problems: Sequence[Problem]) -> str:
    """`path:line:column: severity: message`, its hint below, and the sum of all at the end."""
    lines = []
    for problem in problems:
        lines.append(safe_line(f"{_place(problem)}: {problem.severity}: {problem.message}"))
        lines += [f"  try: {safe_line(problem.hint)}"] if problem.hint else []
    counts = [
        (severity, sum(1 for problem in problems if problem.severity == severity)) for severity in ("error", "warning")
    ]
    lines.append(", ".join(plural(count, severity) for severity, count in counts) if problems else "no problems found")
    return "\n".join(lines) + "\n"


def as_json(problems: Sequence[Problem]) -> str:
    """A list of objects with the fields of `Problem`."""
    return json.dumps([dataclasses.asdict(problem) for problem in problems], indent=2, ensure_ascii=False) + "\n"


def as_github(problems: Sequence[Problem]) -> str:
    """Workflow commands, one a problem; a new line or a colon in a message must not start another command."""
    return "".join(map(_command, problems))


def _command(problem: Problem) -> str:
    kind = {"error": "error", "warning": "warning"}.get(problem.severity, "notice")
    message = f"{problem.message} ({problem.hint})" if problem.hint else problem.message
    return command(kind, message, {"file": problem.path, "line": problem.line, "col": problem.column}) + "\n"


def _place(problem: Problem) -> str:
    return ":".join(str(part) for part in (problem.path, problem.line, problem.column) if part is not None)


WRITERS: Mapping[str, Callable[[Sequence[Problem]], str]] = {"text": as_text, "json": as_json, "github": as_github}
