"""Runs the server until it is told to stop."""

from __future__ import annotations

from triage.service.app import create_app
from triage.settings import Settings


def run(settings: Settings) -> None:
    """Serve; returns when SIGTERM or SIGINT asked it to stop and all requests are answered."""
    import uvicorn

    app = create_app(settings)
    print(f"triage serves http://{settings.web.host}:{settings.web.port}/", flush=True)
    uvicorn.run(app, host=settings.web.host, port=settings.web.port, log_level="warning", server_header=False, access_log=False)
