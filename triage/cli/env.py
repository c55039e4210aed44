"""`triage env`: settings and versions of the ranks side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from triage.cli import options


def env(
    paths: options.Paths,
    format: Annotated[  # noqa: A002
        options.PlainFormat, typer.Option("--format", "-f", help="How to write the answer.")
    ] = options.PlainFormat.text,
    output: options.Output = None,
    rules: Annotated[
        Path | None,
        typer.Option(
            "--rules", metavar="FILE", help="Rules of your own, laid over the shipped ones.", show_default=False
        ),
    ] = None,
    fail: Annotated[
        bool, typer.Option("--fail", help="Exit with 1 when something of severity error or warning was found.")
    ] = False,
    workers: options.Workers = None,
    color: options.ColorOption = options.Color.auto,
    width: options.Width = None,
    quiet: options.Quiet = False,
) -> None:
    """Compare the settings and versions of the ranks.

    Reads what logs state (NCCL's "set by environment" lines, exports, banners) and dumps of one rank or node each: env,
    printenv,
    /proc/PID/environ, pip freeze, nvidia-smi, npu-smi, torch.utils.collect_env. Says what differs between ranks that
    must agree,
    what is set on some only, what is dangerous, and which devices are not well. Values of secrets are never shown.

    \b
    Examples:
      triage env job_logs/
      srun --ntasks-per-node=1 bash -c 'env > env.$(hostname)' && triage env env.*
      triage env before_the_run/ --fail && srun train.sh

    Exit status: 0 it worked; 1 with --fail when something grave was found; 2 the input or the options cannot be used.
    """
    from triage.cli import progress, streams
    from triage.render import environment

    streams.check(output)
    from triage import pipeline

    with progress.shown(quiet) as callback:
        found = pipeline.audit(paths, pipeline.Options(workers=workers, fork=True, settings=rules), callback)
    if format is options.PlainFormat.json:
        streams.deliver(environment.as_json(found), output, utf8=True)
    else:
        columns, painted = streams.width(width, output), streams.color(color.value, output)
        streams.deliver(environment.as_text(found, width=columns, color=painted), output)
    if fail and any(item.severity in ("fatal", "error", "warning") for item in found.deviations):
        raise typer.Exit(1)
