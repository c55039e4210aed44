"""The reader of Flight Recorder dumps: all dumps of a job at once, one in memory at a time.

Only the name of a file contains the rank that wrote a dump: `<prefix><rank>` (TORCH_FR_DUMP_TEMP_FILE,
TORCH_NCCL_DEBUG_INFO_TEMP_FILE), followed by `.json`, a compression, or `.f<n>` for the n-th failure; the prefix may
contain a host and digits of its own. Where the file has no number, its directory may have one: `rank_3/trace.pkl`.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, BinaryIO

from triage.artifacts.interface import Artifact, ArtifactError, ReadResult, damaged_warning
from triage.base.collection_pause import paused_collection
from triage.base.content_digest import digest_bytes
from triage.model.evidence import Source, Warning

if TYPE_CHECKING:
    from triage.artifacts.flight.recording import RecordingBuilder
import re

from triage.base.lazy_re import lazy_re

MAX_BYTES = 1 << 26
"""Of one dump; a full ring buffer of 2000 entries with stacks takes 0.3 to 5 MB."""
_PIECE, _EDGE = 1 << 18, 1 << 16
_SUFFIX = lazy_re(r"\.(?:gz|zst|bz2|xz|lz4|json|pkl|pickle|bin|dump|trace|dat|txt|f\d+)$", re.I)
_LAST = lazy_re(r"(\d{1,7})$")
_MARKED = lazy_re(r"rank[_\-=]?(\d{1,7})(?!\d)", re.I)


class FlightRecorder:
    """Reads Flight Recorder dumps: all of a job at once, for one dump alone does not show who is missing."""

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

        digests: list[str] = []
        builder, warnings = read_dumps(self._read_contents(artifacts, digests))
        recording = builder.build()
        if not recording.dumps:
            return ReadResult([unreadable_dumps([artifact.source.name for artifact in artifacts])], warnings, digests)
        analysis = analyse(recording)
        warnings += [Warning(code, source, message) for code, source, message in analysis.notes]
        return ReadResult(list(extract_evidence(recording, analysis)), warnings, digests)

    def _read_contents(self, artifacts: Sequence[Artifact], digests: list[str]) -> Iterator[tuple[Source, bytes]]:
        """Yield each artifact's source and content, one at a time, and add its digest to `digests`."""
        for artifact in artifacts:
            content = artifact.content(self.max_bytes)
            digests.append(digest_bytes(content))
            yield artifact.source, content


def read_dumps(dumps: Iterable[tuple[Source, bytes]]) -> tuple[RecordingBuilder, list[Warning]]:
    """Add all dumps to a recording, with a warning for each that could not be read."""
    from triage.artifacts.flight.load import load
    from triage.artifacts.flight.recording import RecordingBuilder

    builder = RecordingBuilder()
    warnings: list[Warning] = []
    with paused_collection():
        for source, data in dumps:
            rank = parse_rank(source.name)
            if rank is None:
                message = "the file name has no rank; torch writes it at its end, so give the dump its first name again"
                warnings.append(Warning("no-rank", source.name, message))
                continue
            try:
                builder.add(rank, source.name, load(data), parse_failure_number(source.name), source.mtime)
            except ArtifactError as error:
                warnings.append(damaged_warning(source, error))
        return builder, warnings


def parse_rank(name: str) -> int | None:
    """Return the rank in the name of a dump; for archive members, the innermost name with one counts."""
    parts = [part for part in re.split(r"[/\\]|!/", name) if part]
    for depth, part in enumerate(reversed(parts)):
        while _SUFFIX.search(part):
            part = _SUFFIX.sub("", part)
        marked = list(_MARKED.finditer(part))
        last = _LAST.search(part) if depth == 0 else None
        if number := last or (marked[-1] if marked else None):
            return int(number[1])
    return None


def parse_failure_number(name: str) -> int:
    """Return the n of `.f<n>`: how many failures the process had survived when it wrote this dump."""
    number = re.search(r"\.f(\d{1,6})(?:\.|$)", name)
    return int(number[1]) if number else 0
