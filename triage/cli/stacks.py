"""`triage stacks`: the stacks of all ranks side by side."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Annotated

import typer

from triage.cli import options

if TYPE_CHECKING:
    from triage.artifacts.stacks.board import Told
    from triage.model.evidence import Evidence, Warning
    from triage.ranks.last import Word


class StacksFormat(str, Enum):  # noqa: UP042 - typer shows the value of this form in every release
    text = "text"
    json = "json"
    svg = "svg"


def stacks(
    paths: options.Paths,
    format: Annotated[  # noqa: A002
        StacksFormat, typer.Option("--format", "-f", help="How to write the answer.")
    ] = StacksFormat.text,
    output: options.Output = None,
    color: options.ColorOption = options.Color.auto,
    width: options.Width = None,
) -> None:
    """Show what the ranks of a hung job are doing, and which are elsewhere.

    Reads dumps of live processes by py-spy (text or JSON, native frames and locals or not), gdb, pstack, eu-stack,
    faulthandler (also
    inside logs), strace, /proc (wait channels, kernel stacks) and ps, groups the ranks by their stack, and says which
    ranks are not where
    most of them wait. The format svg draws all stacks merged into one tree.

    \b
    Examples:
      py-spy dump --native --pid 4711 > rank0.txt
      triage stacks rank*.txt
      triage stacks job_logs/ --format svg -o stacks.svg

    A rank is known by the file's name (rank3.txt). Exit status: 0 it worked; 2 there is no dump, or the options cannot
    be used.
    """
    from triage.artifacts.stacks.board import assemble
    from triage.cli import streams
    from triage.render import stacks as render

    streams.check(output)
    told, warnings = _read(paths)
    found = assemble(told)
    if format is StacksFormat.json:
        streams.deliver(render.as_json(found, warnings), output, utf8=True)
    elif format is StacksFormat.svg:
        streams.deliver(render.as_svg(found), output, utf8=True)
    else:
        columns, painted = streams.width(width, output), streams.color(color.value, output)
        streams.deliver(render.as_text(found, warnings, width=columns, color=painted), output)


def _read(paths: list[str]) -> tuple[list[Told], list[Warning]]:
    """All dumps below the paths. Raises InputError when there is none."""
    from triage import sources
    from triage.artifacts.interface import ArtifactError, damaged
    from triage.artifacts.stacks.conclude import latest, told_of
    from triage.artifacts.stacks.reader import MOST_BYTES, fact, processes
    from triage.base.errors import InputError
    from triage.model.evidence import Warning
    from triage.ranks.identity import JobMap

    found: list[Evidence] = []
    words: list[tuple[str, Word]] = []
    listed = sources.discover(paths)
    warnings = list(listed.warnings)
    for file in listed.files:
        for source, stream in sources.streams(file, sources.Limits(), warnings.append):
            try:
                if source.kind in ("py-spy", "live-stacks"):
                    found.extend(map(fact, processes(_content(source.path, stream, MOST_BYTES), source.name)))
                elif source.kind == "text":
                    facts, said = _in_log(_content(source.path, stream, MOST_BYTES), source.name)
                    found.extend(facts)
                    words.extend((source.name, word) for word in said)
            except ArtifactError as error:
                warnings.append(damaged(source, error))
    if not found:
        hint = "take one of every rank: `py-spy dump --native --pid PID > rank0.txt`"
        raise InputError("no stacks of live processes in it", hint=hint, path=", ".join(paths[:3]))
    job = JobMap()
    for each in found:
        job.learn(each.source, each.origin)
    job.settle()
    kept = latest(found, job.complete, words)
    message = "left out, because its rank went on after it printed its stack"
    warnings += [
        Warning("stack-outdated", name, message) for name in sorted({each.source for each in found if each not in kept})
    ]
    return [told_of(each, job.complete) for each in kept], warnings


def _in_log(data: bytes, name: str) -> tuple[list[Evidence], list[Word]]:
    """The stacks in a log where processes printed them of themselves (faulthandler), or somebody pasted them, and its
    last words.
    """
    from triage.evidence import from_text
    from triage.ranks.last import words
    from triage.ranks.layouts import layout_of

    if not any(mark in data for mark in (b"hread 0x", b"(LWP ", b"#0  0x")):
        return [], []
    stacks = [
        fact
        for fact in from_text(data.decode("utf-8", "replace"), name)
        if fact.kind == "stack" and "state" in fact.fields
    ]
    return stacks, words(data, 0, 1970, layout_of(data)) if stacks else []


def _content(path: str | None, stream: object, limit: int) -> bytes:
    if stream is not None:
        data: bytes = stream.read(limit)  # type: ignore[attr-defined]
        return data
    with open(path or "", "rb") as file:
        return file.read(limit)
