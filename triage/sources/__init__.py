"""Paths in, byte streams out: walking, classifying by content, decompressing, archive members, caps.

`discover` finds the files, `streams` gives what is in one of them. Nothing is ever unpacked to disk, and no name found
inside
an archive is ever used to open anything. What cannot be read is a warning; only paths that are of no use at all raise.
"""

from __future__ import annotations

from collections.abc import Iterator

from triage.sources.discovery import discover
from triage.sources.expand import Reader, expand
from triage.sources.files import Files, line_numbers
from triage.sources.interface import File, FileKind, Found, Item, Limits, Opened, SourceError, Warn, in_place
from triage.sources.lazy import Lazy
from triage.sources.plain import Plain
from triage.sources.unsupported import Unsupported

READERS: tuple[Reader, ...] = (
    Plain(),  # first: nearly every file is one
    Lazy("triage.sources.compressed", "Compressed", frozenset({"gzip", "bzip2", "xz", "zstd", "lz4"})),
    Lazy("triage.sources.tars", "Tar", frozenset({"tar"})),
    Lazy("triage.sources.zips", "Zip", frozenset({"zip"})),
    Unsupported(),  # last: what remains gets a warning
)


def streams(file: File, limits: Limits, warn: Warn) -> Iterator[Opened]:
    """The sources in a file that `discover` found, in the order in which they lie there.

    A source with a `path` comes with no stream: its bytes lie there, uncompressed, as UTF-8 (or nearly). Any other
    comes with a
    stream of its decompressed bytes, valid until the next source is asked for. Damage, caps and skipped members go to
    `warn`,
    at the latest when the iterator ends. Never raises for what the file holds, nor when it has vanished.
    """
    return expand(file, READERS, limits, warn)


__all__ = [
    "READERS",
    "File",
    "FileKind",
    "Files",
    "Found",
    "Item",
    "Limits",
    "Opened",
    "Reader",
    "SourceError",
    "Warn",
    "discover",
    "in_place",
    "line_numbers",
    "streams",
]
