"""`triage show`: a stored incident, or a saved report in another format."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from triage.base.lazy_re import lazy_re
from triage.cli import options

if TYPE_CHECKING:
    from triage.model.diagnosis import Diagnosis

_ID = lazy_re(r"[ij]-[0-9a-z]+|[0-9a-f]{4,64}")


def show(
    report: Annotated[
        str,
        typer.Argument(
            metavar="ID|FILE", help="An incident, or a report in JSON; - is standard input.", show_default=False
        ),
    ],
    format: options.Chosen = options.Format.text,  # noqa: A002
    output: options.Output = None,
    fail_on: options.Failing = None,
    color: options.ColorOption = options.Color.auto,
    width: options.Width = None,
    link: options.Link = "",
    store: options.StoreFile = None,
) -> None:
    """Show a stored incident or a saved report, without the logs.

    Of an incident it also says how often it was seen, what people said about it, and what it was held for before.

    \b
    Examples:
      triage show i-4f2a9c
      triage show report.json
      triage show report.json --format markdown -o comment.md
      curl -s https://ci.example/report.json | triage show -
    """
    from triage.cli import streams
    from triage.render import json, render

    streams.check(output)
    if is_incident(report):
        diagnosis = _incident(report, format, output, color, width, link, store)
    else:
        diagnosis = json.read(streams.read(report), None if report == "-" else report)
        shown = render(
            diagnosis,
            format.value,
            width=streams.width(width, output),
            color=streams.color(color.value, output),
            link=link,
        )
        streams.deliver(shown, output, utf8=format in options.UTF8)
    if format is options.Format.github:
        from triage.cli import workflow

        workflow.tell(diagnosis, link)
    if options.found(diagnosis.verdict, fail_on):
        raise typer.Exit(1)


def is_incident(report: str) -> bool:
    """Does this name an incident, rather than a file?"""
    return _ID.fullmatch(report.lower()) is not None and not Path(report).is_file()


def _incident(
    wanted: str,
    chosen: options.Format,
    output: Path | None,
    color: options.Color,
    width: int | None,
    link: str,
    store: Path | None,
) -> Diagnosis:
    from triage.cli import streams
    from triage.render import incidents, render

    with options.stored(store) as opened:
        found = opened.incidents.get(wanted)
    if chosen is options.Format.json:
        streams.deliver(incidents.remembered_as_json(found, found.diagnosis), output, utf8=True)
        return found.diagnosis
    columns, painted = streams.width(width, output), streams.color(color.value, output)
    shown = render(found.diagnosis, chosen.value, width=columns, color=painted, link=link)
    if chosen is options.Format.text:
        shown += "\n" + incidents.remembered(found, width=columns, color=painted)
    streams.deliver(shown, output, utf8=chosen in options.UTF8)
    return found.diagnosis
