"""`triage run`: run the command of a job, and diagnose it when it fails."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from triage.base.errors import OptionError
from triage.cli import failure, options, streams, values

if TYPE_CHECKING:
    from triage.pipeline import Options

CONSOLE = "console.log"
Command = Annotated[
    list[str], typer.Argument(metavar="COMMAND...", help="The command with its arguments.", show_default=False)
]
Directory = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="DIR",
        help="Where the output is saved. Default: triage-run-TIME-PID here.",
        show_default=False,
    ),
]
Logs = Annotated[
    list[Path] | None,
    typer.Option(
        "--logs",
        metavar="PATH",
        help="Files that the job writes itself, diagnosed too if they change while it runs; may be repeated.",
        show_default=False,
    ),
]


def run(
    command: Command,
    output: Directory = None,
    logs: Logs = None,
    catalog: options.Catalogs = None,
    store: options.StoreFile = None,
    no_store: Annotated[bool, typer.Option("--no-store", help="Do not store the diagnosis.")] = False,
    notify: options.Notify = False,
    label: options.Labels = None,
    quiet: options.Quiet = False,
) -> None:
    """Run a command, save its output, and diagnose it when it fails.

    Output and exit status are those of the command; the report goes to standard error. Signals are passed on. Write
    `--` before the command.

    \b
    Examples:
      triage run -- torchrun --nproc-per-node 8 train.py
      triage run -o logs/run-42 --notify -- python train.py
      triage run --logs job_logs/ -- torchrun --log-dir job_logs train.py

    Exit status: that of the command, 128 + N after signal N; 2 unusable options, or the command cannot be started.
    """
    from triage.cli.ingest_job import build_options
    from triage.evidence.job_facts import parse_labels
    from triage.watch.command_run import run_command

    # What is wrong with the options is an error before the command starts, not after it has run for days.
    parse_labels(label or ())
    if notify:
        from triage.cli.notify import load_routes

        load_routes(store, no_store)
    directory = output or Path(f"triage-run-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}")
    console = _create(directory)
    started = math.floor(console.stat().st_mtime)  # by the clock of the file system; some have whole seconds
    with console.open("ab") as log:
        end = run_command(command, log)
    if end.status:
        try:
            paths = [str(directory), *(str(path) for path in logs or () if path.exists())]
            own = build_options(catalog, None, values.DEFAULT_CHUNK_SIZE, False, label)
            own = replace(own, changed_since=started)  # logs of earlier runs may be in the same directory
            _report(paths, own, store, no_store=no_store, notify=notify, quiet=quiet)
        except (Exception, KeyboardInterrupt) as error:  # the exit status stays that of the command
            failure.report(error)
    raise typer.Exit(end.status)


def _create(directory: Path) -> Path:
    """Create the directory and return the path of the console's log. Raises OptionError."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        console = directory / CONSOLE
        console.write_bytes(b"")
        return console
    except OSError as error:
        raise OptionError(
            f"cannot write {directory}: {error.strerror}", hint="give a directory that you may write to with -o"
        ) from None


def _report(
    paths: Sequence[str], own: Options, store: str | None, *, no_store: bool, notify: bool, quiet: bool
) -> None:
    """Diagnose the paths, and write the report to standard error."""
    from triage.cli.ingest_job import diagnose
    from triage.render import render

    diagnosis, recurrence = diagnose(paths, own, store, no_store=no_store, notify=notify, quiet=quiet)
    color = streams.is_terminal(sys.stderr) and streams.use_color("auto", None)
    width = streams.text_width(None, None)
    text = render(diagnosis, "text", width=width, color=color, verbose=False, recurrence=recurrence)
    streams.write_stderr(f"\n{text}")
