"""The command line. A command imports what it needs when it is called, so that help is fast."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer
from typer.main import get_command

import triage
from triage.cli import (
    collect,
    compare,
    core,
    env,
    explain,
    failure,
    feedback,
    fetch,
    find,
    flight,
    incident_files,
    ingest,
    mcp,
    repro,
    run as run_command,
    serve,
    show,
    split,
    stacks,
    timeline,
    watch,
)
from triage.cli.lazy_commands import GROUPS

COMMANDS: tuple[tuple[str, Callable[..., None]], ...] = (
    ("ingest", ingest.ingest),
    ("show", show.show),
    ("compare", compare.compare),
    ("explain", explain.explain),
    ("env", env.env),
    ("split", split.split),
    ("timeline", timeline.timeline),
    ("core", core.core),
    ("flight", flight.flight),
    ("repro", repro.repro),
    ("causes", find.causes),
    ("list", find.list_),
    ("search", find.search),
    ("similar", find.similar),
    ("stats", find.stats),
    ("feedback", feedback.feedback),
    ("retriage", feedback.retriage),
    ("bundle", incident_files.bundle),
    ("delete", incident_files.delete),
    ("stacks", stacks.stacks),
    ("collect", collect.collect),
    ("watch", watch.watch),
    ("run", run_command.run),
    ("fetch", fetch.fetch),
    ("mcp", mcp.mcp),
    ("serve", serve.serve),
)
# Options behind the command of `triage run` are those of the command.
_CONTEXTS: dict[str, dict[str, Any]] = {"run": {"allow_interspersed_args": False}}

_FIRST_STEPS = """\
triage finds the rank and the line where a multi-rank job began to fail.

  triage ingest job_logs/   a job died: what began it, where, and what to do
  triage watch job_logs/    a job runs: report at once when it fails or stalls
  triage collect            a job hangs: look into its processes
  triage serve              a team: incidents and causes as pages in a browser

`triage --help` lists all commands, `triage COMMAND --help` the options of one."""


def _show_version(requested: bool) -> None:
    if requested:
        typer.echo(f"triage {triage.__version__}")
        raise typer.Exit


def _root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Find the rank and the line where a multi-rank training job began to fail.

    \b
    Examples:
      triage ingest job_logs/                  diagnose a job
      triage ingest job.tar.gz --format json   the same as JSON
      triage explain job_logs/ -s ID           why a signature did not match
      triage env job_logs/                     settings that differ between ranks
      triage split job.log -o by-rank/         one file per rank
      triage timeline job_logs/ --around 5m    what happened on which rank
      triage flight dumps/                     which rank missed which collective
      triage stacks rank*.txt                  where each rank of a hung job is
      triage catalog show cuda.out-of-memory   what a signature means

    `triage COMMAND --help` shows the options of a command.
    """
    if context.invoked_subcommand is None:
        typer.echo(_FIRST_STEPS, err=True)
        raise typer.Exit(2)


def build(only: str = "") -> typer.Typer:
    """Build the application, or only the command that is called: reading all options takes longer than a small job.

    Help is plain text, because importing rich takes longer than showing the help.
    """
    app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)
    app.callback(invoke_without_command=True)(_root)
    for name, command in COMMANDS:
        if only in ("", name):
            app.command(name, context_settings=_CONTEXTS.get(name))(command)
    for name, group in GROUPS:
        if only in ("", name):
            app.add_typer(group, name=name)
    return app


def run(argv: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit status. Usage errors and errors of commands are raised."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    called = arguments[0] if arguments and arguments[0] in dict([*COMMANDS, *GROUPS]) else ""
    command: Any = get_command(build(called))
    try:
        status = command.main(arguments, prog_name="triage", standalone_mode=False)
    except typer.Abort:
        raise KeyboardInterrupt from None
    if status == failure.EXIT_INTERRUPTED:
        raise KeyboardInterrupt
    return status if isinstance(status, int) else 0
