"""From one walked file to its sources: opens it, asks the readers in order, and keeps the caps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from triage.sources.bytestream import Damage
from triage.sources.classify import HEAD, classify
from triage.sources.interface import File, FileKind, Item, Limits, Opened, Warn, in_place
from triage.sources.notes import Notes

if TYPE_CHECKING:
    from triage.sources.bytestream import ByteStream


class Reader(Protocol):
    """Turns an item of certain kinds into sources, or into items for other readers (by `way.expand`)."""

    @property
    def kinds(self) -> frozenset[FileKind]:
        """The kinds this reader takes."""
        ...

    def read(self, item: Item, way: Expansion) -> Iterator[Opened]:
        """Yield the sources in `item`. A stream is valid only until the next source is asked for. Never raises for bad
        bytes.
        """
        ...


class Expansion:
    """The state of one top-level file being read: what it has cost so far, and whom to tell.

    `over` is set when a cap that concerns the whole file is reached: readers stop going on to the next member.
    """

    def __init__(self, file: File, readers: Sequence[Reader], limits: Limits, notes: Notes) -> None:
        self.file = file
        self.limits = limits
        self.notes = notes
        self.over = False
        self._readers = readers
        self._spent = 0
        self._members = 0

    def expand(self, item: Item) -> Iterator[Opened]:
        """The sources in `item`, by the first reader that takes its kind."""
        for reader in self._readers:
            if item.kind in reader.kinds:
                yield from reader.read(item, self)
                return

    def inside(self, item: Item, stream: ByteStream, **changes: object) -> Item:
        """The item that `stream`, found in `item`, is: classified by its first bytes."""
        kind, encoding = classify(stream.peek(HEAD))
        return item._replace(stream=stream, kind=kind, encoding=encoding, **changes)  # type: ignore[arg-type]

    def spend(self, produced: int) -> Damage | None:
        """Account for bytes made out of the file. Gives the reason to stop when a cap is reached."""
        self._spent += produced
        limits = self.limits
        if self._spent > limits.max_total_bytes:
            self.over = True
            return Damage(
                "too-large",
                f"stopped after {limits.max_total_bytes:,} decompressed bytes (max_total_bytes)",
                max(0, produced + limits.max_total_bytes - self._spent),
            )
        if self._spent > limits.ratio_floor_bytes and self._spent > limits.max_ratio * max(1, self.file.size):
            self.over = True
            return Damage(
                "bomb", f"stopped: {self.file.size:,} bytes expand to more than {self._spent:,} (max_ratio)", produced
            )
        return None

    def member(self, item: Item) -> bool:
        """Count a member of an archive; false when there have been too many."""
        self._members += 1
        if self._members > self.limits.max_members and not self.over:
            self.notes.add(
                "too-many-members",
                item.name,
                f"only the first {self.limits.max_members:,} members were read (max_members)",
            )
            self.over = True
        return not self.over

    def too_deep(self, item: Item) -> bool:
        """Whether `item` is an archive in more archives than allowed; says so."""
        if item.archives < self.limits.max_depth:
            return False
        self.notes.add(
            "nested-too-deep", item.name, f"skipped, because it lies in {item.archives} archives already; unpack one"
        )
        return True

    def report(self, name: str, damage: Damage | None) -> None:
        """Warn about a stream that ended early."""
        if damage:
            self.notes.add(damage.code, name, damage.message)


def expand(file: File, readers: Sequence[Reader], limits: Limits, warn: Warn) -> Iterator[Opened]:
    """The sources in a walked file. The file is opened only if its bytes do not lie there ready to be read."""
    source = in_place(file)
    if source:
        yield source, None
        return
    from triage.sources.bytestream import FileStream  # only what must be unpacked needs it

    notes = Notes(warn, about=file.name)
    try:
        stream = FileStream(file.path)
    except OSError as error:
        notes.add("unreadable", file.name, f"skipped, because it cannot be opened: {error.strerror}")
        return
    try:
        item = Item(file.name, file.kind, stream, file.size, file.mtime, file.encoding)
        yield from Expansion(file, readers, limits, notes).expand(item)
    finally:
        stream.close()
        notes.close()
