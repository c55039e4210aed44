"""Paths → the recording of all dumps in these files, directories and archives; other files are skipped."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from io import BufferedWriter

from triage import sources
from triage.artifacts.flight.model import Recording
from triage.artifacts.flight.process_transfer import PartialRecording, receive_partial, send_partial, split_by_size
from triage.artifacts.flight.reader import MAX_BYTES, read_dumps
from triage.base import forks
from triage.base.errors import InputError
from triage.model.evidence import Source, Warning

_HINT = (
    "give the files that TORCH_FR_DUMP_TEMP_FILE names (older releases: TORCH_NCCL_DEBUG_INFO_TEMP_FILE), "
    "or their directory"
)


def read_dump_files(
    paths: Sequence[str], advance: Callable[[int, int], None] = lambda done, total: None
) -> tuple[Recording, list[Warning]]:
    """Return the recording, and a warning for each file that could not be read.

    `advance` is called with the bytes that are done and all bytes. Raises InputError when no dump can be read.
    """
    listing = sources.discover(paths)
    warnings = list(listing.warnings)
    parts = split_by_size(listing.files, lambda file: file.size)
    total = sum(file.size for file in listing.files)
    with forks.forked(partial(_read_and_send, part) for part in parts[1:]) as pipes:
        builder, damages = read_dumps(_dumps(parts[0], warnings, lambda done: advance(done, total)))
        received = [receive_partial(pipe) for pipe in pipes]
    for files, recorded in zip(parts[1:], received, strict=True):
        recorded = recorded or _read_part(files)
        builder.merge(recorded)
        damages += recorded.warnings
    recording = builder.build()
    if not recording.dumps:
        reason = f" ({damages[0].source}: {damages[0].message})" if damages else ""
        raise InputError(f"no Flight Recorder dump can be read there{reason}", hint=_HINT, path=", ".join(paths[:3]))
    return recording, [*warnings, *damages]


def _read_and_send(files: Sequence[sources.File], pipe: BufferedWriter) -> None:
    send_partial(_read_part(files), pipe)


def _read_part(files: Sequence[sources.File]) -> PartialRecording:
    warnings: list[Warning] = []
    builder, damages = read_dumps(_dumps(files, warnings))
    return builder.export(warnings + damages)


def _dumps(
    files: Sequence[sources.File], warnings: list[Warning], advance: Callable[[int], None] = lambda done: None
) -> Iterator[tuple[Source, bytes]]:
    done = 0
    for file in files:
        for source, stream in sources.streams(file, sources.Limits(), warnings.append):
            if source.kind != "flight-recorder":
                continue
            if stream is not None:
                yield source, stream.read(MAX_BYTES)
            elif source.path is not None:
                with open(source.path, "rb") as opened:
                    data = opened.read(MAX_BYTES)
                yield source, data
        done += file.size
        advance(done)
