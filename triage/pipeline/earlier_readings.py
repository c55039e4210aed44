"""What earlier runs read of the same files, so that a second ingest reads only what is new.

One JSON file for each set of paths in the user's own cache directory, beside the compiled catalog: of each plain file
its state (file_states.py), the hits of its spans with their digests, the evidence of the whole file, and the numbers of
reported lines. It counts only with the same literals, settings of redaction and code. Like the compiled catalog it is
read only if it belongs to this user and nobody else can write it. Whoever can write it as this user can make triage say
anything about these files; he could replace triage as well. Anything else that is wrong with it is as if it were not
there.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

import triage
from triage.base.addresses import is_address
from triage.base.content_digest import digest_bytes
from triage.base.options import Options
from triage.base.shared_types import share_type
from triage.catalog.cache import choose_directory, read_cache, write_cache
from triage.evidence.extracted import ExtractedSource, pack, unpack
from triage.evidence.redaction import VARIABLE
from triage.pipeline.file_states import FileState, digest_both_ends, digest_span_ends, now_ns, read_state
from triage.scan.interface import SPAN
from triage.scan.known_spans import FileSpans, KnownSpans, spans_from_row
from triage.sources import File

_FORMAT = 1
DIRECTORY = "readings"
# Below so many bytes of plain text the start of Python takes most of the time anyway.
MIN_BYTES = 1 << 16
MAX_ENTRY_BYTES = 32 << 20
MAX_ALL_BYTES = 256 << 20
MAX_AGE = 30 * 86400.0  # seconds
# Packages whose code decides what is found in a file.
_PACKAGES = ("base", "evidence", "model", "ranks", "records", "scan", "stacks")

Identity = tuple[int, int]


class _Record(msgspec.Struct, omit_defaults=True):
    """One file. `is_settled`: its state shows any later change. `conditions` are those of `extracted`."""

    state: FileState
    is_settled: bool
    span_ends: str
    both_ends: str
    complete: list[Any]
    rest: list[Any]
    conditions: str = ""
    extracted: msgspec.Raw = msgspec.Raw(b"null")
    lines: dict[int, int] = {}


class _Remembered(msgspec.Struct):
    """What a file holds: its records, and their digest, because damaged numbers are numbers too."""

    digest: str
    records: msgspec.Raw


class EarlierReadings:
    """The readings of one set of paths. Nothing is known, and nothing is saved, if `path` is None."""

    def __init__(self, path: Path | None = None, key: str = "") -> None:
        self._path = path
        self._key = key
        self._started = now_ns()
        self._before = {_identity(record.state): record for record in _read_records(path, key)}
        self._states: dict[str, FileState] = {}  # by path, before the scan
        self._now: dict[str, _Record] = {}  # by path
        self._changed = False

    def find_spans(self, path: str, size: int) -> FileSpans | None:
        """Return what is known of a file; remember its state, which is compared again after the scan."""
        if self._path is None:
            return None
        try:
            with _opened(path) as fd:
                state = read_state(fd)
                if state is None or state.size != size:
                    return None
                self._states[path] = state
                record = self._before.get((state.device, state.inode))
                return self._find_unchanged(path, fd, state, record) if record is not None else None
        except (OSError, ValueError, TypeError):
            return None

    def _find_unchanged(self, path: str, fd: int, state: FileState, record: _Record) -> FileSpans | None:
        if state == record.state and record.is_settled and digest_both_ends(fd, state.size) == record.both_ends:
            spans = FileSpans(spans_from_row(record.complete), spans_from_row(record.rest))
            if len(spans.complete.digests) + len(spans.rest.digests) != max(1, -(-state.size // SPAN)):
                return None
            self._now[path] = record
            return spans
        complete = spans_from_row(record.complete)
        count = len(complete.digests)
        if count and state.has_grown_from(record.state) and digest_span_ends(fd, count) == record.span_ends:
            return FileSpans(complete, KnownSpans())
        return None

    def add_spans(self, scanned: Iterable[tuple[str, int, FileSpans]]) -> None:
        """Remember the (path, size, spans) of files that were scanned."""
        for path, size, spans in scanned if self._path is not None else ():
            before = self._states.get(path)
            with contextlib.suppress(OSError), _opened(path) as fd:
                state = read_state(fd)
                if before is None or state is None or before.size != size:
                    continue
                if state != before and not state.has_grown_from(before):
                    continue
                self._now[path] = _Record(
                    before,
                    state == before and before.is_settled(self._started),
                    digest_span_ends(fd, len(spans.complete.digests)),
                    digest_both_ends(fd, size),
                    spans.complete.to_row(),
                    spans.rest.to_row(),
                )
                self._changed = True

    def find_extracted(self, path: str | None, conditions: str) -> ExtractedSource | None:
        """Return the evidence of a file that did not change; `conditions` are all else that it depends on."""
        record = self._now.get(path or "")
        if record is None or not record.is_settled or record.conditions != conditions:
            return None
        try:
            return unpack(msgspec.json.decode(record.extracted))
        except (ValueError, TypeError, LookupError):
            return None

    def add_extracted(self, path: str | None, conditions: str, extracted: ExtractedSource) -> None:
        """Remember the evidence of a file."""
        record = self._now.get(path or "")
        if record is not None and record.is_settled:
            record.extracted, record.conditions = msgspec.Raw(msgspec.json.encode(pack(extracted))), conditions
            self._changed = True

    def find_lines(self, path: str | None) -> Mapping[int, int]:
        """Return the known lines of offsets of a file that did not change."""
        record = self._now.get(path or "")
        return record.lines if record is not None and record.is_settled else {}

    def save(self, lines: Mapping[str, Mapping[int, int]]) -> None:
        """Write what is known now, with these lines by path, if anything is new. Never raises OSError."""
        for path, numbers in lines.items():
            record = self._now.get(path)
            if record is not None and record.is_settled and not numbers.items() <= record.lines.items():
                record.lines, self._changed = dict(numbers), True
        if self._path is None or not self._changed:
            return
        records = list(self._now.values())
        data = msgspec.json.encode(records)
        if len(data) > MAX_ENTRY_BYTES:  # what takes the least time to find again is left out first
            for record in records:
                record.extracted, record.conditions = msgspec.Raw(b"null"), ""
            data = msgspec.json.encode(records)
        if len(data) <= MAX_ENTRY_BYTES:
            write_cache(self._path, self._key, _Remembered(digest_bytes(data), msgspec.Raw(data)))
            remove_old_readings(self._path.parent)


def _read_records(path: Path | None, key: str) -> list[_Record]:
    remembered = read_cache(path, key, _Remembered) if path is not None else None
    if remembered is None or digest_bytes(bytes(remembered.records)) != remembered.digest:
        return []
    try:
        return msgspec.json.decode(remembered.records, type=share_type(list[_Record]))
    except (ValueError, RecursionError):
        return []


def open_readings(
    paths: Sequence[str], files: Iterable[File], literals: Sequence[str], options: Options
) -> EarlierReadings:
    """Return what is known of these paths, which hold these files; nothing, if it does not pay.

    `literals` are those of the scan.
    """
    is_local = "-" not in paths and not any(map(is_address, paths))
    directory = choose_directory() if options.reuse and is_local else None
    if directory is None or sum(file.size for file in files if file.kind == "text") < MIN_BYTES:
        return EarlierReadings()
    names = "\0".join(sorted(os.path.abspath(path) for path in paths))
    name = digest_bytes(names.encode("utf-8", "surrogateescape"))[:16]
    return EarlierReadings(directory / DIRECTORY / f"{name}.json", _compute_key(literals))


def remove_old_readings(directory: Path, max_bytes: int = MAX_ALL_BYTES, max_age: float = MAX_AGE) -> None:
    """Remove files that were written too long ago, and the oldest ones while all are too large together."""
    oldest, total = time.time() - max_age, 0
    with contextlib.suppress(OSError):
        files = [(entry.stat(follow_symlinks=False), entry.path) for entry in os.scandir(directory)]
        for status, path in sorted(files, key=lambda file: -file[0].st_mtime_ns):
            total += status.st_size
            if total > max_bytes or status.st_mtime < oldest:
                with contextlib.suppress(OSError):
                    os.unlink(path)


def _compute_key(literals: Sequence[str]) -> str:
    """Return a digest that changes with everything, besides the files, that decides what is found in them.

    Windows only change the speed. The numbers of generic literals are part of the code.
    """
    text = json.dumps([_FORMAT, triage.__version__, SPAN, literals, sorted(_stamp_code())])
    return digest_bytes(text.encode() + _read_redaction())


def _stamp_code() -> Iterator[tuple[str, int, int]]:
    """Yield name, size and time of each file of the packages that read texts."""
    root = os.path.dirname(triage.__file__)
    for package in _PACKAGES:
        for directory, names, files in os.walk(os.path.join(root, package)):
            names[:] = [name for name in names if name != "__pycache__"]
            for file in files:
                status = os.stat(os.path.join(directory, file))
                yield os.path.relpath(os.path.join(directory, file), root), status.st_size, status.st_mtime_ns


def _read_redaction() -> bytes:
    """Return the settings that decide which parts of evidence are redacted."""
    name = os.environ.get(VARIABLE, "")
    if not name:
        return b""
    with contextlib.suppress(OSError, RuntimeError):
        return Path(name).expanduser().read_bytes()
    return name.encode("utf-8", "surrogateescape")


def _identity(state: FileState) -> Identity:
    return state.device, state.inode


@contextlib.contextmanager
def _opened(path: str) -> Iterator[int]:
    # Without O_NONBLOCK, opening waits for a writer if a pipe has replaced the file.
    fd = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    try:
        yield fd
    finally:
        os.close(fd)
