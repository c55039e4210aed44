"""`triage db`: maintain the store."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from triage.base.errors import InputError, OptionError, StoreError
from triage.cli import options, streams
from triage.cli.values import parse_size

OlderThan = Annotated[
    str | None,
    typer.Option("--older-than", metavar="AGE", help="Delete older failures: 180d.", show_default=False),
]
MaxSize = Annotated[
    str | None,
    typer.Option("--max-size", metavar="BYTES", help="Delete the oldest until it fits: 500M.", show_default=False),
]
Salvage = Annotated[bool, typer.Option("--salvage", help="Read each page of a damaged store by itself.")]
ExportFile = Annotated[
    str,
    typer.Argument(metavar="FILE", help="Output of `triage db export`; - reads standard input.", show_default=False),
]
CopySource = Annotated[str, typer.Argument(metavar="SOURCE", help="A store: sqlite:FILE or postgresql://…")]
CopyTarget = Annotated[str, typer.Argument(metavar="TARGET", help="An empty database, or a new file.")]


def check(
    format: options.PlainFormat = "text",  # noqa: A002
    store: options.StoreFile = None,
) -> None:
    """Check the store: pages, references, index, rows.

    Exit status: 0 the store is sound, 1 it is damaged.

    \b
    Example:
      triage db check
    """

    from triage.render.json import dump_json
    from triage.store import Store, maintenance

    streams.check_output(None)
    facts: dict[str, object] = {}
    try:
        with Store.open(store, create=False) as opened:
            problems = maintenance.check_store(opened.connections)
            facts = {} if problems else maintenance.summarize(opened.connections)
    except StoreError as error:
        if error.path is not None and not Path(error.path).exists():
            raise
        problems = [f"{error}; {error.hint}"]
    summary = ", ".join(f"{name} {value}" for name, value in facts.items())
    streams.write_format(
        format,
        None,
        json=lambda: dump_json({"schema": "triage.check/1", "sound": not problems, "wrong": problems, **facts}),
        text=lambda: "".join(f"{line}\n" for line in problems) or f"sound ({summary})\n",
    )
    if problems:
        raise typer.Exit(1)


def vacuum(older_than: OlderThan = None, max_size: MaxSize = None, store: options.StoreFile = None) -> None:
    """Shrink the store; with a limit, delete the oldest incidents.

    Incidents with feedback are never deleted, and clusters keep their names, lines and counts.

    \b
    Examples:
      triage db vacuum
      triage db vacuum --older-than 180d --max-size 1G
    """

    from triage.render.phrases import format_bytes, format_count
    from triage.store import maintenance

    streams.check_output(None)
    days = _parse_days(older_than) if older_than is not None else None
    limit = parse_size(max_size, "--max-size") if max_size is not None else None
    with options.open_store(store) as opened:
        result = maintenance.prune(opened.connections, opened.incidents, days=days, size=limit)
        if not result.incidents and (days is None or maintenance.has_file(opened.connections)):
            maintenance.vacuum(opened.connections)
        after = opened.connections.size_bytes()
    streams.write_output(
        f"{format_count(result.incidents, 'incident')} deleted, "
        f"{format_bytes(result.before)} before, {format_bytes(after)} now\n"
    )


def retention(dry_run: options.DryRun = False, store: options.StoreFile = None) -> None:
    """Delete incidents that the settings no longer keep (`[retention]`), as workers do once an hour.

    \b
    Examples:
      triage db retention --dry-run
      triage db retention
    """

    from triage.cli.config import load_settings
    from triage.render.phrases import format_count
    from triage.settings.retention_rules import list_rules
    from triage.store.retention import apply_rules

    rules = list_rules(load_settings({"store.path": store}).settings.retention)
    if not rules:
        raise OptionError("the settings keep everything", hint="set retention.days, or write [[retention.rules]]")
    with options.open_store(store) as opened:
        done = apply_rules(opened.connections, opened.incidents, rules, dry_run=dry_run)
    verb = "would be deleted" if dry_run else "deleted"
    streams.write_output("".join(f"{format_count(count, 'incident')} {verb}: {rule}\n" for rule, count in done))


def export(output: options.Output = None, salvage: Salvage = False, store: options.StoreFile = None) -> None:
    """Write the store as JSON Lines, without tokens and tasks.

    Writes what can be read of a damaged store; the last line lists what could not be read.

    \b
    Examples:
      triage db export -o knowledge.jsonl
      triage db export --salvage -o salvaged.jsonl
    """

    from triage.store import transfer

    streams.check_output(output)
    if salvage:
        _export_salvaged(output, store)
        return
    with options.open_store(store) as opened:
        streams.write_output("".join(transfer.export_lines(opened.connections)), output, utf8=True)


def _export_salvaged(output: Path | None, store: str | None) -> None:
    """Write what is left of a damaged store, and say on standard error what was saved and what is lost."""
    from triage.render.phrases import format_count
    from triage.render.sanitize import sanitize_line
    from triage.store import store_location
    from triage.store.location import DatabaseUrl
    from triage.store.salvage import SalvageReport, salvage_lines

    path = store_location(store)
    if path is None:
        raise OptionError("there is no store", hint="name the damaged store with --store FILE")
    if isinstance(path, DatabaseUrl):
        hint = "restore a backup of pg_dump; `pg_dump --data-only` and pg_amcheck show what can still be read"
        raise OptionError("--salvage reads the pages of a file, and this is a database of PostgreSQL", hint=hint)
    report = SalvageReport()
    streams.write_output("".join(salvage_lines(path, report)), output, utf8=True)
    saved = [format_count(report.rows.get(name, 0), name) for name in ("incident", "cluster")]
    streams.write_stderr(f"saved: {' and '.join(saved)}, with their feedback and history\n")
    for text in report.lost:
        streams.write_stderr(f"lost: {sanitize_line(text)}\n")
    if report.rows.get("incident"):
        streams.write_stderr("Move the damaged file away, then `triage db import FILE` makes a new store of it.\n")


def import_(file: ExportFile, store: options.StoreFile = None) -> None:
    """Import what another store exported. Existing rows stay.

    \b
    Example:
      triage db import knowledge.jsonl
    """

    from triage.render.phrases import format_count
    from triage.store import transfer

    streams.check_output(None)
    with options.open_store(store, create=True) as opened:
        added = transfer.import_lines(opened.connections, _read_lines(file), name=file)
    streams.write_output(
        (", ".join(format_count(count, kind) for kind, count in added.items()) or "nothing new") + "\n"
    )


def copy(source: CopySource, target: CopyTarget) -> None:
    """Copy a whole store into an empty one: from a file to PostgreSQL, or back.

    Everything is copied: incidents, clusters, decisions, the audit log, tokens, tasks and notifications. At the end the
    rows of both are counted and compared; if they differ, nothing is stored. Stop `triage serve` first.

    \b
    Examples:
      triage db copy sqlite:triage.db postgresql://triage@db.example.org/triage
      triage db copy postgresql://triage@db.example.org/triage sqlite:triage.db
    """
    from triage.cli.progress import CopyProgress
    from triage.render.phrases import format_count
    from triage.store import copying

    streams.check_output(None)
    with options.open_store(source) as original, options.open_store(target, create=True) as copied:
        progress = CopyProgress()
        try:
            result = copying.copy_store(original.connections, copied.connections, progress=progress)
        finally:
            progress.close()
    counts = [format_count(result.rows[name], name) for name in ("incident", "cluster", "token", "task")]
    streams.write_output(f"copied and compared: {', '.join(counts)}, {sum(result.rows.values())} rows in all\n")


def migrate(store: options.StoreFile = None, by: options.By = None) -> None:
    """Update a store of an older version.

    Every command updates the tables when it opens the store, and the first ingest updates the fingerprints; this
    command does both and nothing else.

    \b
    Example:
      triage db migrate --store old.db
    """
    from triage.render import clusters

    with options.open_store(store) as opened:
        result = opened.clusters.rekey(actor=options.actor_name(by))
        version = opened.connections.schema_version()
        streams.write_output(f"version {version}\n{clusters.rekeyed(result, False)}")


def _parse_days(text: str) -> float:
    match = re.fullmatch(r"(\d{1,5})\s*([hdw]?)", text.strip())
    if match is None:
        raise OptionError(f"--older-than {text!r} is not an age", hint="write 180d, 26w or 12h")
    return int(match[1]) * {"h": 1 / 24, "d": 1, "": 1, "w": 7}[match[2]]


def _read_lines(name: str) -> Iterator[str]:
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


COMMANDS = (
    ("check", check),
    ("vacuum", vacuum),
    ("retention", retention),
    ("export", export),
    ("import", import_),
    ("copy", copy),
    ("migrate", migrate),
)
