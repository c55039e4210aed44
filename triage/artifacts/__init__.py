"""What a job leaves besides text. READERS is the ordered list of the kinds that can be read; the others are said to be there."""

from __future__ import annotations

from collections.abc import Iterable

from triage.artifacts.cores.reader import Cores
from triage.artifacts.environment import Environment
from triage.artifacts.error_file import ErrorFile
from triage.artifacts.flight import FlightRecorder
from triage.artifacts.interface import Artifact, Facts, Reader
from triage.artifacts.stacks import Stacks, conclude
from triage.model import Source, Warning

__all__ = ["READERS", "conclude", "read", "reader_of"]

READERS: tuple[Reader, ...] = (ErrorFile(), Environment(), FlightRecorder(), Cores(), Stacks("py-spy"), Stacks("live-stacks"))

_UNREAD = {
    "binary": "skipped, because it is not text",
    "empty": "the file is empty",
}


def reader_of(source: Source) -> Reader | None:
    return next((reader for reader in READERS if reader.kind == source.kind), None)


def read(artifacts: Iterable[Artifact]) -> Facts:
    """The facts in all artifacts, and a warning for each that could not be read. The order in which they are given does not matter."""
    found = Facts([], [])
    given = sorted(artifacts, key=lambda artifact: artifact.source.name)
    for reader in READERS:
        facts, warnings = reader.read([artifact for artifact in given if artifact.source.kind == reader.kind])
        found.evidence.extend(facts)
        found.warnings.extend(warnings)
    for artifact in given:
        if reader_of(artifact.source) is None:
            message = _UNREAD.get(artifact.source.kind, "skipped, because its kind is not known")
            found.warnings.append(Warning("artifact-not-read", artifact.source.name, message))
    return found
