"""Follow growing log files and scan the new lines with the same gate and collector as `triage ingest`.

A file is identified by device and inode, so a rotation (`train.log` becomes `train.log.1`, a new `train.log` appears)
neither loses nor repeats lines. A file that became shorter was truncated and is read again from its start. The
follower stores the position and the hits of each file, never its text.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, field

from triage import evidence, sources
from triage.base.errors import InputError
from triage.base.options import Options
from triage.catalog.configured_catalogs import list_configured_catalogs
from triage.catalog.load import load
from triage.evidence.extracted import SourceContext
from triage.evidence.source_extraction import make_context
from triage.evidence.year import guess_year
from triage.model.evidence import Source
from triage.pipeline.earlier_readings import EarlierReadings, open_readings
from triage.pipeline.intake import Intake, writer_key
from triage.pipeline.results import ScannedJob
from triage.ranks.file_names import find_root
from triage.scan.edges import HEAD, TAIL, HeldEdges
from triage.scan.interface import SPAN, ScanResult
from triage.scan.lines import Collector, list_hits
from triage.scan.literal_matcher import build
from triage.scan.spans import LineFeeder, find_line_behind
from triage.sources.interface import source_in_place
from triage.sources.opened_file import LocalFile
from triage.watch.last_extractions import LastExtractions

_BUFFER = 1 << 20
_MAX_TURN = 1 << 23  # bytes read from one file before the next file is read
_UNFINISHED_LINE_WAIT = 1.0  # seconds without growth after which a last line without a newline is scanned
_KEEP_MISSING = 600.0  # seconds that a file without a name is remembered
_MAX_KINDS = 20_000  # kinds of hit lines in one file; above this, writers are not distinguished
# Bytes of the last lines that a diagnosis of a running job reads: of each file at least, and of all files together.
_MIN_TAIL, _ALL_TAILS = 1 << 12, 1 << 21
_FEW_WRITERS = 4  # only files with at most so many ranks get the short tail

Identity = tuple[int, int]


@dataclass(slots=True)
class FollowedFile:
    """One followed file.

    `position` is the end of the last scanned line, `line_start` and `overlap` are the state of the line feeder.
    """

    source: Source
    identity: Identity
    collector: Collector
    position: int = 0
    line_start: int = 0
    overlap: int = 0
    size: int = 0
    is_behind: bool = False
    grown_at: float = 0.0
    missing_since: float | None = None
    first_bytes: bytes = b""
    source_head: SourceContext | None = None
    head_length: int = 0  # size of the file when `source_head` was read
    progress_position: int = 0  # end of the part that the progress reader has read
    writer_count: int = 1  # most ranks that wrote one part of it
    counted_hits: int = 0  # hit lines, and below their kinds, that a round of reading has reported
    counted_kinds: int = 0
    starts_behind: bool = False  # behind spans that an earlier run has read, and that no round has reported

    @property
    def name(self) -> str:
        """Name of the source."""
        return self.source.name

    @property
    def path(self) -> str:
        """Path of the file."""
        return self.source.path or ""


@dataclass(frozen=True, slots=True)
class NewLines:
    """What one round of reading found: bytes, the files that grew, hit lines, and new kinds of hit lines."""

    bytes: int = 0
    files: tuple[FollowedFile, ...] = ()
    hits: int = 0
    new_kinds: int = 0
    is_behind: bool = False


@dataclass
class Follower:
    """Follow all text files below `paths`. Other files count only when the job has ended."""

    paths: Sequence[str]
    options: Options = field(default_factory=Options)
    files: dict[Identity, FollowedFile] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.catalog = load(self.options.catalogs, strict=bool(self.options.catalogs or list_configured_catalogs()))
        self._forms, self.literals = evidence.scan_literals(self.catalog.literals)
        self._generic = frozenset(range(len(evidence.TRIGGERS)))
        self._matcher = build(self._forms, self.options.engine, self.catalog.windows).for_thread()
        self._buffer = bytearray(_BUFFER)
        self._last_extractions = LastExtractions()

    def find_files(self, now: float) -> bool:
        """Look for new and missing files; paths may be missing. Return whether a new file is followed now."""
        try:
            discovered = sources.discover([path for path in self.paths if os.path.lexists(path)])
        except InputError:
            return False
        intake = Intake(discovered.files, self.paths)
        before = len(self.files)
        readings = None
        present = set()
        for file in intake.files:
            source, identity = source_in_place(file) if file.kind == "text" else None, _identity(file.path)
            if source is None or identity is None:
                continue
            present.add(identity)
            known = self.files.get(identity)
            if known is None:
                self.files[identity] = new = FollowedFile(
                    source, identity, Collector(self._matcher, writer_key, self._generic), grown_at=now
                )
                readings = readings or open_readings(self.paths, intake.files, self._forms, self.options)
                with contextlib.suppress(OSError):
                    _start_behind(new, readings)
            elif known.path != source.path and _identity(known.path) != identity:
                known.source = source
        self._forget_missing(present, now)
        return len(self.files) > before

    def _forget_missing(self, present: set[Identity], now: float) -> None:
        for identity, file in list(self.files.items()):
            if identity in present:
                file.missing_since = None
            elif file.missing_since is None:
                file.missing_since = now
            elif now - file.missing_since > _KEEP_MISSING:
                del self.files[identity]

    def read_new_lines(self, now: float) -> NewLines:
        """Read what was added to every file, at most `_MAX_TURN` bytes of each."""
        count = hits = new_kinds = 0
        grown: list[FollowedFile] = []
        is_behind = False
        for file in list(self.files.values()):
            position_before = file.position
            if not self._read(file, now) and not file.starts_behind:
                continue
            file.starts_behind = False
            if len(file.collector.groups) > _MAX_KINDS:
                file.collector.writer = lambda line: b""
            count += max(0, file.position - position_before)
            new_kinds += len(file.collector.groups) - file.counted_kinds
            hits += _hit_count(file) - file.counted_hits
            file.counted_hits, file.counted_kinds = _hit_count(file), len(file.collector.groups)
            is_behind |= file.is_behind
            grown.append(file)
        return NewLines(count, tuple(grown), hits, new_kinds, is_behind)

    def scan_results(self) -> ScannedJob:
        """Return what `pipeline.ingest_growing` needs: the scan results of all files, by name.

        Many files get shorter tails.
        """
        files = sorted((file for file in self.files.values() if file.position), key=lambda file: file.name)
        tail = max(_MIN_TAIL, min(TAIL, _ALL_TAILS // max(1, len(files))))
        scanned = [
            (file.source, self._scan_result(file, tail if file.writer_count <= _FEW_WRITERS else TAIL))
            for file in files
        ]
        contexts = {file.name: file.source_head for file in files if file.source_head and not _is_stale(file)}
        self._last_extractions.forget_changed(
            {
                file.path: (file.collector, scan.size, scan.matched, len(scan.tail), contexts.get(file.name))
                for file, (_, scan) in zip(files, scanned, strict=True)
            }
        )
        return ScannedJob(
            self.catalog,
            self.literals,
            scanned,
            len(files),
            sum(file.position for file in files),
            source_contexts=contexts,
            readings=self._last_extractions,
        )

    def source_head(self, file: FollowedFile) -> SourceContext:
        """Return the source head of a file.

        Reads it again only when the file has grown much, because that takes as long as scanning a megabyte.
        """
        if file.source_head is None or _is_stale(file):
            scan = ScanResult((), file.position, HeldEdges(self._head(file), self.tail(file, TAIL)))
            file.source_head, file.head_length = (
                make_context(file.name, scan, guess_year([(file.source, scan)]), find_root(self.paths, {file.name})),
                file.position,
            )
        return file.source_head

    def tail(self, file: FollowedFile, length: int) -> bytes:
        """Return the last `length` bytes of the scanned lines of a file."""
        return _read_bytes(file.path, max(0, file.position - length), min(length, file.position))

    def _read(self, file: FollowedFile, now: float) -> bool:
        """Scan what was added to a file. A path that now leads to another file is left to `find_files`."""
        try:
            status = os.stat(file.path)
        except OSError:
            return False
        if (status.st_dev, status.st_ino) != file.identity:
            return False
        if status.st_size < file.position:
            file.collector = Collector(self._matcher, writer_key, self._generic)
            file.position = file.line_start = file.overlap = 0
            file.first_bytes, file.source_head = b"", None
            file.counted_hits = file.counted_kinds = 0
            file.starts_behind = False
        is_unchanged = status.st_size == file.size and not file.is_behind
        is_unfinished = is_unchanged and file.position < file.size and now - file.grown_at >= _UNFINISHED_LINE_WAIT
        if is_unchanged and not is_unfinished:
            return False
        if status.st_size != file.size:
            file.size, file.grown_at = status.st_size, now
        before = file.position
        try:
            self._feed(file, final=is_unfinished)
        except OSError:
            return False
        return file.position > before

    def _feed(self, file: FollowedFile, *, final: bool) -> None:
        feeder = LineFeeder(file.collector, self._buffer, file.position)
        feeder.line_start, feeder.overlap = file.line_start, file.overlap
        stop = min(file.size, file.position + _MAX_TURN)
        position = file.position
        fd = os.open(file.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            while position < stop:
                with feeder.free_space() as free_space:
                    count = os.preadv(fd, [free_space[: stop - position]], position)
                if not count:
                    break
                position += count
                feeder.advance(count)
            if final:
                feeder.advance(0, final=True)
        finally:
            os.close(fd)
        file.is_behind = stop < file.size
        file.position, file.line_start, file.overlap = feeder.base, feeder.line_start, feeder.overlap

    def _head(self, file: FollowedFile) -> bytes:
        if len(file.first_bytes) < HEAD:
            file.first_bytes = _read_bytes(file.path, 0, min(HEAD, file.position))
        return file.first_bytes

    def _scan_result(self, file: FollowedFile, last: int) -> ScanResult:
        hits, matched = list_hits(file.collector.groups)
        edges = HeldEdges(self._head(file), self.tail(file, last))
        return ScanResult(hits, file.position, edges, file.collector.sampled, matched)


def _start_behind(file: FollowedFile, readings: EarlierReadings) -> None:
    """Let a new file begin behind the complete spans that an earlier ingest or watch has read."""
    with contextlib.closing(LocalFile(file.path)) as opened:
        size = opened.size()
        known = readings.find_spans(file.path, size)
        if known is None or not known.complete.digests:
            return
        start = find_line_behind(opened, len(known.complete.digests) * SPAN, size + 1)
    if start is not None:
        file.position, file.line_start, file.starts_behind = start, start, True
        file.collector.groups, file.collector.sampled = known.complete.groups, known.complete.sampled


def _is_stale(file: FollowedFile) -> bool:
    return file.position >= (2 if file.head_length < HEAD + TAIL else 16) * file.head_length


def _hit_count(file: FollowedFile) -> int:
    return sum(lines.count for lines in file.collector.groups.values())


def _identity(path: str | os.PathLike[str]) -> Identity | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _read_bytes(path: str, offset: int, length: int) -> bytes:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.pread(fd, length, offset)
    finally:
        os.close(fd)
