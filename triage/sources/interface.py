"""Common types of the readers: limits, discovered files, the input of a reader, warnings, and names fit for display."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import BinaryIO, Literal, NamedTuple

from triage.base.addresses import is_address
from triage.base.errors import InputError
from triage.base.lazy_dataclass import dataclass
from triage.model.evidence import Source, SourceKind, Warning
from triage.sources.bytestream import ByteStream

FileKind = Literal[
    "text", "environment", "core", "elf", "flight-recorder", "py-spy", "live-stacks", "error-file", "binary", "empty",
    "gzip", "bzip2", "xz", "zstd", "lz4", "lz4-legacy", "compress", "tar", "zip", "joined", "7z", "rar", "journal",
]  # fmt: skip

Warn = Callable[[Warning], None]
"""Takes each warning as soon as it is known. Readers never raise because of a file's content; they warn and go on."""

OpenedSource = tuple[Source, BinaryIO | None]
"""A source and its bytes. The stream is None when `Source.path` says where the bytes lie."""

MIB = 1 << 20
GIB = 1 << 30


class SourceError(InputError):
    """None of the paths can be read."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits for what one top-level file may expand to, so that no archive exhausts memory, time or patience.

    `max_ratio` (decompressed to compressed bytes) applies only after `ratio_floor_bytes` of output. A regular gzip file
    cannot exceed 1032, so the default never cuts one. `max_depth` counts archives inside archives: 2 reads a zip in a
    tar.
    """

    max_member_bytes: int = 64 * GIB
    max_total_bytes: int = 256 * GIB
    max_members: int = 200_000
    max_depth: int = 2
    max_ratio: int = 2000
    ratio_floor_bytes: int = GIB
    max_files: int = 1_000_000


@dataclass(frozen=True, slots=True)
class File:
    """A file that `discover` found, classified by its first bytes.

    `name` is printable and is what the user would open, `path` is what the operating system opens (the two differ for
    standard input and for names that are not UTF-8). `size` is in bytes, `mtime` in seconds since the epoch.
    `encoding` is set for text: utf-8, utf-16-le, utf-16-be, utf-32-le, utf-32-be, NUMBERED or FRAMED. `is_sparse`: a
    text with a large hole, which is not read.
    """

    name: str
    path: str
    kind: FileKind
    size: int
    mtime: float | None = None
    encoding: str | None = None
    is_sparse: bool = False


@dataclass(frozen=True, slots=True)
class DiscoveredFiles:
    """The files that `discover` found, sorted by name, and its warnings."""

    files: tuple[File, ...]
    warnings: tuple[Warning, ...]


class ReaderInput(NamedTuple):
    """The input of a reader: a file, or a member of an archive, at any stage of unpacking.

    `archives` counts the archives around it, `layers` the compressions removed since the last archive.
    """

    name: str
    kind: FileKind
    stream: ByteStream
    size: int | None = None
    mtime: float | None = None
    encoding: str | None = None
    archives: int = 0
    layers: int = 0


KINDS: dict[FileKind, SourceKind] = {
    "text": "text",
    "core": "core",
    "flight-recorder": "flight-recorder",
    "py-spy": "py-spy",
    "live-stacks": "live-stacks",
    "error-file": "error-file",
    "environment": "environment",
    "elf": "binary",
    "binary": "binary",
    "empty": "empty",
}
"""The kind of a source by the kind of its file, for files that need no unpacking."""


def source_in_place(file: File) -> Source | None:
    """Return the source of a file that can be read where it is; None when it must be unpacked or decoded.

    Of objects at addresses, only texts are read in place: other programs read artifacts, and need a file.
    """
    kind = KINDS.get(file.kind)
    if kind is None or is_wide(file.encoding) or (kind != "text" and is_address(file.path)):
        return None
    return Source(file.name, kind, file.size, file.path, file.mtime)


NUMBERED = "utf-8-numbered"
"""The encoding of text with a number before each line, as `cat -n` writes it."""
FRAMED = "utf-8-framed"
"""The encoding of text with a bar on both sides of each line, as k9s shows it."""


def is_wide(encoding: str | None) -> bool:
    """Whether the text must be converted to UTF-8."""
    return encoding is not None and encoding != "utf-8"


_LONGEST_NAME = 1024
"""Characters of a member's name that are kept: an archive of names of megabytes must not fill the memory."""


class WarningLimiter:
    """Passes warnings to `warn`, at most `limit_per_code` of one code; `close` reports how many more there were."""

    def __init__(self, warn: Warn, limit_per_code: int = 20, source_name: str | None = None) -> None:
        self._warn = warn
        self._limit_per_code = limit_per_code
        self._source_name = source_name
        self._counts: Counter[str] = Counter()

    def add(self, code: str, source: str | None, message: str) -> None:
        """Warn about `source`."""
        self._counts[code] += 1
        if self._counts[code] <= self._limit_per_code:
            self._warn(Warning(code, source, message))

    def close(self) -> None:
        """Report how many warnings of each code were left out."""
        for code, count in sorted(self._counts.items()):
            if count > self._limit_per_code:
                self._warn(Warning(code, self._source_name, f"and {count - self._limit_per_code:,} more like this"))
        self._counts.clear()


def printable_name(name: str) -> str:
    r"""`name` with what a terminal should not see as backslash escapes: b'\xff' in a file name becomes the four
    characters \xff."""
    if name.isprintable():
        return name
    return "".join(char if char.isprintable() else _escaped(char) for char in name)


def member_name(name: str) -> str:
    """Return an archive member's name for display; never use it to open anything.

    `/etc/x`, `../../etc/x` and `./etc/x` are all `etc/x`. Of an absurdly long name the end remains.
    """
    parts = [part for part in name[-_LONGEST_NAME:].split("/") if part not in ("", ".", "..")]
    return printable_name("/".join(parts)) or "?"


def _escaped(char: str) -> str:
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:  # surrogateescape: a byte that was not UTF-8
        return f"\\x{code - 0xDC00:02x}"
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
