"""`triage show`: a saved report in another format."""

from __future__ import annotations

from typing import Annotated

import typer

from triage.cli import options


def show(
    report: Annotated[str, typer.Argument(metavar="FILE", help="A report in JSON; - reads standard input.", show_default=False)],
    format: Annotated[options.Format, typer.Option("--format", "-f", help="How to write the diagnosis.")] = options.Format.text,  # noqa: A002
    output: options.Output = None,
    color: options.ColorOption = options.Color.auto,
    width: options.Width = None,
) -> None:
    """Show a saved report again, in any format, without the logs.

    \b
    Examples:
      triage show report.json
      triage show report.json --format markdown -o comment.md
      curl -s https://ci.example/report.json | triage show -
    """
    from triage.cli import streams
    from triage.render import json, render

    streams.check(output)
    diagnosis = json.read(streams.read(report), None if report == "-" else report)
    shown = render(diagnosis, format.value, width=streams.width(width, output), color=streams.color(color.value, output))
    streams.deliver(shown, output, utf8=format in (options.Format.json, options.Format.html))
