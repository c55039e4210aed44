"""`triage stacks`: the stacks of all ranks side by side."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Annotated

import typer

from triage.cli import options

if TYPE_CHECKING:
    from triage.artifacts.stacks.model import Process
    from triage.model import Warning


class StacksFormat(str, Enum):  # noqa: UP042 - typer shows the value of this form in every release
    text = "text"
    json = "json"
    svg = "svg"


def stacks(
    paths: options.Paths,
    format: Annotated[StacksFormat, typer.Option("--format", "-f", help="How to write the answer.")] = StacksFormat.text,  # noqa: A002
    output: options.Output = None,
    color: options.ColorOption = options.Color.auto,
    width: options.Width = None,
) -> None:
    """Show what the ranks of a hung job are doing, and which are elsewhere.

    Reads dumps of live processes by `py-spy dump` (text or JSON, native frames and locals or not), groups the ranks by their stack,
    and says which ranks are not where most of them wait. The format svg draws all stacks merged into one tree.

    \b
    Examples:
      py-spy dump --native --pid 4711 > rank0.txt
      triage stacks rank*.txt
      triage stacks job_logs/ --format svg -o stacks.svg

    A rank is known by the file's name (rank3.txt). Exit status: 0 it worked; 2 there is no dump, or the options cannot be used.
    """
    from triage.artifacts.stacks.board import board
    from triage.cli import streams
    from triage.render import stacks as render

    streams.check(output)
    processes, warnings = _read(paths)
    found = board(processes)
    if format is StacksFormat.json:
        streams.deliver(render.as_json(found, warnings), output, utf8=True)
    elif format is StacksFormat.svg:
        streams.deliver(render.as_svg(found), output, utf8=True)
    else:
        columns, painted = streams.width(width, output), streams.color(color.value, output)
        streams.deliver(render.as_text(found, warnings, width=columns, color=painted), output)


def _read(paths: list[str]) -> tuple[list[Process], list[Warning]]:
    """All dumps below the paths. Raises InputError when there is none."""
    from triage import sources
    from triage.artifacts.interface import ArtifactError, damaged
    from triage.artifacts.stacks.reader import MOST_BYTES, processes
    from triage.errors import InputError

    found: list[Process] = []
    listed = sources.discover(paths)
    warnings = list(listed.warnings)
    for file in listed.files:
        for source, stream in sources.streams(file, sources.Limits(), warnings.append):
            if source.kind != "py-spy":
                continue
            try:
                found.extend(processes(_content(source.path, stream, MOST_BYTES), source.name))
            except ArtifactError as error:
                warnings.append(damaged(source, error))
    if not found:
        hint = "take one of every rank: `py-spy dump --native --pid PID > rank0.txt`"
        raise InputError("no stacks of live processes in it", hint=hint, path=", ".join(paths[:3]))
    return found, warnings


def _content(path: str | None, stream: object, limit: int) -> bytes:
    if stream is not None:
        data: bytes = stream.read(limit)  # type: ignore[attr-defined]
        return data
    with open(path or "", "rb") as file:
        return file.read(limit)
