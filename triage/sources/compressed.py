"""One compression taken off: gzip, bzip2, xz, zstd, lz4."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from triage.sources.engines import ENGINES
from triage.sources.inflate import Inflated
from triage.sources.interface import Item, Opened

if TYPE_CHECKING:
    from triage.sources.expand import Expansion


class Compressed:
    """Passes what is inside on to the other readers, under the same name."""

    kinds = frozenset(ENGINES)

    def read(self, item: Item, way: Expansion) -> Iterator[Opened]:
        """Yield the sources inside; afterwards say what was damaged."""
        if item.layers:
            way.notes.add("nested-too-deep", item.name, "skipped, because it is compressed twice; decompress it once")
            return
        try:
            engine = ENGINES[item.kind]()
        except ImportError as error:
            way.notes.add(
                "skipped",
                item.name,
                f"skipped, because {error.name} is not installed: pip install {(error.name or '').partition('.')[0]}",
            )
            return
        stream = Inflated(item.stream, engine, way.spend)
        inner = way.inside(item, stream, size=None, layers=item.layers + 1)
        try:
            yield from way.expand(inner)
        finally:
            damage = stream.damage
            if damage and damage.code == "truncated" and inner.kind in ("tar", "zip"):
                damage = damage._replace(code="truncated-archive")
            way.report(item.name, damage)
