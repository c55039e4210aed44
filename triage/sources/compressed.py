"""Read compressed files: gzip, bzip2, xz, zstd, lz4."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from triage.sources.compression_formats import FORMATS
from triage.sources.decompress import DecompressedStream
from triage.sources.interface import OpenedSource, ReaderInput

if TYPE_CHECKING:
    from triage.sources.expand import Expansion


class CompressedReader:
    """Decompress the input and pass it on to the other readers, under the same name."""

    kinds = frozenset(FORMATS)

    def read(self, item: ReaderInput, expansion: Expansion) -> Iterator[OpenedSource]:
        """Yield the sources inside; then report damage."""
        if item.layers:
            message = "skipped, because it is compressed twice; decompress it once"
            expansion.warnings.add("nested-too-deep", item.name, message)
            return
        try:
            compression = FORMATS[item.kind]()
        except ImportError as error:
            expansion.warnings.add(
                "skipped",
                item.name,
                f"skipped, because {error.name} is not installed: pip install {(error.name or '').partition('.')[0]}",
            )
            return
        stream = DecompressedStream(item.stream, compression, expansion.spend)
        inner = expansion.input_for(item, stream, size=None, layers=item.layers + 1)
        try:
            yield from expansion.expand(inner)
        finally:
            damage = stream.damage
            if damage and damage.code == "truncated" and inner.kind in ("tar", "zip"):
                damage = damage._replace(code="truncated-archive")
            expansion.report_damage(item.name, damage)
