"""The problems that `triage catalog check` reports: as text, as JSON, or as annotations of a GitHub workflow."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence

from triage.catalog.problems import Problem
from triage.render.phrases import format_count
from triage.render.sanitize import sanitize_line
from triage.render.workflow_commands import command


def as_text(problems: Sequence[Problem]) -> str:
    """Return `path:line:column: severity: message` with its hint, and the sums at the end."""
    lines = []
    for problem in problems:
        lines.append(sanitize_line(f"{_place(problem)}: {problem.severity}: {problem.message}"))
        lines += [f"  try: {sanitize_line(problem.hint)}"] if problem.hint else []
    counts = [
        (severity, sum(1 for problem in problems if problem.severity == severity)) for severity in ("error", "warning")
    ]
    lines.append(
        ", ".join(format_count(count, severity) for severity, count in counts) if problems else "no problems found"
    )
    return "\n".join(lines) + "\n"


def as_json(problems: Sequence[Problem]) -> str:
    """Return a list of objects with the fields of `Problem`."""
    return json.dumps([dataclasses.asdict(problem) for problem in problems], indent=2, ensure_ascii=False) + "\n"


def as_github(problems: Sequence[Problem]) -> str:
    """Return one workflow command for each problem; nothing in a message can start another command."""
    return "".join(map(_command, problems))


def _command(problem: Problem) -> str:
    kind = {"error": "error", "warning": "warning"}.get(problem.severity, "notice")
    message = f"{problem.message} ({problem.hint})" if problem.hint else problem.message
    return command(kind, message, {"file": problem.path, "line": problem.line, "col": problem.column}) + "\n"


def _place(problem: Problem) -> str:
    return ":".join(str(part) for part in (problem.path, problem.line, problem.column) if part is not None)


WRITERS: Mapping[str, Callable[[Sequence[Problem]], str]] = {"text": as_text, "json": as_json, "github": as_github}
