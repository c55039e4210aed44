"""Paths → the recording of the dumps that lie there, in directories and archives, whatever else lies beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from io import BufferedWriter

from triage import sources
from triage.artifacts.flight import shares
from triage.artifacts.flight.model import Recording
from triage.artifacts.flight.reader import MAX_BYTES, fill
from triage.base import forks
from triage.base.errors import InputError
from triage.model.evidence import Source, Warning


def gather(
    paths: Sequence[str], advance: Callable[[int, int], None] = lambda done, total: None
) -> tuple[Recording, list[Warning]]:
    """The recording, and what could not be read. `advance` is told how many of how many bytes are done.

    Raises InputError when there is no dump that can be read.
    """
    found = sources.discover(paths)
    warnings = list(found.warnings)
    parts = shares.shares(found.files, lambda file: file.size)
    with forks.copies(partial(_hand, part) for part in parts[1:]) as pipes:
        builder, more = fill(
            _dumps(parts[0], warnings, lambda done: advance(done, sum(file.size for file in found.files)))
        )
        handed = [shares.handed_over(pipe) for pipe in pipes]
    for part, told in zip(parts[1:], handed, strict=True):
        told = told or _handed(part)
        builder.take(told)
        more += told.warnings
    recording = builder.build()
    warnings += more
    if not recording.dumps:
        reason = f" ({more[0].source}: {more[0].message})" if more else ""
        hint = "Give the files that TORCH_FR_DUMP_TEMP_FILE names (older releases: TORCH_NCCL_DEBUG_INFO_TEMP_FILE), or their directory."
        raise InputError(f"no Flight Recorder dump can be read there{reason}", hint=hint, path=", ".join(paths[:3]))
    return recording, warnings


def _hand(files: Sequence[sources.File], pipe: BufferedWriter) -> None:
    shares.hand(_handed(files), pipe)


def _handed(files: Sequence[sources.File]) -> shares.Handed:
    warnings: list[Warning] = []
    builder, more = fill(_dumps(files, warnings))
    return builder.hand(warnings + more)


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
