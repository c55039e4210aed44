"""A reader whose module is imported at the first file of its kind: most jobs have no archive."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from triage.sources.interface import FileKind, OpenedSource, ReaderInput

if TYPE_CHECKING:
    from triage.sources.expand import Expansion, Reader


class LazyReader:
    """Stands for the reader `name` in `module`; `kinds` repeats its kinds (a test compares them)."""

    def __init__(self, module: str, name: str, kinds: frozenset[FileKind]) -> None:
        self.module = module
        self.name = name
        self.kinds = kinds

    def load(self) -> Reader:
        """Return the reader itself."""
        reader: Reader = getattr(importlib.import_module(self.module), self.name)()
        return reader

    def read(self, item: ReaderInput, expansion: Expansion) -> Iterator[OpenedSource]:
        """Yield the sources of the reader."""
        return self.load().read(item, expansion)
