"""Find the files of a job and give their bytes as streams: archives, compressions, encodings, limits.

`discover` finds the files, `streams` yields what is in one of them. Nothing is unpacked to disk, and no name inside an
archive is used to open anything. What cannot be read is a warning; only useless paths raise.
"""

from __future__ import annotations

from collections.abc import Iterator

from triage.sources.discovery import discover
from triage.sources.expand import LazyReader, PlainReader, Reader, UnsupportedReader, expand, open_stream
from triage.sources.file_reader import FileReader, find_line_numbers
from triage.sources.interface import (
    DiscoveredFiles,
    File,
    FileKind,
    Limits,
    OpenedSource,
    SourceError,
    Warn,
)
from triage.sources.opened_file import stop_threads

READERS: tuple[Reader, ...] = (
    PlainReader(),  # first: nearly every file is one
    LazyReader("triage.sources.decompress", "CompressedReader", frozenset({"gzip", "bzip2", "xz", "zstd", "lz4"})),
    LazyReader("triage.sources.tars", "TarReader", frozenset({"tar"})),
    LazyReader("triage.sources.zips", "ZipReader", frozenset({"zip"})),
    LazyReader("triage.sources.joined", "JoinedReader", frozenset({"joined"})),
    UnsupportedReader(),  # last: what remains gets a warning
)


def streams(file: File, limits: Limits, warn: Warn) -> Iterator[OpenedSource]:
    """Yield the sources in a file that `discover` found, in their order in it.

    A source with a `path` has no stream: its bytes lie there, uncompressed, as UTF-8 (or nearly). Any other has a
    stream of its decompressed bytes, valid until the next source is requested. Damage, limits and skipped members go to
    `warn`, at the latest when the iterator ends. Never raises because of the file's content or absence.
    """
    return expand(file, READERS, limits, warn)


__all__ = [
    "READERS",
    "DiscoveredFiles",
    "File",
    "FileKind",
    "FileReader",
    "Limits",
    "OpenedSource",
    "Reader",
    "SourceError",
    "Warn",
    "discover",
    "find_line_numbers",
    "open_stream",
    "stop_threads",
    "streams",
]
