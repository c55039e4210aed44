"""The shape of the family: a reader turns all artifacts of its kind into evidence, for one dump is told by the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from triage.errors import TriageError
from triage.model import Evidence, Source, SourceKind, Warning


class ArtifactError(TriageError):
    """An artifact cannot be read; the rest of the job still can."""


@dataclass(frozen=True, slots=True)
class Artifact:
    """One artifact: its first bytes, at most the reader's `max_bytes`; where `source.path` is set, all of them lie there uncompressed."""

    source: Source
    data: bytes


class Facts(NamedTuple):
    """What artifacts say, and what about them the reader must know."""

    evidence: list[Evidence]
    warnings: list[Warning]


class Reader(Protocol):
    """Reads the artifacts of one kind, given in the order of their names. What is damaged becomes a warning, never an exception."""

    kind: SourceKind
    max_bytes: int

    def read(self, artifacts: Sequence[Artifact]) -> Facts: ...


def damaged(source: Source, error: ArtifactError) -> Warning:
    """The warning for an artifact that cannot be read."""
    return Warning("damaged-artifact", source.name, error.message)
