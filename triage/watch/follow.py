"""Files that grow: what was added to each since the last look, through the same gate and the same keeping as `triage
ingest`.

A file is known by its device and inode, so that a rotation (`train.log` becomes `train.log.1`, a new `train.log` comes)
loses and repeats
nothing. A file that became shorter was emptied and starts anew. Of each file the place and its kept hits are
remembered, never its text.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field

from triage import evidence, sources
from triage.base.errors import InputError
from triage.base.options import Options
from triage.catalog.load import load
from triage.catalog.setting import configured
from triage.evidence.collect import Opening, opening_of, year_of
from triage.intake import Intake, writer_key
from triage.model.evidence import Source
from triage.scan.gate import build
from triage.scan.interface import HEAD, TAIL, Scanned
from triage.scan.lines import Collector, merge
from triage.scan.spans import Feeder
from triage.sources.interface import in_place
from triage.stages import Seen

_BUFFER = 1 << 20
_TURN = 1 << 23  # bytes of one file before the others have their turn
_REST = 1.0  # seconds without growth after which a last line without its end is read as it stands
_LOST = 600.0  # seconds for which a file that no name leads to any more is kept
_KINDS = 20_000  # kinds of hit lines of one file, beyond which writers are no longer told apart
_LAST, _ALL_LAST = (
    1 << 12,
    1 << 21,
)  # bytes of the last lines of each file, and of all together, that a diagnosis of a running job looks at
_FEW = 4  # ranks that may share a file whose last lines are cut so

Identity = tuple[int, int]


@dataclass(slots=True)
class Growing:
    """One file that is followed. `base` to `place` lies what is read and not yet looked at (an unfinished line)."""

    source: Source
    identity: Identity
    collector: Collector
    place: int = 0
    line_start: int = 0
    fresh: int = 0
    size: int = 0
    behind: bool = False
    grown: float = 0.0
    gone: float | None = None
    head: bytes = b""
    opening: Opening | None = None
    opened: int = 0  # how long it was when that was told
    heard: int = 0  # up to where its steps were heard
    writers: int = 1  # ranks that were heard in one piece of it

    @property
    def name(self) -> str:
        return self.source.name

    @property
    def path(self) -> str:
        return self.source.path or ""


@dataclass(frozen=True, slots=True)
class Growth:
    """What one look found: the files that grew, and whether any line was hit of a kind that its file had not held yet,
    or at all.
    """

    bytes: int = 0
    grown: tuple[Growing, ...] = ()
    hits: int = 0
    kinds: int = 0
    behind: bool = False


@dataclass
class Follower:
    """Follows all texts below `paths`. Files that are no text are left to `triage ingest` when the job is over."""

    paths: Sequence[str]
    options: Options = field(default_factory=Options)
    files: dict[Identity, Growing] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.catalog = load(self.options.catalogs, strict=bool(self.options.catalogs or configured()))
        forms, self.literals = evidence.sought(self.catalog.literals)
        self._generic = frozenset(range(len(evidence.TRIGGERS)))
        self._gate = build(forms, self.options.engine, self.catalog.windows).for_thread()
        self._buffer = bytearray(_BUFFER)

    def find(self, now: float) -> bool:
        """Look for new names and lost ones; is there one that was not followed yet? A directory may be empty, or not
        there yet.
        """
        try:
            found = sources.discover([path for path in self.paths if os.path.lexists(path)])
        except InputError:
            return False
        intake = Intake(found.files, self.paths)
        before = len(self.files)
        seen = set()
        for file in intake.files:
            source, identity = in_place(file) if file.kind == "text" else None, _identity(file.path)
            if source is None or identity is None:
                continue
            seen.add(identity)
            known = self.files.get(identity)
            if known is None:
                self.files[identity] = Growing(
                    source, identity, Collector(self._gate, writer_key, self._generic), grown=now
                )
            elif known.path != source.path and _identity(known.path) != identity:
                known.source = source
        self._forget(seen, now)
        return len(self.files) > before

    def _forget(self, seen: set[Identity], now: float) -> None:
        for identity, file in list(self.files.items()):
            file.gone = None if identity in seen else file.gone if file.gone is not None else now
            if file.gone is not None and now - file.gone > _LOST:
                del self.files[identity]

    def grow(self, now: float) -> Growth:
        """Read on in every file that is longer than it was, each for `_TURN` bytes at most."""
        count = hits = kinds = 0
        grown: list[Growing] = []
        behind = False
        for file in list(self.files.values()):
            before = file.place
            matched, known = sum(kept.count for kept in file.collector.kinds.values()), len(file.collector.kinds)
            if not self._read(file, now):
                continue
            if len(file.collector.kinds) > _KINDS:
                file.collector.writer = _anybody
            count += max(0, file.place - before)
            kinds += len(file.collector.kinds) - known
            hits += sum(kept.count for kept in file.collector.kinds.values()) - matched
            behind |= file.behind
            grown.append(file)
        return Growth(count, tuple(grown), hits, kinds, behind)

    def seen(self) -> Seen:
        """What `pipeline.look` needs: all files as far as they were read, sorted by name. Of very many the last lines
        are fewer.
        """
        files = sorted((file for file in self.files.values() if file.place), key=lambda file: file.name)
        last = max(_LAST, min(TAIL, _ALL_LAST // max(1, len(files))))
        scanned = [(file.source, self._scanned(file, last if file.writers <= _FEW else TAIL)) for file in files]
        openings = {file.name: file.opening for file in files if file.opening and not _is_stale(file)}
        return Seen(
            self.catalog, self.literals, scanned, len(files), sum(file.place for file in files), openings=openings
        )

    def opening(self, file: Growing) -> Opening:
        """Told anew only of a file that has become much longer, for telling takes as long as scanning a megabyte."""
        if file.opening is None or _is_stale(file):
            scan = Scanned((), file.place, self._head(file), self.tail(file, TAIL))
            file.opening, file.opened = opening_of(file.name, scan, year_of([(file.source, scan)])), file.place
        return file.opening

    def tail(self, file: Growing, length: int) -> bytes:
        """The last bytes of whole lines of a file."""
        return _bytes(file.path, max(0, file.place - length), min(length, file.place))

    def _read(self, file: Growing, now: float) -> bool:
        """Feed what was added. A name that leads to another file by now is left to `find`; nobody reads the new file as
        the old.
        """
        try:
            status = os.stat(file.path)
        except OSError:
            return False
        if (status.st_dev, status.st_ino) != file.identity:
            return False
        if status.st_size < file.place:
            file.collector = Collector(self._gate, writer_key, self._generic)
            file.place = file.line_start = file.fresh = 0
            file.head, file.opening = b"", None
        same = status.st_size == file.size and not file.behind
        unfinished = same and file.place < file.size and now - file.grown >= _REST
        if same and not unfinished:
            return False
        if status.st_size != file.size:
            file.size, file.grown = status.st_size, now
        before = file.place
        try:
            self._feed(file, final=unfinished)
        except OSError:
            return False
        return file.place > before

    def _feed(self, file: Growing, *, final: bool) -> None:
        feeder = Feeder(file.collector, self._buffer, file.place)
        feeder.line_start, feeder.fresh = file.line_start, file.fresh
        stop = min(file.size, file.place + _TURN)
        position = file.place
        fd = os.open(file.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            while position < stop:
                with feeder.room() as room:
                    count = os.preadv(fd, [room[: stop - position]], position)
                if not count:
                    break
                position += count
                feeder.advance(count)
            if final:
                feeder.advance(0, final=True)
        finally:
            os.close(fd)
        file.behind = stop < file.size
        file.place, file.line_start, file.fresh = feeder.base, feeder.line_start, feeder.fresh

    def _head(self, file: Growing) -> bytes:
        if len(file.head) < HEAD:
            file.head = _bytes(file.path, 0, min(HEAD, file.place))
        return file.head

    def _scanned(self, file: Growing, last: int) -> Scanned:
        hits, matched = merge([file.collector.kinds])
        return Scanned(hits, file.place, self._head(file), self.tail(file, last), file.collector.sampled, matched)


def _is_stale(file: Growing) -> bool:
    return file.place >= (2 if file.opened < HEAD + TAIL else 16) * file.opened


def _anybody(line: bytes) -> bytes:
    return b""


def _identity(path: str | os.PathLike[str]) -> Identity | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _bytes(path: str, offset: int, length: int) -> bytes:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.pread(fd, length, offset)
    finally:
        os.close(fd)
