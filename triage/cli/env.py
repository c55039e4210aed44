"""`triage env`: compare settings and versions of the ranks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from triage.cli import options, progress, streams

Rules = Annotated[
    Path | None,
    typer.Option("--rules", metavar="FILE", help="Your own rules, used with the shipped ones.", show_default=False),
]


def env(
    paths: options.Paths,
    format: options.PlainFormat = "text",  # noqa: A002
    output: options.Output = None,
    rules: Rules = None,
    fail: Annotated[bool, typer.Option("--fail", help="Exit with 1 if an error or a warning is found.")] = False,
    workers: options.Workers = None,
    exact: options.Exact = False,
    color: options.Color = "auto",
    width: options.Width = None,
    quiet: options.Quiet = False,
) -> None:
    """Compare the settings and versions of the ranks.

    Reads what logs contain (NCCL's "set by environment" lines, exports, banners) and dumps of one rank or node each:
    env, printenv, /proc/PID/environ, pip freeze, nvidia-smi, npu-smi, torch.utils.collect_env. Shows settings that
    differ between ranks or are missing on some, dangerous settings, and unhealthy devices. Secrets are never shown.

    \b
    Examples:
      triage env job_logs/
      srun --ntasks-per-node=1 bash -c 'env > env.$(hostname)' && triage env env.*
      triage env before_the_run/ --fail && srun train.sh

    Exit status: 0 success; 1 with --fail for an error or a warning; 2 unusable input or options.
    """
    from triage.render import environment

    streams.check_output(output)
    from triage import pipeline

    with progress.progress_bar(quiet) as callback:
        audit = pipeline.audit(
            paths,
            pipeline.Options(workers=workers, fork=True, addresses=True, settings=rules, reuse=not exact),
            callback,
        )
    streams.write_format(
        format,
        output,
        json=lambda: environment.as_json(audit),
        text=lambda: environment.as_text(audit, **streams.text_style(width, color, output)),
    )
    if fail and any(deviation.severity in ("fatal", "error", "warning") for deviation in audit.deviations):
        raise typer.Exit(1)
