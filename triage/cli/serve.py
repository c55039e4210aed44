"""`triage serve`: the web API and the pages."""

from __future__ import annotations

from typing import Annotated

import typer

from triage.cli import options


def serve(
    host: Annotated[
        str | None,
        typer.Option("--host", metavar="ADDRESS", help="Address to listen to. Default: 127.0.0.1.", show_default=False),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            "--port", metavar="N", min=0, max=65535, help="Port; 0 takes a free one. Default: 8321.", show_default=False
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers",
            metavar="N",
            min=0,
            max=64,
            help="Processes that analyse uploads. Default: 1.",
            show_default=False,
        ),
    ] = None,
    store: options.StoreFile = None,
) -> None:
    """Serve the web API and the pages for a support team.

    Works without any configuration on this machine alone. `triage config show` lists what can be set.

    \b
    Examples:
      triage serve
      triage serve --port 9000 --workers 4
      TRIAGE_WEB_HOST=0.0.0.0 triage serve
    """
    from triage.cli.config import loaded

    found = loaded({"web.host": host, "web.port": port, "tasks.workers": workers, "store.path": store})
    from triage.service.run import run

    run(found.settings)
