"""Artifacts: what a job leaves besides text. READERS is the ordered list of the kinds that can be read.

A reader is only imported when the job has an artifact of its kind; every other artifact gives a warning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from triage.artifacts.interface import Artifact, Reader, ReadResult
from triage.model.evidence import Evidence, Source, SourceKind, Warning

if TYPE_CHECKING:
    from triage.artifacts.stacks.inference import Activities, CompleteOrigin

__all__ = ["READERS", "conclude", "read", "reader_of"]


def _error_file() -> Reader:
    from triage.artifacts.error_file import ErrorFile

    return ErrorFile()


def _environment() -> Reader:
    from triage.artifacts.environment import Environment

    return Environment()


def _flight() -> Reader:
    from triage.artifacts.flight import FlightRecorder

    return FlightRecorder()


def _cores() -> Reader:
    from triage.artifacts.cores.reader import CoreReader

    return CoreReader()


def _pyspy() -> Reader:
    from triage.artifacts.stacks.reader import LiveStacks

    return LiveStacks("py-spy")


def _live_stacks() -> Reader:
    from triage.artifacts.stacks.reader import LiveStacks

    return LiveStacks("live-stacks")


READERS: tuple[tuple[SourceKind, Callable[[], Reader]], ...] = (
    ("error-file", _error_file),
    ("environment", _environment),
    ("flight-recorder", _flight),
    ("core", _cores),
    ("py-spy", _pyspy),
    ("live-stacks", _live_stacks),
)

_UNREAD = {"binary": "skipped, because it is not text", "empty": "the file is empty"}


def find_reader(source: Source) -> Reader | None:
    """Return the reader for the source's kind, None where no reader takes it."""
    return next((reader() for kind, reader in READERS if kind == source.kind), None)


def read_artifacts(artifacts: Iterable[Artifact]) -> ReadResult:
    """Return the evidence in all artifacts, in any order, and a warning for each that could not be read."""
    result = ReadResult([], [])
    remaining = sorted(artifacts, key=lambda artifact: artifact.source.name)
    for kind, reader in READERS:
        if of_kind := [artifact for artifact in remaining if artifact.source.kind == kind]:
            evidence, warnings = reader().read(of_kind)
            result.evidence.extend(evidence)
            result.warnings.extend(warnings)
            remaining = [artifact for artifact in remaining if artifact.source.kind != kind]
    for artifact in remaining:
        message = _UNREAD.get(artifact.source.kind, "skipped, because its kind is unknown")
        result.warnings.append(Warning("artifact-not-read", artifact.source.name, message))
    return result


def infer_from_stacks(facts: Sequence[Evidence], complete: CompleteOrigin, activities: Activities = ()) -> ReadResult:
    """Return what follows from the stacks of live processes among the facts, as `stacks.inference` does."""
    if not any(fact.kind == "stack" for fact in facts):
        return ReadResult([], [])
    from triage.artifacts.stacks import inference

    return inference.infer_from_stacks(facts, complete, activities)
