"""The reader of Flight Recorder dumps: all dumps of a job at once, one in memory at a time."""

from __future__ import annotations

import contextlib
import gc
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, BinaryIO

from triage.artifacts.flight.file_names import parse_failure_number, parse_rank
from triage.artifacts.interface import Artifact, ArtifactError, ReadResult, damaged_warning
from triage.model.evidence import Source, SourceKind, Warning

if TYPE_CHECKING:
    from triage.artifacts.flight.recording import RecordingBuilder

MAX_BYTES = 1 << 26
"""Of one dump; a full ring buffer of 2000 entries with stacks takes 0.3 to 5 MB."""
_PIECE, _EDGE = 1 << 18, 1 << 16


class FlightRecorder:
    """Reads Flight Recorder dumps: all of a job at once, for one dump alone does not show who is missing."""

    kind: SourceKind = "flight-recorder"
    max_bytes = MAX_BYTES
    reads_in_place = True

    def read_stream(self, source: Source, stream: BinaryIO) -> Artifact:
        """Return the dump of a compressed file or archive member, held deflated so that thousands fit into memory."""
        packer = zlib.compressobj(1)
        first = piece = stream.read(_PIECE)
        pieces, left = [], self.max_bytes
        while piece and left > 0:
            pieces.append(packer.compress(piece[:left]))
            left -= len(piece)
            piece = stream.read(_PIECE)
        return Artifact(source, first[:_EDGE], compressed=b"".join([*pieces, packer.flush()]))

    def read(self, artifacts: Sequence[Artifact]) -> ReadResult:
        """Return the evidence of all dumps together, and warnings for what could not be read."""
        if not artifacts:
            return ReadResult([], [])
        from triage.artifacts.flight.analyse import analyse
        from triage.artifacts.flight.evidence import extract_evidence, unreadable_dumps

        builder, warnings = read_dumps((artifact.source, artifact.content(self.max_bytes)) for artifact in artifacts)
        recording = builder.build()
        if not recording.dumps:
            return ReadResult([unreadable_dumps([artifact.source.name for artifact in artifacts])], warnings)
        analysis = analyse(recording)
        warnings += [Warning(code, source, message) for code, source, message in analysis.notes]
        return ReadResult(list(extract_evidence(recording, analysis)), warnings)


def read_dumps(dumps: Iterable[tuple[Source, bytes]]) -> tuple[RecordingBuilder, list[Warning]]:
    """Add all dumps to a recording, with a warning for each that could not be read."""
    from triage.artifacts.flight.load import load
    from triage.artifacts.flight.recording import RecordingBuilder

    builder = RecordingBuilder()
    warnings: list[Warning] = []
    with _no_collection():
        for source, data in dumps:
            rank = parse_rank(source.name)
            if rank is None:
                message = "the file name has no rank; torch writes it at its end, so give the dump its first name again"
                warnings.append(Warning("no-rank", source.name, message))
                continue
            try:
                builder.add(rank, source.name, load(data), parse_failure_number(source.name))
            except ArtifactError as error:
                warnings.append(damaged_warning(source, error))
        return builder, warnings


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    """Pause the garbage collector: loading makes many objects but no cycles, and the search for them takes longer."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
