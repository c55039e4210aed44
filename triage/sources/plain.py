"""What needs no unpacking: text and the artifacts that other rooms read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, BinaryIO, cast

from triage.model.evidence import Source
from triage.sources.interface import KINDS, Item, Opened, is_wide

if TYPE_CHECKING:
    from triage.sources.bytestream import ByteStream
    from triage.sources.expand import Expansion


class Plain:
    """One source for one item, its text brought to UTF-8."""

    kinds = frozenset(KINDS)

    def read(self, item: Item, way: Expansion) -> Iterator[Opened]:
        """Yield the one source."""
        from triage.sources.views import Capped, Transcoded  # most plain files are read in place, without any of this

        stream: ByteStream = Capped(item.stream, way.limits.max_member_bytes)
        size = item.size
        if item.encoding and is_wide(item.encoding):
            stream, size = Transcoded(stream, item.encoding), None
        try:
            yield Source(item.name, KINDS[item.kind], size, None, item.mtime), cast(BinaryIO, stream)
        finally:
            # What the stream below suffered is told by the reader that made it.
            if stream.damage is not item.stream.damage:
                way.report(item.name, stream.damage)
