"""`triage mcp`: serve the tools of triage over the Model Context Protocol."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from triage.base.errors import OptionError
from triage.cli import options

Roots = Annotated[
    list[Path] | None,
    typer.Option(
        "--root",
        metavar="DIR",
        help="Read only below this directory; may be repeated. Default: the current directory.",
        show_default=False,
    ),
]
AllowWrite = Annotated[bool, typer.Option("--allow-write", help="Also offer `ingest`, which writes into the store.")]


def mcp(
    root: Roots = None,
    allow_write: AllowWrite = False,
    catalog: options.Catalogs = None,
    store: options.StoreFile = None,
) -> None:
    """Serve tools for an assistant over the Model Context Protocol.

    Tools: diagnose, search, similar, incident, explain, signature; with --allow-write also ingest. Log text is marked
    as untrusted. The assistant starts this command itself; docs/mcp.md shows how to configure it.

    \b
    Examples:
      triage mcp --root /shared/logs
      triage mcp --allow-write --store team.db
    """
    from triage.base.options import Options
    from triage.mcp.server import build_server
    from triage.mcp.tools import Tools

    roots = tuple(path.resolve() for path in root or [Path()])
    for path in roots:
        if not path.is_dir():
            raise OptionError(f"--root {path} is not a directory", hint="give a directory of logs")
    build_server(Tools(roots, Options(catalogs=tuple(catalog or ())), store), allow_write=allow_write).run("stdio")
