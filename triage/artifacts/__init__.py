"""Artifacts: what a job leaves besides text. READERS are the kinds that can be read.

A reader is only imported when the job has an artifact of its kind; every other artifact gives a warning.
"""

from __future__ import annotations

import importlib
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from triage.artifacts.interface import Artifact, Reader, ReadResult
from triage.base.content_digest import digest_bytes
from triage.model.evidence import Evidence, Source, SourceKind, Warning

if TYPE_CHECKING:
    from triage.artifacts.stacks.inference import Activities, CompleteOrigin

READERS: dict[SourceKind, tuple[str, str]] = {
    "error-file": ("error_file", "ErrorFile"),
    "environment": ("environment", "Environment"),
    "flight-recorder": ("flight.reader", "FlightRecorder"),
    "core": ("cores.reader", "CoreReader"),
    "py-spy": ("stacks.reader", "LiveStacks"),
    "live-stacks": ("stacks.reader", "LiveStacks"),
}
"""The kinds that can be read, in the order in which they are read; each with the module and the class of its reader."""

_UNREAD = {"binary": "skipped, because it is not text", "empty": "the file is empty"}


def find_reader(source: Source) -> Reader | None:
    """Return the reader for the source's kind, None where no reader takes it."""
    if source.kind not in READERS:
        return None
    module, name = READERS[source.kind]
    reader: Reader = getattr(importlib.import_module(f"triage.artifacts.{module}"), name)()
    return reader


def read_artifacts(artifacts: Iterable[Artifact]) -> ReadResult:
    """Return the evidence in all artifacts, in any order, and a warning for each that could not be read."""
    digests: list[str] = []
    result = ReadResult([], [], digests)
    remaining = sorted(artifacts, key=lambda artifact: artifact.source.name)
    for kind in READERS:
        of_kind = [artifact for artifact in remaining if artifact.source.kind == kind]
        if of_kind and (reader := find_reader(of_kind[0].source)):
            read = reader.read(of_kind)
            result.evidence.extend(read.evidence)
            result.warnings.extend(read.warnings)
            digests += read.digests or [digest_bytes(artifact.data) for artifact in of_kind if artifact.data]
            remaining = [artifact for artifact in remaining if artifact.source.kind != kind]
    for artifact in remaining:
        message = _UNREAD.get(artifact.source.kind, "skipped, because its kind is unknown")
        result.warnings.append(Warning("artifact-not-read", artifact.source.name, message))
    return result


def infer_from_stacks(
    facts: Sequence[Evidence], complete: CompleteOrigin, activities: Activities = (), ranks: Collection[int] = ()
) -> ReadResult:
    """Return what follows from the stacks of live processes among the facts, as `stacks.inference` does."""
    if not any(fact.kind == "stack" for fact in facts):
        return ReadResult([], [])
    from triage.artifacts.stacks import inference

    return inference.infer_from_stacks(facts, complete, activities, ranks)


def reconcile(dumps: Sequence[Evidence], stacks: Sequence[Evidence]) -> list[Evidence]:
    """Return the evidence of dumps and stacks without conclusions that the other refutes, as `reconciliation` does."""
    if not stacks:
        return [*dumps]
    from triage.artifacts import reconciliation

    return reconciliation.reconcile(dumps, stacks)
