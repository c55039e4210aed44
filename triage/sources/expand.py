"""Expand a file into its sources: open it, choose the reader for each part, apply the limits.

The readers here need no unpacking; those of compressed files and archives are imported at the first file of their kind.
"""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import BinaryIO, Protocol, cast

from triage.base.addresses import is_address
from triage.model.evidence import Source
from triage.sources.bytestream import ByteStream, Damage
from triage.sources.classify import HEAD, classify
from triage.sources.interface import (
    FRAMED,
    KINDS,
    NUMBERED,
    File,
    FileKind,
    Limits,
    OpenedSource,
    ReaderInput,
    Warn,
    WarningLimiter,
    is_wide,
    source_in_place,
)

ADVICE: dict[FileKind, str] = {
    "lz4-legacy": "it is compressed with lz4 in its oldest format; unpack it first: lz4 -d FILE",
    "7z": "it is a 7-Zip archive; unpack it first: 7z x FILE",
    "rar": "it is a RAR archive; unpack it first: unrar x FILE",
    "compress": "it is compressed with compress (.Z); unpack it first: gzip -d FILE",
    "journal": "it is a binary systemd journal; export it first: "
    "journalctl --file FILE -o short-iso-precise > journal.log",
}
"""Why a file of this kind is skipped, and what to do."""


class Reader(Protocol):
    """Turns input of certain kinds into sources, or into inputs for other readers (by `expansion.expand`)."""

    @property
    def kinds(self) -> frozenset[FileKind]:
        """The kinds that this reader takes."""
        ...

    def read(self, item: ReaderInput, expansion: Expansion) -> Iterator[OpenedSource]:
        """Yield the sources in the input.

        A stream is valid only until the next source is requested. Never raises because of bad bytes.
        """
        ...


class Expansion:
    """The expansion of one top-level file: its cost so far, and where to report.

    `is_over` is set when a limit of the whole file is reached: readers stop before the next member.
    """

    def __init__(self, file: File, readers: Sequence[Reader], limits: Limits, warnings: WarningLimiter) -> None:
        self.file = file
        self.limits = limits
        self.warnings = warnings
        self.is_over = False
        self._readers = readers
        self._spent = 0
        self._members = 0
        self._names: Counter[str] = Counter()

    def expand(self, item: ReaderInput) -> Iterator[OpenedSource]:
        """Yield the sources in `item`, by the first reader that takes its kind."""
        for reader in self._readers:
            if item.kind in reader.kinds:
                yield from reader.read(item, self)
                return

    def input_for(self, item: ReaderInput, stream: ByteStream, **changes: object) -> ReaderInput:
        """Return the input for a stream found in `item`, classified by its first bytes."""
        kind, encoding = classify(stream.peek(HEAD))
        return item._replace(stream=stream, kind=kind, encoding=encoding, **changes)  # type: ignore[arg-type]

    def spend(self, produced: int) -> Damage | None:
        """Count bytes produced from the file; return the reason to stop when a limit is reached."""
        self._spent += produced
        limits = self.limits
        if self._spent > limits.max_total_bytes:
            self.is_over = True
            return Damage(
                "too-large",
                f"stopped after {limits.max_total_bytes:,} decompressed bytes (max_total_bytes)",
                max(0, produced + limits.max_total_bytes - self._spent),
            )
        if self._spent > limits.ratio_floor_bytes and self._spent > limits.max_ratio * max(1, self.file.size):
            self.is_over = True
            return Damage(
                "bomb", f"stopped: {self.file.size:,} bytes expand to more than {self._spent:,} (max_ratio)", produced
            )
        return None

    def count_member(self, item: ReaderInput) -> bool:
        """Count a member of an archive; return False when there are too many."""
        self._members += 1
        if self._members > self.limits.max_members and not self.is_over:
            self.warnings.add(
                "too-many-members",
                item.name,
                f"only the first {self.limits.max_members:,} members were read (max_members)",
            )
            self.is_over = True
        return not self.is_over

    def name_member(self, item: ReaderInput, name: str) -> str:
        """Return the name of a member of an archive; the second of one name is `archive!/2/name`.

        An archive may hold several members of one name. Without names of their own, one text would replace another.
        """
        first = path = f"{item.name}!/{name}"
        while path in self._names:
            self._names[first] += 1
            path = f"{item.name}!/{self._names[first]}/{name}"
        self._names[path] = 1
        return path

    def refuse_if_too_deep(self, item: ReaderInput) -> bool:
        """Report an archive that is nested in more archives than allowed; return whether it is."""
        if item.archives < self.limits.max_depth:
            return False
        self.warnings.add(
            "nested-too-deep",
            item.name,
            f"skipped, because archives are nested more than {self.limits.max_depth} deep; unpack the outer one first",
        )
        return True

    def report_damage(self, name: str, damage: Damage | None) -> None:
        """Warn about a stream that ended early."""
        if damage:
            self.warnings.add(damage.code, name, damage.message)


def expand(file: File, readers: Sequence[Reader], limits: Limits, warn: Warn) -> Iterator[OpenedSource]:
    """Yield the sources in a file, which is opened only if its bytes cannot be read in place."""
    source = None if file.is_sparse else source_in_place(file)
    if source:
        yield source, None
        return
    warnings = WarningLimiter(warn, source_name=file.name)
    try:
        stream = open_stream(file.path, skips_holes=file.is_sparse)
    except OSError as error:
        warnings.add("unreadable", file.name, f"skipped, because it cannot be opened: {error.strerror}")
        return
    try:
        yield from Expansion(file, readers, limits, warnings).expand(
            ReaderInput(file.name, file.kind, stream, file.size, file.mtime, file.encoding)
        )
    finally:
        stream.close()
        warnings.close()


def open_stream(path: str, *, skips_holes: bool = False) -> ByteStream:
    """Open the bytes of a file, or of an object that was found at an address. Raises OSError."""
    if is_address(path):
        from triage.sources.remote_files import ObjectStream

        return ObjectStream(path)
    from triage.sources.bytestream import FileStream  # only what must be unpacked needs it

    return FileStream(path, skips_holes=skips_holes)


class LazyReader:
    """Stands for the reader `name` in `module`; `kinds` repeats its kinds (a test compares them)."""

    def __init__(self, module: str, name: str, kinds: frozenset[FileKind]) -> None:
        self.module = module
        self.name = name
        self.kinds = kinds

    def load(self) -> Reader:
        """Return the reader itself."""
        reader: Reader = getattr(importlib.import_module(self.module), self.name)()
        return reader

    def read(self, item: ReaderInput, expansion: Expansion) -> Iterator[OpenedSource]:
        """Yield the sources of the reader."""
        return self.load().read(item, expansion)


class PlainReader:
    """Yields one source for one input, with its text converted to UTF-8."""

    kinds = frozenset(KINDS)

    def read(self, item: ReaderInput, expansion: Expansion) -> Iterator[OpenedSource]:
        """Yield the one source."""
        from triage.sources.stream_views import CappedStream  # most plain files are read in place

        stream: ByteStream = CappedStream(item.stream, expansion.limits.max_member_bytes)
        size = item.size
        if item.encoding and is_wide(item.encoding):
            stream, size = _decode(stream, item.encoding), None
        try:
            yield Source(item.name, KINDS[item.kind], size, None, item.mtime), cast(BinaryIO, stream)
        finally:
            # Damage of the stream below is reported by the reader that created it.
            if stream.damage is not item.stream.damage:
                expansion.report_damage(item.name, stream.damage)


def _decode(stream: ByteStream, encoding: str) -> ByteStream:
    """Return the stream as UTF-8 without numbers and frames of its lines."""
    if encoding == NUMBERED:
        from triage.sources.line_numbers import UnnumberedStream

        return UnnumberedStream(stream)
    if encoding == FRAMED:
        from triage.sources.line_frames import UnframedStream

        return UnframedStream(stream)
    from triage.sources.stream_views import TranscodedStream

    return TranscodedStream(stream, encoding)


class UnsupportedReader:
    """Warns and yields nothing."""

    kinds = frozenset(ADVICE)

    def read(self, item: ReaderInput, expansion: Expansion) -> Iterator[OpenedSource]:
        """Warn why the input is skipped."""
        expansion.warnings.add("skipped", item.name, f"skipped, because {ADVICE[item.kind]}")
        yield from ()
