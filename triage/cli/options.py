"""Options that several commands share, their values, and the completion of signature ids."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from triage.base.errors import OptionError, TriageError

if TYPE_CHECKING:
    import threading

    from triage.store import Store

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


class Format(str, Enum):  # noqa: UP042 - typer shows the value of this form in every release
    """The formats of `triage.render.NAMES`; a test holds them together, for importing them here would cost time."""

    text = "text"
    json = "json"
    markdown = "markdown"
    html = "html"
    github = "github"
    gitlab = "gitlab"
    codequality = "codequality"
    junit = "junit"
    sarif = "sarif"
    slack = "slack"


UTF8 = (
    Format.json,
    Format.html,
    Format.gitlab,
    Format.codequality,
    Format.junit,
    Format.sarif,
    Format.slack,
)  # whatever the terminal's


class PlainFormat(str, Enum):  # noqa: UP042
    text = "text"
    json = "json"


class CheckFormat(str, Enum):  # noqa: UP042
    text = "text"
    json = "json"
    github = "github"


class TableFormat(str, Enum):  # noqa: UP042
    text = "text"
    json = "json"
    csv = "csv"


class Verdict(str, Enum):  # noqa: UP042
    known = "known"
    unknown = "unknown"
    clean = "clean"


class FailOn(str, Enum):  # noqa: UP042
    known = "known"
    unknown = "unknown"
    any = "any"


class Color(str, Enum):  # noqa: UP042
    auto = "auto"
    always = "always"
    never = "never"


def found(verdict: str, fail_on: FailOn | None) -> bool:
    """Does `--fail-on` ask for this verdict?"""
    return fail_on is not None and verdict != "clean" and fail_on.value in ("any", verdict)


def signature_ids(incomplete: str) -> list[str]:
    """Ids of the shipped catalog for the shell; a catalog that cannot be read completes nothing."""
    from triage.catalog.load import load

    try:
        return [signature.id for signature in load(strict=False).signatures if signature.id.startswith(incomplete)]
    except (TriageError, OSError):
        return []


def byte_count(text: str, option: str = "--chunk-size") -> int:
    """`1048576`, `1M`, `64KiB`: a positive number of bytes, units of 1024. Raises OptionError."""
    match = re.fullmatch(r"(\d{1,15})\s*([KMG]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    count = int(match[1]) * _UNITS[match[2].upper()] if match else 0
    if not 0 < count <= 1 << 40:
        raise OptionError(f"{option} {text!r} is not a number of bytes", hint="write 1048576, 1M or 64K")
    return count


def rank_set(text: str | None) -> frozenset[int] | None:
    """`3,5-7` as numbers. Raises OptionError."""
    if text is None:
        return None
    found: set[int] = set()
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d{1,6})(?:\s*-\s*(\d{1,6}))?\s*", part)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if first > last:
            raise OptionError(f"--rank {text!r} names no ranks", hint="write 3 or 3,5-7")
        found.update(range(first, last + 1))
    return frozenset(found)


def seconds(text: str | None, option: str = "--around") -> float | None:
    """`90`, `30s`, `5m`, `1.5h` in seconds. Raises OptionError."""
    if text is None:
        return None
    match = re.fullmatch(r"\s*(\d{1,9}(?:\.\d{1,3})?)\s*([smhd]?)\s*", text)
    if match is None:
        raise OptionError(f"{option} {text!r} is no time", hint="write 30s, 5m or 1h")
    return float(match[1]) * {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}[match[2]]


def moment(text: str, now: float) -> float:
    """`7d`, `12h`, `2w`, `2025-11-21`, `2025-11-21T03:00Z` as seconds; without a zone it is UTC. Raises OptionError."""
    ago = re.fullmatch(r"(\d{1,5})\s*([mhdw])", text.strip())
    if ago is not None:
        return now - int(ago[1]) * {"m": 60, "h": 3600, "d": 86_400, "w": 604_800}[ago[2]]
    from datetime import UTC, datetime

    try:
        when = datetime.fromisoformat(text.strip())
        return (when if when.tzinfo is not None else when.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise OptionError(f"{text!r} is no time", hint="write 7d, 12h, 2w, 2025-11-21 or 2025-11-21T03:00Z") from None


def actor(given: str | None) -> str:
    """Who decides: the option, else the user of this machine."""
    import getpass

    try:
        return " ".join((given or getpass.getuser()).split())[:80] or "unknown"
    except (OSError, KeyError):
        return "unknown"


@contextmanager
def stored(given: Path | None, *, create: bool = False) -> Iterator[Store]:
    """The store, open for a command that cannot do without it."""
    from triage.store import Store

    with Store.open(given, create=create) as opened:
        yield opened


@contextmanager
def stopped() -> Iterator[threading.Event]:
    """An event that SIGTERM and SIGINT set, for commands that go on until they are told to stop."""
    import signal
    import threading

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
        help="Signatures of your own, laid over the shipped ones; may be repeated.",
        show_default=False,
    ),
]
Chosen = Annotated[
    Format,
    typer.Option(
        "--format",
        "-f",
        metavar="FORMAT",
        help="text, json, markdown, html, github, gitlab, codequality, junit, sarif or slack.",
    ),
]
Failing = Annotated[
    FailOn | None, typer.Option("--fail-on", help="Exit with 1 when such a failure was found.", show_default=False)
]
Notify = Annotated[bool, typer.Option("--notify", help="Tell those whom the settings route it to.")]
Link = Annotated[
    str,
    typer.Option(
        "--link",
        metavar="URL",
        help="Where the whole report can be read; for gitlab, slack and summaries.",
        show_default=False,
    ),
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", metavar="FILE", help="Write to FILE instead of standard output.", show_default=False
    ),
]
ColorOption = Annotated[
    Color, typer.Option("--color", help="Colours in text; auto asks the terminal, NO_COLOR and CLICOLOR.")
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
        "--workers", metavar="N", min=1, max=1024, help="Workers that read. Default: one a core.", show_default=False
    ),
]
ChunkSize = Annotated[
    str,
    typer.Option(
        "--chunk-size", metavar="BYTES", help="Bytes read at a time, with K, M or G. Never changes the answer."
    ),
]
Ranks = Annotated[
    str | None,
    typer.Option("--rank", "-r", metavar="RANKS", help="Only these ranks, like 3 or 3,5-7.", show_default=False),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress on standard error.")]
SignatureId = Annotated[
    str,
    typer.Argument(
        metavar="ID", help="Its id, like cuda.out-of-memory.", autocompletion=signature_ids, show_default=False
    ),
]
StoreFile = Annotated[
    Path | None,
    typer.Option(
        "--store",
        metavar="FILE",
        help="The store. Default: TRIAGE_STORE, else your data directory.",
        show_default=False,
    ),
]
IncidentId = Annotated[
    str,
    typer.Argument(metavar="ID", help="The incident: its id, its job's id, or their first digits.", show_default=False),
]
By = Annotated[str | None, typer.Option("--by", metavar="NAME", help="Who says so. Default: you.", show_default=False)]
