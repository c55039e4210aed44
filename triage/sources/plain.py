"""What needs no unpacking: text and the artifacts that other rooms read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, BinaryIO, cast

from triage.model import Source, SourceKind
from triage.sources.interface import File, FileKind, Item, Opened

if TYPE_CHECKING:
    from triage.sources.bytestream import ByteStream
    from triage.sources.expand import Expansion

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
"""What a reader of this kind makes of a file: the file's kind to the source's."""


def in_place(file: File) -> Source | None:
    """The source of a file whose bytes can be read where they lie; None when they must be unpacked or decoded."""
    kind = KINDS.get(file.kind)
    if kind is None or _is_wide(file.encoding):
        return None
    return Source(file.name, kind, file.size, file.path, file.mtime)


class Plain:
    """One source for one item, its text brought to UTF-8."""

    kinds = frozenset(KINDS)

    def read(self, item: Item, way: Expansion) -> Iterator[Opened]:
        """Yield the one source."""
        from triage.sources.views import Capped, Transcoded  # most plain files are read in place, without any of this

        stream: ByteStream = Capped(item.stream, way.limits.max_member_bytes)
        size = item.size
        if item.encoding and _is_wide(item.encoding):
            stream, size = Transcoded(stream, item.encoding), None
        try:
            yield Source(item.name, KINDS[item.kind], size, None, item.mtime), cast(BinaryIO, stream)
        finally:
            # What the stream below suffered is told by the reader that made it.
            if stream.damage is not item.stream.damage:
                way.report(item.name, stream.damage)


def _is_wide(encoding: str | None) -> bool:
    return encoding is not None and encoding != "utf-8"
