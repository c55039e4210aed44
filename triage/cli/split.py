"""`triage split`: split mixed logs into one file per rank."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from triage.cli import options, progress, streams

if TYPE_CHECKING:
    from triage.split import Result

_MAX_LISTED = 8
OutputDirectory = Annotated[
    Path, typer.Option("--output", "-o", metavar="DIR", help="The directory to write to; created if missing.")
]
KeepPrefix = Annotated[bool, typer.Option("--keep-prefix", help="Keep the prefixes that launchers put before lines.")]
Force = Annotated[
    bool, typer.Option("--force", help="Write to a directory that is not empty; an earlier split is replaced.")
]


def split(
    paths: options.Paths,
    output: OutputDirectory,
    rank: options.Ranks = None,
    keep_prefix: KeepPrefix = False,
    force: Force = False,
    format: options.PlainFormat = "text",  # noqa: A002
    workers: options.Workers = None,
    quiet: options.Quiet = False,
) -> None:
    """Write the lines of every rank to a file of its own.

    The prefixes of launchers, schedulers and containers show which rank wrote a line. They are removed; the rest stays
    byte for byte. Files of one rank are merged by timestamp. Lines without a known writer go to nobody.log, or to
    nobody.HOST.log if their file is named after a host.

    \b
    Examples:
      triage split job.log -o by-rank/
      triage split logs/ -o by-rank/ --rank 3,5-7
      kubectl logs trainer-0 | triage split - -o by-rank/ --keep-prefix

    Exit status: 0 success; 2 unusable input or options.
    """
    from triage.pipeline.intake import Intake
    from triage.split import Options, split as split_sources

    split_options = Options(options.parse_ranks(rank), keep_prefix, force, workers)
    with progress.progress_bar(quiet) as callback:
        advance = progress.as_byte_callback("split", callback)
        result = split_sources(paths, output, split_options, advance, Intake([], paths).skip)
    if format == "json":
        streams.write_output(_as_json(result), None, utf8=True)
    elif not quiet:
        streams.write_stderr(_as_text(result, output))


def _as_text(result: Result, output: Path) -> str:
    from triage.render.phrases import format_bytes, format_count
    from triage.render.sanitize import sanitize_line
    from triage.split import output_files

    ranks = [file for file in result.files if file.rank is not None]
    rate = f", {format_bytes(round(result.bytes / result.seconds))}/s" if result.seconds else ""
    lines = [f"{format_count(result.lines, 'line')} ({format_bytes(result.bytes)}) in {result.seconds:.1f} s{rate}"]
    rank_lines = format_count(sum(file.lines for file in ranks), "line")
    lines.append(f"{format_count(len(ranks), 'rank')}, {rank_lines}, in {sanitize_line(str(output))}")
    others = [file for file in result.files if file.rank is None]
    lines += [f"{file.name}: {format_count(file.lines, 'line')}" for file in others[-_MAX_LISTED:]]
    if len(others) > _MAX_LISTED:
        lines.append(f"and {len(others) - _MAX_LISTED:,} more writers without a known rank: see {output_files.INDEX}")
    for warning in result.warnings:
        where = f"{warning.source}: " if warning.source else ""
        lines.append(sanitize_line(f"warning: {where}{warning.message}"))
    return "".join(f"{line}\n" for line in lines)


def _as_json(result: Result) -> str:
    import dataclasses
    import json

    return json.dumps({"schema": "triage.split/1", **dataclasses.asdict(result)}, indent=1, ensure_ascii=False) + "\n"
