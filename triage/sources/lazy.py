"""A reader whose module is imported when the first file of its kind is met: most jobs hold no archive."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from triage.sources.interface import FileKind, Item, Opened

if TYPE_CHECKING:
    from triage.sources.expand import Expansion, Reader


class Lazy:
    """Stands for the reader `name` in `module`; `kinds` repeats its kinds (a test compares them)."""

    def __init__(self, module: str, name: str, kinds: frozenset[FileKind]) -> None:
        self.module = module
        self.name = name
        self.kinds = kinds

    def load(self) -> Reader:
        """The reader itself."""
        reader: Reader = getattr(importlib.import_module(self.module), self.name)()
        return reader

    def read(self, item: Item, way: Expansion) -> Iterator[Opened]:
        """What the reader yields."""
        return self.load().read(item, way)
