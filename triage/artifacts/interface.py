"""The interface of artifact readers: each turns all artifacts of its kind into evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import BinaryIO, NamedTuple, Protocol, runtime_checkable

from triage.base.errors import TriageError
from triage.base.lazy_dataclass import dataclass
from triage.model.evidence import Evidence, Source, Warning


class ArtifactError(TriageError):
    """An artifact that cannot be read; the rest of the job still can."""


@dataclass(frozen=True, slots=True)
class Artifact:
    """One artifact.

    `data` are its first bytes, at most the reader's `max_bytes`. With `source.path`, the file there holds all bytes
    uncompressed; `compressed` holds them deflated, for artifacts that lie in archives by the thousands.
    """

    source: Source
    data: bytes
    compressed: bytes = field(default=b"", kw_only=True)

    def content(self, limit: int) -> bytes:
        """Return up to `limit` of its bytes, from the file itself where it lies uncompressed."""
        if self.compressed:
            import zlib

            return zlib.decompressobj().decompress(self.compressed, limit)
        if self.source.path is None:
            return self.data[:limit]
        with open(self.source.path, "rb") as file:
            return file.read(limit)


class ReadResult(NamedTuple):
    """The evidence in artifacts, and warnings about those that cannot be read whole.

    `digests` of what was read, one for each artifact; a reader that reads nothing but their `data` needs none.
    """

    evidence: list[Evidence]
    warnings: list[Warning]
    digests: Sequence[str] = ()


class Reader(Protocol):
    """Reads the artifacts of one kind.

    A reader with a true `reads_in_place` reads the content of files itself, so that memory holds only their beginning;
    it returns the digests of what it reads.
    """

    max_bytes: int

    def read(self, artifacts: Sequence[Artifact]) -> ReadResult:
        """Return the evidence in artifacts that are sorted by name; a damaged one gives a warning, no exception."""
        ...


@runtime_checkable
class StreamReader(Protocol):
    """A reader that needs more than the first bytes of a compressed file or archive member."""

    def read_stream(self, source: Source, stream: BinaryIO) -> Artifact:
        """Return the artifact with what the reader needs of the stream, which is only open now."""
        ...


def damaged_warning(source: Source, error: ArtifactError) -> Warning:
    """Return the warning for an artifact that cannot be read."""
    return Warning("damaged-artifact", source.name, error.message)
