"""`triage feedback` and `triage retriage`: what people say about diagnoses, and what a changed catalog says about those
that are stored.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Annotated

import typer

from triage.base.errors import OptionError
from triage.cli import options


class Said(str, Enum):  # noqa: UP042
    agree = "agree"
    wrong = "wrong"


def feedback(
    id: Annotated[  # noqa: A002
        str | None,
        typer.Argument(metavar="[ID]", help="The incident; without it, what was said is listed.", show_default=False),
    ] = None,
    verdict: Annotated[
        Said | None, typer.Argument(metavar="[agree|wrong]", help="Is the diagnosis right?", show_default=False)
    ] = None,
    because: Annotated[
        str, typer.Option("--because", "-b", metavar="TEXT", help="Why; what was done.", show_default=False)
    ] = "",
    signature: Annotated[
        str | None,
        typer.Option(
            "--signature",
            "-s",
            metavar="ID",
            help="What it should have been.",
            autocompletion=options.signature_ids,
            show_default=False,
        ),
    ] = None,
    by: options.By = None,
    format: Annotated[  # noqa: A002
        options.PlainFormat, typer.Option("--format", "-f", help="How to write the list.")
    ] = options.PlainFormat.text,
    store: options.StoreFile = None,
) -> None:
    """Say whether a diagnosis is right, or list what was said.

    It stays on the incident for ever, helps those who meet the same again, and is counted by `triage catalog rate
    --store`.

    \b
    Examples:
      triage feedback i-4f2a9c agree --because "cable of node17 replaced"
      triage feedback i-4f2a9c wrong -b "full disk" -s host.no-space
      triage feedback --format json
    """
    from triage.cli import streams
    from triage.render import incidents

    streams.check(None)
    if (id is None) != (verdict is None):
        raise OptionError(
            "an incident and a verdict belong together", hint="triage feedback ID agree|wrong --because TEXT"
        )
    with options.stored(store) as opened:
        if id is not None and verdict is not None:
            if verdict is Said.wrong and not because:
                raise OptionError(
                    "a wrong diagnosis needs a reason", hint='--because "what it really was, and how you know"'
                )
            said = opened.feedback.add(id, verdict.value, actor=options.actor(by), because=because, signature=signature)
            found = [said]
        else:
            found = opened.feedback.listed()
    if format is options.PlainFormat.json:
        streams.deliver(incidents.feedback_as_json(found), utf8=True)
    else:
        streams.deliver(incidents.feedback(found, width=streams.width(None, None), color=streams.color("auto", None)))


def retriage(
    since: Annotated[
        str | None,
        typer.Option("--since", metavar="WHEN", help="Only what failed since: 7d, 2025-11-21.", show_default=False),
    ] = None,
    signature: Annotated[
        str | None,
        typer.Option(
            "--signature",
            "-s",
            metavar="ID",
            help="Only what this signature changes.",
            autocompletion=options.signature_ids,
            show_default=False,
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would change.")] = False,
    catalog: options.Catalogs = None,
    format: Annotated[  # noqa: A002
        options.PlainFormat, typer.Option("--format", "-f", help="How to write the changes.")
    ] = options.PlainFormat.text,
    output: options.Output = None,
    color: options.ColorOption = options.Color.auto,
    width: options.Width = None,
    quiet: options.Quiet = False,
    store: options.StoreFile = None,
) -> None:
    """Ask a changed catalog again about all stored incidents.

    Works on the stored lines, not on the logs. What an incident was held for before stays in its history, and each
    change is put into the
    outbox for those who were told the old answer.

    \b
    Examples:
      triage retriage --dry-run --catalog my-signatures/
      triage retriage --since 30d --signature storage.mount-gone
    """
    from triage.catalog.load import load
    from triage.cli import streams
    from triage.render import incidents
    from triage.store.retriage import retriage as ask

    streams.check(output)
    known = load(tuple(catalog or ()), strict=bool(catalog))
    when = options.moment(since, time.time()) if since is not None else None
    with options.stored(store) as opened, _counted(quiet) as count:
        found = ask(
            opened.connections,
            opened.incidents,
            known,
            since=when,
            signature=signature,
            dry_run=dry_run,
            progress=count,
        )
    if format is options.PlainFormat.json:
        streams.deliver(incidents.retriaged_as_json(found, dry_run), output, utf8=True)
    else:
        columns, painted = streams.width(width, output), streams.color(color.value, output)
        streams.deliver(incidents.retriaged(found, dry_run, width=columns, color=painted), output)


@contextmanager
def _counted(quiet: bool) -> Iterator[Callable[[int, int], None] | None]:
    """`incident 300 of 5000` on standard error, for a person who waits."""
    from triage.cli.streams import is_terminal, to_stderr

    if quiet or not is_terminal(sys.stderr) or os.environ.get("TERM") == "dumb":
        yield None
        return

    def count(done: int, total: int) -> None:
        if done % 100 == 0:
            to_stderr(f"\rincident {done} of {total}\x1b[K")

    try:
        yield count
    finally:
        to_stderr("\r\x1b[K")
