"""Recognize formats that cannot be read, to explain what to do about them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from triage.sources.interface import FileKind, OpenedSource, ReaderInput

if TYPE_CHECKING:
    from triage.sources.expand import Expansion

ADVICE: dict[FileKind, str] = {
    "lz4-legacy": "it is compressed with lz4 in its oldest format; unpack it first: lz4 -d FILE",
    "7z": "it is a 7-Zip archive; unpack it first: 7z x FILE",
    "rar": "it is a RAR archive; unpack it first: unrar x FILE",
    "compress": "it is compressed with compress (.Z); unpack it first: gzip -d FILE",
    "journal": "it is a binary systemd journal; export it first: "
    "journalctl --file FILE -o short-iso-precise > journal.log",
}
"""Why a file of this kind is skipped, and what to do."""


class UnsupportedReader:
    """Warns and yields nothing."""

    kinds = frozenset(ADVICE)

    def read(self, item: ReaderInput, expansion: Expansion) -> Iterator[OpenedSource]:
        """Warn why the input is skipped."""
        expansion.warnings.add("skipped", item.name, f"skipped, because {ADVICE[item.kind]}")
        yield from ()
