"""`triage show`: a stored incident, or a saved report in another format."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from triage.base.lazy_re import lazy_re
from triage.cli import options, streams

_ID = lazy_re(r"[ij]-[0-9a-z]+|[0-9a-f]{4,64}")


def show(
    report: Annotated[
        str,
        typer.Argument(
            metavar="ID|FILE", help="An incident, or a report in JSON; - is standard input.", show_default=False
        ),
    ],
    format: options.ReportFormat = "text",  # noqa: A002
    output: options.Output = None,
    fail_on: options.FailOn = None,
    color: options.Color = "auto",
    width: options.Width = None,
    link: options.Link = "",
    store: options.StoreFile = None,
    verbose: options.Verbose = False,
) -> None:
    """Show a stored incident or a saved report, without the logs.

    For an incident it also shows how often it occurred, the feedback, and earlier diagnoses.

    \b
    Examples:
      triage show i-4f2a9c
      triage show report.json
      triage show report.json --format markdown -o comment.md
      curl -s https://ci.example/report.json | triage show -
    """
    from triage.cli.ingest_job import write_report
    from triage.render import incidents, json, render

    streams.check_output(output)
    style = streams.text_style(width, color, output)
    if not is_incident(report):
        diagnosis = json.read(streams.read_report_text(report), None if report == "-" else report)
        text = render(diagnosis, format, link=link, verbose=verbose, **style)
    else:
        from triage.store.recurrence import find_recurrence

        with options.open_store(store) as opened:
            incident, recurrence = opened.incidents.get(report), find_recurrence(opened, report)
        diagnosis = incident.diagnosis
        if format == "json":
            text = incidents.remembered_as_json(incident, diagnosis)
        else:
            text = render(diagnosis, format, link=link, verbose=verbose, recurrence=recurrence, **style)
        if format == "text":
            text += "\n" + incidents.remembered(incident, **style)
    status = write_report(diagnosis, text, format, output, link, fail_on)
    if status:
        raise typer.Exit(status)


def is_incident(report: str) -> bool:
    """Return whether this names an incident, not a file."""
    return _ID.fullmatch(report.lower()) is not None and not Path(report).is_file()
