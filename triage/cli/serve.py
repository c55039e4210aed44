"""`triage serve`: the web API and the pages."""

from __future__ import annotations

from typing import Annotated

import typer

from triage.cli import options

Host = Annotated[
    str | None,
    typer.Option("--host", metavar="ADDRESS", help="Address to listen on. Default: 127.0.0.1.", show_default=False),
]
Port = Annotated[
    int | None,
    typer.Option(
        "--port", metavar="N", min=0, max=65535, help="Port; 0 takes a free one. Default: 8321.", show_default=False
    ),
]
TaskWorkers = Annotated[
    int | None,
    typer.Option(
        "--workers", metavar="N", min=0, max=64, help="Processes that analyse uploads. Default: 1.", show_default=False
    ),
]


def serve(host: Host = None, port: Port = None, workers: TaskWorkers = None, store: options.StoreFile = None) -> None:
    """Serve the web API and the pages for a support team.

    Without configuration, only this machine can use it. `triage config show` lists all settings.

    \b
    Examples:
      triage serve
      triage serve --port 9000 --workers 4
      TRIAGE_WEB_HOST=0.0.0.0 triage serve
    """
    from triage.cli.config import load_settings

    loaded = load_settings({"web.host": host, "web.port": port, "tasks.workers": workers, "store.path": store})
    from triage.service import server

    server.serve(loaded.settings)
