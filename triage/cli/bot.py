"""`triage bot`: run the notification worker together with the server for buttons and commands."""

from __future__ import annotations

from typing import Annotated

import typer

from triage.base.errors import OptionError
from triage.cli import options, streams

Host = Annotated[str, typer.Option("--host", metavar="ADDRESS", help="Address to listen on.")]
Port = Annotated[int, typer.Option("--port", metavar="N", min=0, max=65535, help="Port; 0 takes a free one.")]
Listen = Annotated[bool, typer.Option("--listen/--no-listen", help="Receive buttons and commands, or only send.")]


def slack(host: Host = "127.0.0.1", port: Port = 8322, listen: Listen = True, store: options.StoreFile = None) -> None:
    """Run the Slack bot: notifications, edits, digests; buttons and /triage.

    Slack calls POST /hooks/slack, through your proxy with TLS. `triage serve` accepts the same calls at the same path:
    if it runs, use --no-listen here.

    \b
    Examples:
      TRIAGE_SLACK_TOKEN=xoxb-… TRIAGE_SLACK_SIGNING_SECRET=… triage bot slack
      triage bot slack --no-listen
    """
    import contextlib

    from triage.bots import build_bots, digests
    from triage.bots.slack.actions import Actions
    from triage.bots.slack.listen import serve_callbacks
    from triage.bots.work import run
    from triage.cli.config import load_settings

    settings = load_settings({"store.path": store}).settings
    secret = settings.slack.signing_secret.get_secret_value()
    if not settings.slack.token.get_secret_value():
        raise OptionError(
            "TRIAGE_SLACK_TOKEN is not set",
            hint="set TRIAGE_SLACK_TOKEN to the xoxb-… token of the app; docs/slack.md shows how",
        )
    if listen and not secret:
        raise OptionError(
            "TRIAGE_SLACK_SIGNING_SECRET is not set", hint="set it to verify calls from Slack, or use --no-listen"
        )
    bots = build_bots(settings)
    with (
        options.open_store(settings.store.path, create=True) as opened,
        options.stop_on_signal() as stop,
        contextlib.ExitStack() as stack,
    ):
        if listen:
            actions = Actions(settings.slack, settings.web.public_url)
            try:
                address = stack.enter_context(serve_callbacks(host, port, secret, opened, actions))
            except OSError as error:
                raise OptionError(
                    f"cannot listen on {host}:{port}: {error.strerror}", hint="use another port with --port"
                ) from None
            streams.write_output(f"listening for Slack at {address}\n")
        run(
            opened,
            bots,
            stop,
            tick=lambda now: digests.write_due_digests(opened, settings.routing, now),
            give_up_days=settings.routing.give_up_days,
        )


COMMANDS = (("slack", slack),)
