"""`triage stacks`: the stacks of all ranks side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from triage.cli import options, streams

if TYPE_CHECKING:
    from triage.artifacts.stacks.comparison import DumpState
    from triage.model.evidence import Evidence, Warning
    from triage.records.activity import Activity


FormatOption = Annotated[Literal["text", "json", "svg"], typer.Option("--format", "-f", help="Output format.")]


def stacks(
    paths: options.Paths,
    format: FormatOption = "text",  # noqa: A002
    output: options.Output = None,
    color: options.Color = "auto",
    width: options.Width = None,
) -> None:
    """Show what the ranks of a hung job are doing, and which ones differ.

    Reads dumps of live processes by py-spy (text or JSON, with or without native frames and locals), gdb, pstack,
    eu-stack, faulthandler (also inside logs), strace, /proc (wait channels, kernel stacks) and ps. Groups the ranks by
    stack and names the ranks that are not where most of them wait. The format svg draws all stacks as one tree.

    \b
    Examples:
      py-spy dump --native --pid 4711 > rank0.txt
      triage stacks rank*.txt
      triage stacks job_logs/ --format svg -o stacks.svg

    The file name (rank3.txt) tells the rank. Exit status: 0 success; 2 no dump, or unusable options.
    """
    from triage.artifacts.stacks.comparison import compare_stacks
    from triage.render import stacks as rendering

    streams.check_output(output)
    states, warnings = _read_stacks(paths)
    comparison = compare_stacks(states)
    streams.write_format(
        format,
        output,
        json=lambda: rendering.as_json(comparison, warnings),
        svg=lambda: rendering.as_svg(comparison),
        text=lambda: rendering.as_text(comparison, warnings, **streams.text_style(width, color, output)),
    )


def _read_stacks(paths: list[str]) -> tuple[list[DumpState], list[Warning]]:
    """Read all dumps below the paths. Raises InputError if there is none."""
    from triage import sources
    from triage.artifacts.interface import ArtifactError, damaged_warning
    from triage.artifacts.stacks.inference import drop_outdated, to_dump_state
    from triage.artifacts.stacks.reader import MAX_BYTES, parse_processes, to_evidence
    from triage.base.errors import InputError
    from triage.model.evidence import Warning
    from triage.ranks.identity import JobMap

    facts: list[Evidence] = []
    last_activity: list[tuple[str, Activity]] = []
    discovered = sources.discover(paths)
    warnings = list(discovered.warnings)
    for file in discovered.files:
        for source, stream in sources.streams(file, sources.Limits(), warnings.append):
            try:
                if source.kind in ("py-spy", "live-stacks"):
                    facts.extend(
                        map(to_evidence, parse_processes(_read_content(source.path, stream, MAX_BYTES), source.name))
                    )
                elif source.kind == "text":
                    stacks, activities = _read_log(_read_content(source.path, stream, MAX_BYTES), source.name)
                    facts.extend(stacks)
                    last_activity.extend((source.name, activity) for activity in activities)
            except ArtifactError as error:
                warnings.append(damaged_warning(source, error))
    if not facts:
        raise InputError(
            "contains no stacks of live processes",
            hint="dump every rank: `py-spy dump --native --pid PID > rank0.txt`",
            path=", ".join(paths[:3]),
        )
    job = JobMap()
    for each in facts:
        job.learn(each.source, each.origin)
    job.resolve()
    current = drop_outdated(facts, job.complete, last_activity)
    message = "left out, because the rank continued after it printed this stack"
    warnings += [
        Warning("stack-outdated", name, message)
        for name in sorted({each.source for each in facts if each not in current})
    ]
    return [to_dump_state(each, job.complete) for each in current], warnings


def _read_log(data: bytes, name: str) -> tuple[list[Evidence], list[Activity]]:
    """Return the stacks in a log (printed by faulthandler or pasted) and its last activity."""
    from triage.evidence import extract_text
    from triage.ranks.layouts import detect_layout
    from triage.records.activity import read_activity

    if not any(mark in data for mark in (b"hread 0x", b"(LWP ", b"#0  0x")):
        return [], []
    stacks = [
        fact
        for fact in extract_text(data.decode("utf-8", "replace"), name)
        if fact.kind == "stack" and fact.detail is not None
    ]
    return stacks, read_activity(data, 0, 1970, detect_layout(data)) if stacks else []


def _read_content(path: str | None, stream: object, limit: int) -> bytes:
    if stream is not None:
        data: bytes = stream.read(limit)  # type: ignore[attr-defined]
        return data
    with open(path or "", "rb") as file:
        return file.read(limit)
