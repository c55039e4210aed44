"""`triage outbox`: what waits to be told to others, and what became of it."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from triage.base.errors import NotFoundError, OptionError
from triage.cli import options

if TYPE_CHECKING:
    from triage.store import Store


class State(str, Enum):  # noqa: UP042
    waiting = "waiting"
    taken = "taken"
    sent = "sent"
    dead = "dead"
    dropped = "dropped"


Numbers = Annotated[
    list[int] | None,
    typer.Argument(metavar="[NUMBER...]", help="Numbers that `triage outbox list` shows.", show_default=False),
]


def list_(
    state: Annotated[
        State | None,
        typer.Option("--state", metavar="STATE", help="waiting, taken, sent, dead or dropped.", show_default=False),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", metavar="N", min=1, max=10_000, help="So many at most.")] = 100,
    format: Annotated[  # noqa: A002
        options.PlainFormat, typer.Option("--format", "-f", help="How to write it.")
    ] = options.PlainFormat.text,
    output: options.Output = None,
    store: options.StoreFile = None,
) -> None:
    """List the posts, the newest first.

    waiting: due at the time shown; taken: being sent; dead: given up, with the reason; dropped: by a person.

    \b
    Examples:
      triage outbox list
      triage outbox list --state dead --format json
    """
    from triage.cli import streams
    from triage.render import posts

    streams.check(output)
    with options.stored(store) as opened:
        found = opened.outbox.listed(state=state.value if state else None, limit=limit)
    if format is options.PlainFormat.json:
        streams.deliver(posts.as_json(found), output, utf8=True)
    else:
        streams.deliver(
            posts.as_text(found, width=streams.width(None, output), color=streams.color("auto", output)), output
        )


def retry(
    numbers: Numbers = None,
    dead: Annotated[bool, typer.Option("--dead", help="All dead letters.")] = False,
    store: options.StoreFile = None,
) -> None:
    """Make posts due at once, also those that were given up or dropped.

    \b
    Examples:
      triage outbox retry 17 18
      triage outbox retry --dead
    """
    with options.stored(store) as opened:
        _each(opened, _chosen(opened, numbers, dead), opened.outbox.retry, "due now")


def drop(
    numbers: Numbers = None,
    dead: Annotated[bool, typer.Option("--dead", help="All dead letters.")] = False,
    store: options.StoreFile = None,
) -> None:
    """Never send these posts.

    \b
    Example:
      triage outbox drop 17
    """
    with options.stored(store) as opened:
        _each(opened, _chosen(opened, numbers, dead), opened.outbox.drop, "dropped")


def send(
    follow: Annotated[bool, typer.Option("--follow", help="Go on until interrupted, digests included.")] = False,
    store: options.StoreFile = None,
) -> None:
    """Send what is due to Slack and to webhooks, as the settings say.

    `triage bot slack` does the same and also hears buttons and commands. Several may run at once.

    \b
    Examples:
      triage outbox send
      triage outbox send --follow
    """
    from triage.bots import bots, digests
    from triage.bots.work import run, work
    from triage.cli import streams
    from triage.cli.config import loaded

    settings = loaded({"store.path": store}).settings
    made = bots(settings)
    with options.stored(settings.store.path, create=True) as opened:
        if follow:
            with options.stopped() as stop:
                run(
                    opened,
                    made,
                    stop,
                    tick=lambda now: digests.due(opened, settings.routing, now),
                    give_up_days=settings.routing.give_up_days,
                )
            return
        digests.due(opened, settings.routing)
        done = work(opened, made, give_up_days=settings.routing.give_up_days)
    streams.deliver(f"{done.sent} sent, {done.later} to be tried again, {done.dead} dead\n")
    if done.dead:
        raise typer.Exit(1)


def _chosen(store: Store, numbers: list[int] | None, dead: bool) -> list[int]:
    if bool(numbers) == dead:
        raise OptionError("which posts?", hint="give their numbers, or --dead")
    return [post.id for post in store.outbox.listed(state="dead", limit=100_000)] if dead else list(numbers or [])


def _each(store: Store, numbers: list[int], act: Callable[[int], Any], said: str) -> None:
    from triage.cli import streams

    streams.check(None)
    for number in numbers:
        if not act(number):
            known = store.outbox.post(number)
            if known is None:
                raise NotFoundError(f"the outbox has no post {number}", hint="`triage outbox list` shows those it has")
            raise OptionError(
                f"post {number} is {known.state}",
                hint="what was sent stays sent; what is being sent can be tried again later",
            )
    streams.deliver(f"{len(numbers)} {said}\n")


COMMANDS: tuple[tuple[str, Callable[..., None]], ...] = (
    ("list", list_),
    ("retry", retry),
    ("drop", drop),
    ("send", send),
)
