"""`triage split`: mixed logs → one file a rank."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from triage.cli import options

if TYPE_CHECKING:
    from triage.ranks.splitting import Result


_SHOWN = 8


def split(
    paths: options.Paths,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="The directory to write to; made if it is not there.")
    ],
    rank: options.Ranks = None,
    keep_prefix: Annotated[
        bool, typer.Option("--keep-prefix", help="Leave what launchers put before each line.")
    ] = False,
    force: Annotated[
        bool,
        typer.Option("--force", help="Write to a directory that is not empty; an earlier split there is replaced."),
    ] = False,
    format: Annotated[  # noqa: A002
        options.PlainFormat, typer.Option("--format", "-f", help="How to write the summary.")
    ] = options.PlainFormat.text,
    workers: options.Workers = None,
    quiet: options.Quiet = False,
) -> None:
    """Write what every rank wrote to a file of its own.

    Lines are told apart by what launchers, schedulers and containers put before them, which comes off; the rest stays
    byte for byte. Files of
    one rank are merged by their stamps. Lines that nothing gives to a writer go to nobody.log, or to
    nobody.HOST.log where their file is named after a host.

    \b
    Examples:
      triage split job.log -o by-rank/
      triage split logs/ -o by-rank/ --rank 3,5-7
      kubectl logs trainer-0 | triage split - -o by-rank/ --keep-prefix

    Exit status: 0 it worked; 2 the input or the options cannot be used.
    """
    from triage.cli import progress, streams
    from triage.intake import Intake
    from triage.ranks import splitting

    chosen = splitting.Options(options.rank_set(rank), keep_prefix, force, workers)
    with progress.shown(quiet) as callback:
        result = splitting.split(paths, output, chosen, progress.counted("split", callback), Intake([], paths).is_aside)
    if format is options.PlainFormat.json:
        streams.deliver(_json(result), None, utf8=True)
    elif not quiet:
        streams.to_stderr(_text(result, output))


def _text(result: Result, output: Path) -> str:
    from triage.ranks.splitting import names
    from triage.render.safe import safe_line
    from triage.render.words import size

    ranks = [file for file in result.files if file.rank is not None]
    rate = f", {size(round(result.bytes / result.seconds))}/s" if result.seconds else ""
    lines = [f"{result.lines:,} lines ({size(result.bytes)}) in {result.seconds:.1f} s{rate}"]
    lines.append(f"{len(ranks):,} ranks, {sum(file.lines for file in ranks):,} lines, in {safe_line(str(output))}")
    others = [file for file in result.files if file.rank is None]
    lines += [f"{file.name}: {file.lines:,} lines" for file in others[-_SHOWN:]]
    if len(others) > _SHOWN:
        lines.append(f"and {len(others) - _SHOWN:,} more writers whose rank nothing says: see {names.INDEX}")
    lines += [
        safe_line(f"warning: {(warning.source + ': ') if warning.source else ''}{warning.message}")
        for warning in result.warnings
    ]
    return "".join(f"{line}\n" for line in lines)


def _json(result: Result) -> str:
    import dataclasses
    import json

    return json.dumps({"schema": "triage.split/1", **dataclasses.asdict(result)}, indent=1, ensure_ascii=False) + "\n"
