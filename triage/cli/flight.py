"""`triage flight`: compare the Flight Recorder dumps of a job."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from triage.cli import options, progress, streams

FormatOption = Annotated[Literal["text", "json", "html"], typer.Option("--format", "-f", help="Output format.")]
Group = Annotated[
    str,
    typer.Option(
        "--group",
        metavar="NAME",
        help="Only this process group: its name or part of its description.",
        show_default=False,
    ),
]
Around = Annotated[
    int | None,
    typer.Option(
        "--around", metavar="SEQ", min=0, help="Show the calls near this sequence number.", show_default=False
    ),
]


def flight(
    paths: options.Paths,
    format: FormatOption = "text",  # noqa: A002
    output: options.Output = None,
    group: Group = "",
    around: Around = None,
    fail: Annotated[bool, typer.Option("--fail", help="Exit with 1 if a fault is found.")] = False,
    color: options.Color = "auto",
    width: options.Width = None,
    quiet: options.Quiet = False,
) -> None:
    """Compare the Flight Recorder dumps of a job: which rank never joined, and where it was.

    Reads the dumps of all ranks (pickle or JSON, compressed or in an archive, in any directory layout) without torch
    and without running any code in them. Shows which rank is at fault in which collective, what the others called at
    that point and from where, and which waits are only consequences.

    \b
    Examples:
      triage flight /tmp/nccl_trace/
      triage flight dumps/ --group tp0 --around 1200
      triage flight dumps.tar.gz --format html -o flight.html

    Exit status: 0 success, whatever was found; 1 with --fail for a fault; 2 no dump could be read.
    """
    streams.check_output(output)
    from triage.artifacts.flight.dump_files import read_dump_files

    with progress.progress_bar(quiet) as callback:
        advance = progress.as_byte_callback("read", callback) or progress.ignore
        recording, warnings = read_dump_files(paths, advance)
    # These load numpy, so they are imported after the processes that read dumps are forked.
    from triage.artifacts.flight.analyse import analyse
    from triage.artifacts.flight.view import view
    from triage.render import flight as rendering, flight_html

    shown = view(recording, analyse(recording), path=paths[0], group=group, around=around, warnings=warnings)
    streams.write_format(
        format,
        output,
        json=lambda: rendering.as_json(shown),
        html=lambda: flight_html.as_html(shown),
        text=lambda: rendering.as_text(shown, **streams.text_style(width, color, output)),
    )
    if fail and shown.analysis.faults:
        raise typer.Exit(1)
