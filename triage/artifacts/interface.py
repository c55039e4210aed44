"""The shape of the family: an artifact reader turns one whole artifact into evidence."""

from __future__ import annotations

from typing import Protocol

from triage.errors import TriageError
from triage.model import Evidence, Source, SourceKind


class ArtifactError(TriageError):
    """An artifact cannot be read; the rest of the job still can."""


class Reader(Protocol):
    """Reads artifacts of one kind. `read` raises ArtifactError for damaged content."""

    kind: SourceKind
    max_bytes: int

    def read(self, source: Source, data: bytes) -> list[Evidence]: ...
