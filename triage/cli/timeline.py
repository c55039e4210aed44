"""`triage timeline`: what happened to which rank, in the order of the clocks."""

from __future__ import annotations

from typing import Annotated

import typer

from triage.cli import options


def timeline(
    paths: options.Paths,
    around: Annotated[
        str | None,
        typer.Option(
            "--around",
            metavar="TIME",
            help="Only this long before and after the failure: 30s, 5m, 1h.",
            show_default=False,
        ),
    ] = None,
    rank: options.Ranks = None,
    format: Annotated[  # noqa: A002
        options.PlainFormat, typer.Option("--format", "-f", help="How to write the timeline.")
    ] = options.PlainFormat.text,
    output: options.Output = None,
    catalog: options.Catalogs = None,
    workers: options.Workers = None,
    color: options.ColorOption = options.Color.auto,
    width: options.Width = None,
    quiet: options.Quiet = False,
) -> None:
    """Show failures and the last line of every rank in one order.

    Ranks that say the same within a second are told together. What has no time comes last.

    \b
    Examples:
      triage timeline job_logs/
      triage timeline job_logs/ --around 5m --rank 3,5-7
      triage timeline job.tar.gz --format json

    Exit status: 0 it worked; 2 the input or the options cannot be used.
    """
    window, ranks = options.seconds(around), options.rank_set(rank)
    from triage.cli import progress, streams
    from triage.render import timeline as rendering

    streams.check(output)
    from triage import pipeline
    from triage.diagnose.timeline import cut

    with progress.shown(quiet) as callback:
        told = cut(
            pipeline.timeline(
                paths, pipeline.Options(catalogs=tuple(catalog or ()), workers=workers, fork=True), callback
            ),
            window,
            ranks,
        )
    if format is options.PlainFormat.json:
        streams.deliver(rendering.as_json(told), output, utf8=True)
    else:
        columns, painted = streams.width(width, output), streams.color(color.value, output)
        streams.deliver(rendering.as_text(told, width=columns, color=painted), output)
