"""`triage bot`: the worker of the outbox together with the ear for buttons and commands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from triage.base.errors import OptionError
from triage.cli import options


def slack(
    host: Annotated[str, typer.Option("--host", metavar="ADDRESS", help="Address to listen to.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", metavar="N", min=0, max=65535, help="Port; 0 takes a free one.")
    ] = 8322,
    listen: Annotated[
        bool, typer.Option("--listen/--no-listen", help="Hear buttons and commands. Without it, only send.")
    ] = True,
    store: options.StoreFile = None,
) -> None:
    """Keep Slack as the store says: posts, edits, digests; buttons and /triage.

    Slack calls POST /hooks/slack, through your proxy with TLS. Where `triage serve` runs, it hears at the same path:
    use --no-listen here.

    \b
    Examples:
      TRIAGE_SLACK_TOKEN=xoxb-… TRIAGE_SLACK_SIGNING_SECRET=… triage bot slack
      triage bot slack --no-listen
    """
    import contextlib

    from triage.bots import bots, digests
    from triage.bots.slack.actions import Actions
    from triage.bots.slack.listen import listening
    from triage.bots.work import run
    from triage.cli import streams
    from triage.cli.config import loaded

    settings = loaded({"store.path": store}).settings
    secret = settings.slack.signing_secret.get_secret_value()
    if not settings.slack.token.get_secret_value():
        raise OptionError(
            "the bot has no token",
            hint="set TRIAGE_SLACK_TOKEN to the app's xoxb-… token; docs/slack.md leads through it",
        )
    if listen and not secret:
        raise OptionError(
            "buttons and commands cannot be told from forged ones",
            hint="set TRIAGE_SLACK_SIGNING_SECRET, or give --no-listen",
        )
    made = bots(settings)
    with (
        options.stored(settings.store.path, create=True) as opened,
        options.stopped() as stop,
        contextlib.ExitStack() as stack,
    ):
        if listen:
            actions = Actions(settings.slack, settings.web.public_url)
            try:
                address = stack.enter_context(listening(host, port, secret, opened, actions))
            except OSError as error:
                raise OptionError(
                    f"cannot listen to {host}:{port}: {error.strerror}", hint="give --port another one"
                ) from None
            streams.deliver(f"triage hears Slack at {address}\n")
        run(
            opened,
            made,
            stop,
            tick=lambda now: digests.due(opened, settings.routing, now),
            give_up_days=settings.routing.give_up_days,
        )


COMMANDS: tuple[tuple[str, Callable[..., None]], ...] = (("slack", slack),)
