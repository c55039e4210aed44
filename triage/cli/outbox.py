"""`triage outbox`: list and control the notifications that wait to be sent."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from triage.base.errors import NotFoundError, OptionError
from triage.cli import options, streams

if TYPE_CHECKING:
    from triage.store import Store


StateOption = Annotated[
    Literal["waiting", "taken", "sent", "dead", "dropped"] | None,
    typer.Option("--state", metavar="STATE", help="waiting, taken, sent, dead or dropped.", show_default=False),
]
Limit = Annotated[int, typer.Option("--limit", "-n", metavar="N", min=1, max=10_000, help="Maximum number of rows.")]
Numbers = Annotated[
    list[int] | None,
    typer.Argument(metavar="[NUMBER...]", help="Numbers from `triage outbox list`.", show_default=False),
]
Dead = Annotated[bool, typer.Option("--dead", help="All dead notifications.")]
Follow = Annotated[bool, typer.Option("--follow", help="Continue until interrupted, with digests.")]


def list_(
    state: StateOption = None,
    limit: Limit = 100,
    format: options.PlainFormat = "text",  # noqa: A002
    output: options.Output = None,
    store: options.StoreFile = None,
) -> None:
    """List notifications, the newest first.

    waiting: due at the time shown; taken: being sent; dead: given up, with the reason; dropped: by a person.

    \b
    Examples:
      triage outbox list
      triage outbox list --state dead --format json
    """
    from triage.render import outbox

    streams.check_output(output)
    with options.open_store(store) as opened:
        posts = opened.outbox.list_posts(state=state, limit=limit)
    streams.write_format(
        format,
        output,
        json=lambda: outbox.as_json(posts),
        text=lambda: outbox.as_text(posts, **streams.text_style(None, "auto", output)),
    )


def retry(numbers: Numbers = None, dead: Dead = False, store: options.StoreFile = None) -> None:
    """Make notifications due now, also dead and dropped ones.

    \b
    Examples:
      triage outbox retry 17 18
      triage outbox retry --dead
    """
    with options.open_store(store) as opened:
        _change_each(opened, _select(opened, numbers, dead), opened.outbox.retry, "due now")


def drop(numbers: Numbers = None, dead: Dead = False, store: options.StoreFile = None) -> None:
    """Never send these notifications.

    \b
    Example:
      triage outbox drop 17
    """
    with options.open_store(store) as opened:
        _change_each(opened, _select(opened, numbers, dead), opened.outbox.drop, "dropped")


def send(follow: Follow = False, store: options.StoreFile = None) -> None:
    """Send due notifications to all channels, as the settings say.

    `triage bot slack` does the same and also receives buttons and commands. Several may run at once.

    \b
    Examples:
      triage outbox send
      triage outbox send --follow
    """
    from triage.bots import build_bots
    from triage.bots.digests import write_due_digests
    from triage.bots.work import deliver_due, run
    from triage.cli.config import load_settings

    settings = load_settings({"store.path": store}).settings
    bots, days = build_bots(settings), settings.routing.give_up_days
    with options.open_store(settings.store.path, create=True) as opened:
        if follow:
            with options.stop_on_signal() as stop:
                run(
                    opened,
                    bots,
                    stop,
                    tick=lambda now: write_due_digests(opened, settings.routing, now),
                    give_up_days=days,
                )
            return
        write_due_digests(opened, settings.routing)
        counts = deliver_due(opened, bots, give_up_days=days)
    streams.write_output(f"{counts.sent} sent, {counts.later} to be tried again, {counts.dead} dead\n")
    if counts.dead:
        raise typer.Exit(1)


def _select(store: Store, numbers: list[int] | None, dead: bool) -> list[int]:
    if bool(numbers) == dead:
        raise OptionError("no notifications selected", hint="give their numbers, or --dead")
    return [post.id for post in store.outbox.list_posts(state="dead", limit=100_000)] if dead else list(numbers or [])


def _change_each(store: Store, numbers: list[int], change: Callable[[int], Any], done: str) -> None:
    streams.check_output(None)
    for number in numbers:
        if not change(number):
            post = store.outbox.get(number)
            if post is None:
                raise NotFoundError(
                    f"the outbox has no notification {number}", hint="`triage outbox list` shows all notifications"
                )
            raise OptionError(
                f"notification {number} is {post.state}",
                hint="a sent notification cannot be changed; one that is being sent can be tried again later",
            )
    streams.write_output(f"{len(numbers)} {done}\n")


COMMANDS = (
    ("list", list_),
    ("retry", retry),
    ("drop", drop),
    ("send", send),
)
