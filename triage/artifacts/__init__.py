"""What a job leaves besides text. READERS is the ordered list of the kinds that can be read; the others are said to be
there.

A reader is imported when the job has something of its kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from triage.artifacts.interface import Artifact, Facts, Reader
from triage.model.evidence import Evidence, Source, SourceKind, Warning

if TYPE_CHECKING:
    from triage.artifacts.stacks.conclude import Complete, Words

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
    from triage.artifacts.cores.reader import Cores

    return Cores()


def _pyspy() -> Reader:
    from triage.artifacts.stacks import Stacks

    return Stacks("py-spy")


def _live_stacks() -> Reader:
    from triage.artifacts.stacks import Stacks

    return Stacks("live-stacks")


READERS: tuple[tuple[SourceKind, Callable[[], Reader]], ...] = (
    ("error-file", _error_file),
    ("environment", _environment),
    ("flight-recorder", _flight),
    ("core", _cores),
    ("py-spy", _pyspy),
    ("live-stacks", _live_stacks),
)

_UNREAD = {
    "binary": "skipped, because it is not text",
    "empty": "the file is empty",
}


def reader_of(source: Source) -> Reader | None:
    return next((reader() for kind, reader in READERS if kind == source.kind), None)


def read(artifacts: Iterable[Artifact]) -> Facts:
    """The facts in all artifacts, and a warning for each that could not be read. The order in which they are given does
    not matter.
    """
    found = Facts([], [])
    left = sorted(artifacts, key=lambda artifact: artifact.source.name)
    for kind, reader in READERS:
        if given := [artifact for artifact in left if artifact.source.kind == kind]:
            facts, warnings = reader().read(given)
            found.evidence.extend(facts)
            found.warnings.extend(warnings)
            left = [artifact for artifact in left if artifact.source.kind != kind]
    for artifact in left:
        message = _UNREAD.get(artifact.source.kind, "skipped, because its kind is not known")
        found.warnings.append(Warning("artifact-not-read", artifact.source.name, message))
    return found


def conclude(read: Facts, others: Iterable[Evidence], complete: Complete, words: Words = ()) -> None:
    """Add what the stacks of live processes, read or found in logs, say together: see `stacks.conclude`."""
    others = list(others)
    if any(fact.kind == "stack" for fact in (*read.evidence, *others)):
        from triage.artifacts import stacks

        stacks.conclude(read, others, complete, words)
