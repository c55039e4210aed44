"""Read what needs no unpacking: text, and artifacts that other packages read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, BinaryIO, cast

from triage.model.evidence import Source
from triage.sources.interface import KINDS, OpenedSource, ReaderInput, is_wide

if TYPE_CHECKING:
    from triage.sources.bytestream import ByteStream
    from triage.sources.expand import Expansion


class PlainReader:
    """Yields one source for one input, with its text converted to UTF-8."""

    kinds = frozenset(KINDS)

    def read(self, item: ReaderInput, expansion: Expansion) -> Iterator[OpenedSource]:
        """Yield the one source."""
        from triage.sources.stream_views import (  # most plain files are read in place, without any of this
            CappedStream,
            TranscodedStream,
        )

        stream: ByteStream = CappedStream(item.stream, expansion.limits.max_member_bytes)
        size = item.size
        if item.encoding and is_wide(item.encoding):
            stream, size = TranscodedStream(stream, item.encoding), None
        try:
            yield Source(item.name, KINDS[item.kind], size, None, item.mtime), cast(BinaryIO, stream)
        finally:
            # Damage of the stream below is reported by the reader that created it.
            if stream.damage is not item.stream.damage:
                expansion.report_damage(item.name, stream.damage)
