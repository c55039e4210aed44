"""`triage mcp`: the same answers for an assistant, over standard input and output."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from triage.base.errors import OptionError
from triage.cli import options


def mcp(
    root: Annotated[
        list[Path] | None,
        typer.Option(
            "--root",
            metavar="DIR",
            help="Read only below this directory; may be repeated. Default: the current directory.",
            show_default=False,
        ),
    ] = None,
    allow_write: Annotated[
        bool, typer.Option("--allow-write", help="Also offer `ingest`, which writes into the store.")
    ] = False,
    catalog: options.Catalogs = None,
    store: options.StoreFile = None,
) -> None:
    """Answer an assistant over the Model Context Protocol.

    Tools: diagnose, search, similar, incident, explain, signature; with --allow-write also ingest. Log text comes
    marked as
    untrusted. An assistant starts this command itself; docs/mcp.md shows how to tell it.

    \b
    Examples:
      triage mcp --root /shared/logs
      triage mcp --allow-write --store team.db
    """
    from triage.assistant.answers import Answers
    from triage.assistant.server import server
    from triage.base.options import Options

    roots = tuple(path.resolve() for path in root or [Path()])
    for path in roots:
        if not path.is_dir():
            raise OptionError(f"--root {path} is no directory", hint="give a directory that holds logs")
    server(Answers(roots, Options(catalogs=tuple(catalog or ())), store), allow_write=allow_write).run("stdio")
