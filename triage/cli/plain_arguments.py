"""Read the plain arguments of `triage ingest` without typer: importing typer takes a tenth of the time of a small job.

Only what typer certainly reads alike is read here. For everything else (help, wrong values, combined letters, other
options and commands) the answer is None, and typer reads the arguments, with its errors.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

from triage.cli.values import ColorChoice, FailingVerdict, Format

_FLAGS = {
    "-q": "quiet",
    "--quiet": "quiet",
    "-v": "verbose",
    "--verbose": "verbose",
    "--no-store": "no_store",
    "--exact": "exact",
}
_TEXTS = {"-o": "output", "--output": "output", "--store": "store"}
_CHOICES = {
    "-f": ("format", get_args(Format)),
    "--format": ("format", get_args(Format)),
    "--fail-on": ("fail_on", get_args(FailingVerdict)),
    "--color": ("color", get_args(ColorChoice)),
}


def parse_ingest(arguments: Sequence[str]) -> dict[str, Any] | None:
    """Return the arguments of `ingest_job` for a command line, or None if it is not a plain `ingest`."""
    if arguments[:1] != ["ingest"] or "_TRIAGE_COMPLETE" in os.environ:
        return None
    parsed: dict[str, Any] = {"paths": []}
    remaining = iter(arguments[1:])
    for argument in remaining:
        if argument == "-" or (argument and argument[0] != "-"):
            parsed["paths"].append(argument)
        elif argument in _FLAGS:
            parsed[_FLAGS[argument]] = True
        elif argument in _TEXTS or argument in _CHOICES:
            value = next(remaining, "")
            name, choices = _CHOICES.get(argument, (_TEXTS.get(argument, ""), (value,)))
            if value not in choices or not value or (value != "-" and value[0] == "-"):
                return None
            parsed[name] = Path(value) if name == "output" else value
        else:
            return None
    return parsed if parsed["paths"] else None
