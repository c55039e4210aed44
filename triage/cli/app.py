"""The commands and their order. A command's module imports what it needs when it is called, so that help is instant."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer
from typer.main import get_command

import triage
from triage.cli import (
    catalog,
    collect,
    core,
    env,
    explain,
    failure,
    feedback,
    find,
    flight,
    ingest,
    late,
    mcp,
    repro,
    serve,
    show,
    split,
    stacks,
    timeline,
    watch,
)

COMMANDS: tuple[tuple[str, Callable[..., None]], ...] = (
    ("ingest", ingest.ingest),
    ("show", show.show),
    ("explain", explain.explain),
    ("env", env.env),
    ("split", split.split),
    ("timeline", timeline.timeline),
    ("core", core.core),
    ("flight", flight.flight),
    ("repro", repro.repro),
    ("list", find.list_),
    ("search", find.search),
    ("similar", find.similar),
    ("stats", find.stats),
    ("feedback", feedback.feedback),
    ("retriage", feedback.retriage),
    ("stacks", stacks.stacks),
    ("collect", collect.collect),
    ("watch", watch.watch),
    ("mcp", mcp.mcp),
    ("serve", serve.serve),
)
GROUPS: tuple[tuple[str, typer.Typer], ...] = (
    ("catalog", catalog.group),
    ("clusters", late.clusters),
    ("db", late.db),
    ("config", late.config),
    ("token", late.token),
    ("outbox", late.outbox),
    ("post", late.post),
    ("bot", late.bot),
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"triage {triage.__version__}")
        raise typer.Exit


def _root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say the version and stop.")
    ] = False,
) -> None:
    """Find the rank and the line where a multi-rank training job began to fail.

    \b
    Examples:
      triage ingest job_logs/                  diagnose a job
      triage ingest job.tar.gz --format json   the same for a program
      triage explain job_logs/ -s ID           why a signature did not match
      triage env job_logs/                     settings that differ between ranks
      triage split job.log -o by-rank/         one file a rank
      triage timeline job_logs/ --around 5m    what happened to which rank
      triage flight dumps/                     which rank missed which collective
      triage stacks rank*.txt                  where each rank of a hung job is
      triage catalog show cuda.out-of-memory   what a signature means

    `triage COMMAND --help` says more.
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help(), err=True)
        raise typer.Exit(2)


def build(only: str = "") -> typer.Typer:
    """The application, or the one command of it that is called: reading the options of all takes longer than a small
    job.

    Plain help, for rich would take longer to import than the help takes to read.
    """
    app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)
    app.callback(invoke_without_command=True)(_root)
    for name, command in COMMANDS:
        if only in ("", name):
            app.command(name)(command)
    for name, group in GROUPS:
        if only in ("", name):
            app.add_typer(group, name=name)
    return app


def run(argv: Sequence[str] | None = None) -> int:
    """Run a command line; usage errors and what the commands raise come out as exceptions."""
    given = sys.argv[1:] if argv is None else list(argv)
    called = given[0] if given and given[0] in dict([*COMMANDS, *GROUPS]) else ""
    command: Any = get_command(build(called))
    try:
        status = command.main(given, prog_name="triage", standalone_mode=False)
    except typer.Abort:
        raise KeyboardInterrupt from None
    if status == failure.INTERRUPTED:
        raise KeyboardInterrupt
    return status if isinstance(status, int) else 0
