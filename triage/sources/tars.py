"""Tar archives, read forward once: no seeking back, no list of members kept, no name ever used to open a file.

The standard library finds the members; the bytes are read here, so that damage costs as little as it can. After a
header that
makes no sense the next one that does is looked for, as `tar -i` would.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

from triage.sources import names
from triage.sources.bytestream import ByteStream, Damage
from triage.sources.interface import Item, Opened
from triage.sources.views import Slice, Sparse

if TYPE_CHECKING:
    from triage.sources.expand import Expansion

_BLOCK = 512
_HEADERS = 4 << 20
"""Bytes of headers (long names, PAX records, maps of holes) that one member may have."""
_RESYNC = 64 << 20
"""Bytes looked through for the next header after damage."""


class _Headers:
    """What `tarfile` reads from: headers only, and not more than an allowance a member."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self.left = _HEADERS

    def read(self, size: int) -> bytes:
        if not 0 <= size <= self.left:
            raise tarfile.ReadError("absurdly long headers")
        self.left -= size
        return self._stream.read(size)

    def tell(self) -> int:
        return self._stream.tell()

    def seek(self, offset: int) -> None:
        self._stream.seek(offset)


class _Info(tarfile.TarInfo):
    """Remembers why there is no next member; `TarFile.next` keeps that to itself."""

    @classmethod
    def fromtarfile(cls, tarfile: Any) -> Any:
        try:
            return super().fromtarfile(tarfile)
        except Exception as error:
            tarfile.why = type(error).__name__
            raise


class _Archive(tarfile.TarFile):
    """A TarFile that reads its first member when asked to and not when made."""

    tarinfo = _Info
    why = ""
    ready = False
    members: list[tarfile.TarInfo]

    def next(self) -> tarfile.TarInfo | None:
        return super().next() if self.ready else None


class _Members:
    """The members of a tar stream, one by one, each with the stream standing at its data."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self._headers = _Headers(stream)
        self._archive = _Archive(fileobj=cast(Any, self._headers), mode="r", errors="surrogateescape", encoding="utf-8")
        self._archive.ready = True
        self.ended = False
        self.damage: Damage | None = None

    def __iter__(self) -> Iterator[tarfile.TarInfo]:
        while True:
            info = self._next()
            if info is not None:
                self.ended = False
                yield info
            elif not self._resync():
                return

    def _next(self) -> tarfile.TarInfo | None:
        archive = self._archive
        archive.members = []  # or they would all be kept
        if len(archive.pax_headers) > 1000:
            archive.pax_headers = {}
        self._headers.left = _HEADERS
        archive.why = ""
        try:
            info = archive.next()
        except (tarfile.TarError, ValueError, OverflowError, RecursionError, IndexError, KeyError, OSError) as error:
            # Only a header can be at fault: the stream below does not raise.
            self._broken(str(error))
            return None
        if info is None:
            self.ended = self.ended or archive.why == "EOFHeaderError"
            if archive.why in ("InvalidHeaderError", "TruncatedHeaderError"):
                self._broken("bad header")
        elif info.size < 0 or archive.offset < self._stream.tell():
            self._broken("negative size")
            return None
        return info

    def _broken(self, why: str) -> None:
        if not self.ended and not self.damage:
            self.damage = Damage(
                "corrupt", f"the archive is damaged at byte {self._stream.tell():,} ({why}); members may be missing"
            )

    def _resync(self) -> bool:
        """Go to the next block that looks like a header (after damage, or where archives were concatenated)."""
        stream = self._stream
        for _ in range(_RESYNC // _BLOCK):
            block = stream.read(_BLOCK)
            if len(block) < _BLOCK:
                return False
            if block[257:262] == b"ustar":
                stream.unread(block)
                self._archive.offset = stream.tell()
                return True
        return False


class Tar:
    """Each regular member of a tar archive, in order."""

    kinds = frozenset({"tar"})

    def read(self, item: Item, way: Expansion) -> Iterator[Opened]:
        """Yield the members' sources as they come; afterwards say what was damaged or left out."""
        if way.too_deep(item):
            return
        members = _Members(item.stream)
        try:
            for info in members:
                if not way.member(item):
                    break
                yield from self._member(item, info, way)
                if way.over:
                    break
        finally:
            if not way.over and not item.stream.damage:
                way.report(item.name, members.damage or _cut(members))

    def _member(self, item: Item, info: tarfile.TarInfo, way: Expansion) -> Iterator[Opened]:
        name = f"{item.name}!/{names.member(info.name)}"
        if info.isdir():
            return
        if not info.isreg():
            way.notes.add("special-member", name, f"skipped, because it is {_special(info)}, not a file")
            return
        stream = _data(item.stream, info, way)
        mtime = float(info.mtime) if info.mtime else None
        inner = way.inside(item, stream, name=name, size=info.size, mtime=mtime, archives=item.archives + 1, layers=0)
        try:
            yield from way.expand(inner)
        finally:
            if not item.stream.damage:  # else the whole archive is cut here, and that is told once
                way.report(name, stream.damage)


def _data(parent: ByteStream, info: tarfile.TarInfo, way: Expansion) -> ByteStream:
    """The bytes of the member at whose data the parent stands."""
    if info.sparse is None:
        return Slice(parent, info.size)
    holes = cast(Sequence[tuple[int, int]], info.sparse)  # (offset, length) pairs, whatever the stubs say
    runs = [run for run in holes if run[1]]
    return Sparse(Slice(parent, sum(length for _, length in runs if length > 0)), runs, info.size, way.spend)


def _cut(members: _Members) -> Damage | None:
    if members.ended:
        return None
    return Damage("truncated-archive", "the archive has no end mark: it was cut off, and members may be missing")


def _special(info: tarfile.TarInfo) -> str:
    if info.issym() or info.islnk():
        return f"a link to {names.printable(info.linkname)}"
    return "a FIFO" if info.isfifo() else "a device" if info.isdev() else "of an unknown type"
