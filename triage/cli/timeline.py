"""`triage timeline`: what happened on which rank, in the order of time."""

from __future__ import annotations

from typing import Annotated

import typer

from triage.cli import options, progress, streams

Around = Annotated[
    str | None,
    typer.Option(
        "--around",
        metavar="TIME",
        help="Only this long before and after the failure: 30s, 5m, 1h.",
        show_default=False,
    ),
]


def timeline(
    paths: options.Paths,
    around: Around = None,
    rank: options.Ranks = None,
    format: options.PlainFormat = "text",  # noqa: A002
    output: options.Output = None,
    catalog: options.Catalogs = None,
    workers: options.Workers = None,
    exact: options.Exact = False,
    color: options.Color = "auto",
    width: options.Width = None,
    quiet: options.Quiet = False,
) -> None:
    """Show failures and the last line of every rank in one order.

    Equal lines of several ranks within a second are one row. Events without a time come last.

    \b
    Examples:
      triage timeline job_logs/
      triage timeline job_logs/ --around 5m --rank 3,5-7
      triage timeline job.tar.gz --format json

    Exit status: 0 success; 2 unusable input or options.
    """
    window, ranks = options.parse_duration(around), options.parse_ranks(rank)
    from triage.render import timeline as rendering

    streams.check_output(output)
    from triage import pipeline
    from triage.diagnose.timeline import cut_timeline

    pipeline_options = pipeline.Options(
        catalogs=tuple(catalog or ()), workers=workers, fork=True, addresses=True, reuse=not exact
    )
    with progress.progress_bar(quiet) as callback:
        selected = cut_timeline(pipeline.timeline(paths, pipeline_options, callback), window, ranks)
    streams.write_format(
        format,
        output,
        json=lambda: rendering.as_json(selected),
        text=lambda: rendering.as_text(selected, **streams.text_style(width, color, output)),
    )
