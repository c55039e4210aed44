"""Options that several commands share, the parsers of their values, and the completion of signature ids."""

from __future__ import annotations

import re
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from triage.base.errors import OptionError, TriageError
from triage.cli.values import ColorChoice, FailingVerdict, Format

if TYPE_CHECKING:
    from triage.store import Store


def complete_signature_ids(incomplete: str) -> list[str]:
    """Return the ids of the shipped catalog that start like this, for shell completion; none if it cannot be read."""
    from triage.catalog.load import load

    try:
        return [signature.id for signature in load(strict=False).signatures if signature.id.startswith(incomplete)]
    except (TriageError, OSError):
        return []


def parse_ranks(text: str | None) -> frozenset[int] | None:
    """Parse `3,5-7` into rank numbers. Raises OptionError."""
    if text is None:
        return None
    ranks: set[int] = set()
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d{1,6})(?:\s*-\s*(\d{1,6}))?\s*", part)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if first > last:
            raise OptionError(f"--rank {text!r} is not a list of ranks", hint="write 3 or 3,5-7")
        ranks.update(range(first, last + 1))
    return frozenset(ranks)


def parse_duration(text: str | None, option: str = "--around") -> float | None:
    """Parse `90`, `30s`, `5m`, `1.5h` or `2d` into seconds. Raises OptionError."""
    if text is None:
        return None
    match = re.fullmatch(r"\s*(\d{1,9}(?:\.\d{1,3})?)\s*([smhd]?)\s*", text)
    if match is None:
        raise OptionError(f"{option} {text!r} is not a duration", hint="write 30s, 5m or 1h")
    return float(match[1]) * {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}[match[2]]


def parse_time(text: str, now: float) -> float:
    """Parse an age (`7d`, `12h`, `2w`) or a time (`2025-11-21`, `2025-11-21T03:00Z`) into seconds since 1970.

    A time without a zone is UTC. Raises OptionError.
    """
    age = re.fullmatch(r"(\d{1,5})\s*([mhdw])", text.strip())
    if age is not None:
        return now - int(age[1]) * {"m": 60, "h": 3600, "d": 86_400, "w": 604_800}[age[2]]
    from datetime import UTC, datetime

    try:
        when = datetime.fromisoformat(text.strip())
        return (when if when.tzinfo is not None else when.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise OptionError(
            f"{text!r} is not a time", hint="write 7d, 12h, 2w, 2025-11-21 or 2025-11-21T03:00Z"
        ) from None


def actor_name(option: str | None) -> str:
    """Return who acts: the option, else the user of this machine."""
    from triage.store.audit import machine_user

    return " ".join((option or machine_user()).split())[:80] or "unknown"


@contextmanager
def open_store(path: str | Path | None, *, create: bool = False) -> Iterator[Store]:
    """Open the store for a command that needs it."""
    from triage.store import Store

    with Store.open(path, create=create) as store:
        yield store


@contextmanager
def stop_on_signal() -> Iterator[threading.Event]:
    """Yield an event that SIGTERM and SIGINT set, for commands that run until they are stopped."""
    event = threading.Event()
    before = {number: signal.signal(number, lambda *_: event.set()) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield event
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


Paths = Annotated[
    list[str],
    typer.Argument(
        metavar="PATH", help="Files, directories or archives of one job; - reads standard input.", show_default=False
    ),
]
Catalogs = Annotated[
    list[Path] | None,
    typer.Option(
        "--catalog",
        metavar="DIR",
        help="Your own signatures, used with the shipped ones; may be repeated.",
        show_default=False,
    ),
]
ReportFormat = Annotated[
    Format,
    typer.Option(
        "--format",
        "-f",
        metavar="FORMAT",
        help="text, json, markdown, html, github, gitlab, codequality, junit, sarif or slack.",
    ),
]
PlainFormat = Annotated[Literal["text", "json"], typer.Option("--format", "-f", help="Output format.")]
TableFormat = Annotated[Literal["text", "json", "csv"], typer.Option("--format", "-f", help="Output format.")]
FailOn = Annotated[
    FailingVerdict | None,
    typer.Option("--fail-on", help="Exit with 1 if this verdict is found; any: all but clean.", show_default=False),
]
Each = Annotated[bool, typer.Option("--each", help="Each directory or archive in PATH is a job of its own.")]
Again = Annotated[bool, typer.Option("--again", help="With --each: read also jobs that did not change.")]
EachState = Annotated[
    Path | None,
    typer.Option("--state", metavar="FILE", help="With --each: where finished jobs are noted.", show_default=False),
]
Dask = Annotated[
    str | None,
    typer.Option(
        "--dask",
        metavar="ADDRESS",
        help="Let a Dask cluster do the work: the address of its scheduler, or its scheduler file.",
        show_default=False,
    ),
]
Notify = Annotated[bool, typer.Option("--notify", help="Notify the routes of the settings.")]
Labels = Annotated[
    list[str] | None,
    typer.Option(
        "--label",
        metavar="NAME=VALUE",
        help="A fact of the job to filter by, as team=vision; may be repeated.",
        show_default=False,
    ),
]
Link = Annotated[
    str,
    typer.Option(
        "--link",
        metavar="URL",
        help="Address of the full report; for gitlab, slack and summaries.",
        show_default=False,
    ),
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", metavar="FILE", help="Write to FILE instead of standard output.", show_default=False
    ),
]
Color = Annotated[
    ColorChoice,
    typer.Option("--color", help="Colour of text; auto follows terminal, NO_COLOR and CLICOLOR."),
]
Width = Annotated[
    int | None,
    typer.Option(
        "--width",
        metavar="N",
        min=40,
        max=1000,
        help="Columns of text. Default: the terminal's, or 100.",
        show_default=False,
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(
        "--workers", metavar="N", min=1, max=1024, help="Reader processes. Default: one per core.", show_default=False
    ),
]
ChunkSize = Annotated[
    str,
    typer.Option(
        "--chunk-size", metavar="BYTES", help="Bytes read at a time, with K, M or G. Does not change the result."
    ),
]
Exact = Annotated[
    bool, typer.Option("--exact", help="Read all bytes again, also of files that were read before. Slower.")
]
Ranks = Annotated[
    str | None,
    typer.Option("--rank", "-r", metavar="RANKS", help="Only these ranks, like 3 or 3,5-7.", show_default=False),
]
Limit = Annotated[int, typer.Option("--limit", "-n", metavar="N", min=1, max=100_000, help="Maximum number of rows.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress on standard error.")]
SignatureId = Annotated[
    str,
    typer.Argument(
        metavar="ID",
        help="Signature id, like cuda.out-of-memory.",
        autocompletion=complete_signature_ids,
        show_default=False,
    ),
]
SignaturePaths = Annotated[
    list[Path] | None,
    typer.Argument(metavar="PATH", help="Files or directories. Default: the shipped catalog.", show_default=False),
]
SignatureDirectory = Annotated[
    Path, typer.Option("--directory", "-d", metavar="DIR", help="The directory of signatures to write to.")
]
Verbose = Annotated[
    bool,
    typer.Option("--verbose", "-v", help="Text with details: what else was considered, order of events, references."),
]
StoreFile = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="FILE",
        help="The store: a file, or postgresql://… Default: TRIAGE_STORE, else your data directory.",
        show_default=False,
    ),
]
IncidentId = Annotated[
    str,
    typer.Argument(metavar="ID", help="The incident: its id, its job's id, or the start of one.", show_default=False),
]
By = Annotated[str | None, typer.Option("--by", metavar="NAME", help="Who acts. Default: you.", show_default=False)]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would change.")]
