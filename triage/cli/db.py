"""`triage db`: the store as a file."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated

import typer

from triage.base.errors import InputError, OptionError
from triage.cli import options

Format = Annotated[options.PlainFormat, typer.Option("--format", "-f", help="How to write it.")]


def check(format: Format = options.PlainFormat.text, store: options.StoreFile = None) -> None:  # noqa: A002
    """Prove the store: pages, references, index, rows.

    Exit status: 0 when it is sound, 1 when not.

    \b
    Example:
      triage db check
    """
    from triage.base.errors import StoreError
    from triage.cli import streams
    from triage.render.incidents import dumped
    from triage.store import Store, care

    streams.check(None)
    facts: dict[str, object] = {}
    try:
        with Store.open(store, create=False) as opened:
            wrong = care.check(opened.connections)
            facts = {} if wrong else care.facts(opened.connections)
    except StoreError as error:
        if "no store yet" in error.message:
            raise
        wrong = [f"{error}; {error.hint}"]
    if format is options.PlainFormat.json:
        streams.deliver(dumped({"schema": "triage.check/1", "sound": not wrong, "wrong": wrong, **facts}), utf8=True)
    else:
        said = ", ".join(f"{name} {value}" for name, value in facts.items())
        streams.deliver("".join(f"{line}\n" for line in wrong) if wrong else f"sound ({said})\n")
    if wrong:
        raise typer.Exit(1)


def vacuum(
    older_than: Annotated[
        str | None,
        typer.Option("--older-than", metavar="AGE", help="Forget what failed before: 180d.", show_default=False),
    ] = None,
    max_size: Annotated[
        str | None,
        typer.Option("--max-size", metavar="BYTES", help="Forget the oldest until it fits: 500M.", show_default=False),
    ] = None,
    store: options.StoreFile = None,
) -> None:
    """Make the store small again; with a limit, forget the oldest.

    Incidents that somebody spoke about are never forgotten, and clusters keep their names, lines and counts.

    \b
    Examples:
      triage db vacuum
      triage db vacuum --older-than 180d --max-size 1G
    """
    from triage.cli import streams
    from triage.render.words import plural, size
    from triage.store import care

    streams.check(None)
    days = _days(older_than) if older_than is not None else None
    most = options.byte_count(max_size, "--max-size") if max_size is not None else None
    with options.stored(store) as opened:
        done = care.prune(opened.connections, opened.incidents, days=days, size=most)
        if not done.incidents:
            care.vacuum(opened.connections)
        after = opened.connections.path.stat().st_size
    streams.deliver(f"{plural(done.incidents, 'incident')} forgotten, {size(done.before)} before, {size(after)} now\n")


def export(output: options.Output = None, store: options.StoreFile = None) -> None:
    """Write all that the store knows as JSON Lines; no tokens, no tasks.

    Of a damaged store it writes what can be read, and the last line says what could not.

    \b
    Example:
      triage db export -o knowledge.jsonl
    """
    from triage.cli import streams
    from triage.store import transfer

    streams.check(output)
    with options.stored(store) as opened:
        streams.deliver("".join(transfer.export(opened.connections)), output, utf8=True)


def import_(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="What `triage db export` wrote; - reads standard input.", show_default=False
        ),
    ],
    store: options.StoreFile = None,
) -> None:
    """Take in what another store exported. What is here already stays.

    \b
    Example:
      triage db import knowledge.jsonl
    """
    from triage.cli import streams
    from triage.render.words import plural
    from triage.store import transfer

    streams.check(None)
    with options.stored(store, create=True) as opened:
        added = transfer.load(opened.connections, _lines(file), name=file)
    said = ", ".join(plural(count, kind) for kind, count in added.items())
    streams.deliver(f"{said or 'nothing new'}\n")


def migrate(store: options.StoreFile = None, by: options.By = None) -> None:
    """Bring a store of an older version up to date.

    Every command brings the tables up to date when it opens the store, and the first ingest the fingerprints; this one
    does nothing else.

    \b
    Example:
      triage db migrate --store old.db
    """
    from triage.cli import streams
    from triage.render import clusters
    from triage.store import migrations

    with options.stored(store) as opened:
        done = opened.clusters.rekey(actor=options.actor(by))
        streams.deliver(f"version {migrations.version(opened.connections.get())}\n{clusters.rekeyed(done, False)}")


def _days(text: str) -> float:
    match = re.fullmatch(r"(\d{1,5})\s*([hdw]?)", text.strip())
    if match is None:
        raise OptionError(f"--older-than {text!r} is no age", hint="write 180d, 26w or 12h")
    return int(match[1]) * {"h": 1 / 24, "d": 1, "": 1, "w": 7}[match[2]]


def _lines(name: str) -> Iterator[str]:
    import sys

    if name == "-":
        yield from sys.stdin
        return
    try:
        with Path(name).open(encoding="utf-8", errors="replace") as file:
            yield from file
    except OSError as error:
        raise InputError(
            f"cannot read {name}: {error.strerror}", hint="give the file that `triage db export -o FILE` wrote"
        ) from None


COMMANDS: tuple[tuple[str, Callable[..., None]], ...] = (
    ("check", check),
    ("vacuum", vacuum),
    ("export", export),
    ("import", import_),
    ("migrate", migrate),
)
