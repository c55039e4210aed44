"""The reader of Flight Recorder dumps: all dumps of a job at once, one in memory at a time."""

from __future__ import annotations

import contextlib
import gc
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, BinaryIO

from triage.artifacts.flight.names import failure_of, rank_of
from triage.artifacts.interface import Artifact, ArtifactError, Facts, damaged
from triage.model.evidence import Source, SourceKind, Warning

if TYPE_CHECKING:
    from triage.artifacts.flight.recording import Builder

MAX_BYTES = 1 << 26
"""Of one dump; the dump of a full ring of 2000 entries with stacks takes 0.3 to 5 MB."""
_PIECE, _EDGE = 1 << 18, 1 << 16


class FlightRecorder:
    kind: SourceKind = "flight-recorder"
    max_bytes = MAX_BYTES
    in_place = True

    def keep(self, source: Source, stream: BinaryIO) -> Artifact:
        """A dump that lies compressed or in an archive. It is held deflated, so that thousands of them take no more
        room than they had.
        """
        packer = zlib.compressobj(1)
        first = piece = stream.read(_PIECE)
        packed, left = [], self.max_bytes
        while piece and left > 0:
            packed.append(packer.compress(piece[:left]))
            left -= len(piece)
            piece = stream.read(_PIECE)
        return Artifact(source, first[:_EDGE], packed=b"".join([*packed, packer.flush()]))

    def read(self, artifacts: Sequence[Artifact]) -> Facts:
        if not artifacts:
            return Facts([], [])
        from triage.artifacts.flight.analyse import analyse
        from triage.artifacts.flight.evidence import facts, unreadable

        builder, warnings = fill((artifact.source, artifact.content(self.max_bytes)) for artifact in artifacts)
        recording = builder.build()
        if not recording.dumps:
            return Facts([unreadable([artifact.source.name for artifact in artifacts])], warnings)
        analysis = analyse(recording)
        warnings += [Warning(code, source, message) for code, source, message in analysis.notes]
        return Facts(list(facts(recording, analysis)), warnings)


def fill(dumps: Iterable[tuple[Source, bytes]]) -> tuple[Builder, list[Warning]]:
    """All dumps, and a warning for each that could not be read."""
    from triage.artifacts.flight.load import load
    from triage.artifacts.flight.recording import Builder

    builder = Builder()
    warnings: list[Warning] = []
    with _no_collection():
        for source, data in dumps:
            rank = rank_of(source.name)
            if rank is None:
                message = "a dump without a rank: torch writes the rank at the end of the file's name, give it that name again"
                warnings.append(Warning("no-rank", source.name, message))
                continue
            try:
                builder.add(rank, source.name, load(data), failure_of(source.name))
            except ArtifactError as error:
                warnings.append(damaged(source, error))
        return builder, warnings


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    """Loading makes many objects and no circles; looking for circles takes longer than loading."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
