"""What a job leaves besides text. READERS is the ordered list of the kinds that can be read; the others are said to be there."""

from __future__ import annotations

from collections.abc import Iterable

from triage.artifacts.error_file import ErrorFile
from triage.artifacts.interface import ArtifactError, Reader
from triage.model import Evidence, Source, Warning

READERS: tuple[Reader, ...] = (ErrorFile(),)

_LATER = {
    "core": "a core file was recognised but is not read by this version; `gdb -c` shows its backtrace",
    "flight-recorder": "a Flight Recorder dump was recognised but is not read by this version",
    "py-spy": "a py-spy dump was recognised but is not read by this version",
    "binary": "skipped, because it is not text",
    "empty": "the file is empty",
}


def reader_of(source: Source) -> Reader | None:
    return next((reader for reader in READERS if reader.kind == source.kind), None)


def read(artifacts: Iterable[tuple[Source, bytes]]) -> tuple[list[Evidence], list[Warning]]:
    """The facts in all artifacts, and a warning for each that could not be read."""
    facts: list[Evidence] = []
    warnings: list[Warning] = []
    for source, data in artifacts:
        reader = reader_of(source)
        if reader is None:
            warnings.append(Warning("artifact-not-read", source.name, _LATER.get(source.kind, "skipped, because its kind is not known")))
            continue
        try:
            facts.extend(reader.read(source, data))
        except ArtifactError as error:
            warnings.append(Warning("damaged-artifact", source.name, error.message))
    return facts, warnings
