"""The shape of the family: a reader turns all artifacts of its kind into evidence, for one dump is told by the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import BinaryIO, NamedTuple, Protocol, runtime_checkable

from triage.base.errors import TriageError
from triage.model.evidence import Evidence, Source, SourceKind, Warning


class ArtifactError(TriageError):
    """An artifact cannot be read; the rest of the job still can."""


@dataclass(frozen=True, slots=True)
class Artifact:
    """One artifact: its first bytes, at most the reader's `max_bytes`; where `source.path` is set, all of them lie
    there uncompressed.

    `packed` are all bytes, deflated, of what lies nowhere uncompressed and of which there may be thousands.
    """

    source: Source
    data: bytes
    packed: bytes = field(default=b"", kw_only=True)

    def content(self, limit: int) -> bytes:
        """Up to `limit` of its bytes, from the file itself where it lies uncompressed."""
        if self.packed:
            import zlib

            return zlib.decompressobj().decompress(self.packed, limit)
        if self.source.path is None:
            return self.data[:limit]
        with open(self.source.path, "rb") as file:
            return file.read(limit)


class Facts(NamedTuple):
    """What artifacts say, and what about them the reader must know."""

    evidence: list[Evidence]
    warnings: list[Warning]


class Reader(Protocol):
    """Reads the artifacts of one kind, given in the order of their names. What is damaged becomes a warning, never an
    exception.

    A reader with a true `in_place` asks for the content of files itself, so that only their beginning is held for it.
    """

    kind: SourceKind
    max_bytes: int

    def read(self, artifacts: Sequence[Artifact]) -> Facts: ...


@runtime_checkable
class Keeper(Protocol):
    """A reader that needs more than the first bytes of what lies compressed or in an archive: it keeps the stream while
    it is there.
    """

    def keep(self, source: Source, stream: BinaryIO) -> Artifact: ...


def damaged(source: Source, error: ArtifactError) -> Warning:
    """The warning for an artifact that cannot be read."""
    return Warning("damaged-artifact", source.name, error.message)
