"""`triage flight`: what the Flight Recorder dumps of a job say."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import typer

from triage.cli import options


class FlightFormat(str, Enum):  # noqa: UP042 - typer shows the value of this form in every release
    text = "text"
    json = "json"
    html = "html"


def flight(
    paths: options.Paths,
    format: Annotated[  # noqa: A002
        FlightFormat, typer.Option("--format", "-f", help="How to write the answer.")
    ] = FlightFormat.text,
    output: options.Output = None,
    group: Annotated[
        str,
        typer.Option(
            "--group",
            metavar="NAME",
            help="Only this process group: its name or part of its description.",
            show_default=False,
        ),
    ] = "",
    around: Annotated[
        int | None,
        typer.Option(
            "--around", metavar="SEQ", min=0, help="Show the calls near this sequence number.", show_default=False
        ),
    ] = None,
    fail: Annotated[bool, typer.Option("--fail", help="Exit with 1 when a fault was found.")] = False,
    color: options.ColorOption = options.Color.auto,
    width: options.Width = None,
    quiet: options.Quiet = False,
) -> None:
    """Compare the Flight Recorder dumps of a job: which rank never joined, and where it was.

    Reads the dumps of all ranks (pickle or JSON, compressed or in an archive, in any directory layout) without torch
    and without
    running anything in them. Says which rank is at fault in which collective, what the others called at that point and
    from where,
    and which waits only follow from that.

    \b
    Examples:
      triage flight /tmp/nccl_trace/
      triage flight dumps/ --group tp0 --around 1200
      triage flight dumps.tar.gz --format html -o flight.html

    Exit status: 0 it worked, whatever it found; 1 with --fail when there is a fault; 2 no dump could be read.
    """
    from triage.cli import progress, streams

    streams.check(output)
    from triage.artifacts.flight.analyse import analyse
    from triage.artifacts.flight.gather import gather
    from triage.artifacts.flight.view import view
    from triage.base.options import Progress
    from triage.render import flight as texts
    from triage.render import flight_html

    with progress.shown(quiet) as callback:
        recording, warnings = gather(
            paths, (lambda done, total: callback(Progress("read", done, total))) if callback else _silent
        )
    shown = view(recording, analyse(recording), path=paths[0], group=group, around=around, warnings=warnings)
    if format is FlightFormat.json:
        streams.deliver(texts.as_json(shown), output, utf8=True)
    elif format is FlightFormat.html:
        streams.deliver(flight_html.as_html(shown), output, utf8=True)
    else:
        columns, painted = streams.width(width, output), streams.color(color.value, output)
        streams.deliver(texts.as_text(shown, width=columns, color=painted), output)
    if fail and shown.analysis.faults:
        raise typer.Exit(1)


def _silent(done: int, total: int) -> None:
    """Nobody looks."""
