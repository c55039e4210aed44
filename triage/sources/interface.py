"""What the readers of this room have in common: limits, the walked `File`, the `Item` a reader opens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, Literal, NamedTuple

from triage.base.errors import InputError
from triage.model import evidence as evidence_model

if TYPE_CHECKING:
    from triage.sources.bytestream import ByteStream

FileKind = Literal[
    "text", "gzip", "bzip2", "xz", "zstd", "lz4", "lz4-legacy", "tar", "zip", "core", "elf", "flight-recorder", "py-spy", "live-stacks", "error-file", "environment", "binary", "empty",
    "7z", "rar", "compress", "journal",
]  # fmt: skip

Warn = Callable[[evidence_model.Warning], None]
"""Takes each warning as soon as it is known. Readers never raise for what a file holds; they warn and go on."""

Opened = tuple[evidence_model.Source, BinaryIO | None]
"""A source and its bytes. The stream is None when `Source.path` says where the bytes lie."""

MIB = 1 << 20
GIB = 1 << 30


class SourceError(InputError):
    """The paths given hold nothing that can be read."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Caps on what one top-level file may expand to, so that no archive can exhaust memory, time or patience.

    `max_ratio` (decompressed to compressed bytes) is looked at only after `ratio_floor_bytes` of output. An honest gzip
    file
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
    """A file found by `discover`, its kind told by its first bytes.

    `name` is printable and is what the user would open, `path` is what the operating system opens (the two differ for
    standard input and for names that are not UTF-8). `size` in bytes, `mtime` in seconds since the epoch.
    `encoding` is set for text: utf-8, utf-16-le, utf-16-be, utf-32-le or utf-32-be.
    """

    name: str
    path: str
    kind: FileKind
    size: int
    mtime: float | None = None
    encoding: str | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """What `discover` found, sorted by name."""

    files: tuple[File, ...]
    warnings: tuple[evidence_model.Warning, ...]


class Item(NamedTuple):
    """Bytes on their way through the readers: a file, or a member of an archive, at any stage of unpacking.

    `archives` counts the archives around it, `layers` the compressions taken off since the last archive.
    """

    name: str
    kind: FileKind
    stream: ByteStream
    size: int | None = None
    mtime: float | None = None
    encoding: str | None = None
    archives: int = 0
    layers: int = 0


KINDS: dict[FileKind, evidence_model.SourceKind] = {
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
"""What a reader of this kind makes of a file: the file's kind to the source's."""


def in_place(file: File) -> evidence_model.Source | None:
    """The source of a file whose bytes can be read where they lie; None when they must be unpacked or decoded."""
    kind = KINDS.get(file.kind)
    if kind is None or is_wide(file.encoding):
        return None
    return evidence_model.Source(file.name, kind, file.size, file.path, file.mtime)


def is_wide(encoding: str | None) -> bool:
    """Is it text that must be brought to UTF-8?"""
    return encoding is not None and encoding != "utf-8"
