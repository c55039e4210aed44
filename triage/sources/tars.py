"""Read tar archives forward, once: without seeking back, without a list of members, without opening names.

The standard library parses the headers; the bytes are read here, so that damage costs as little as possible. After a
bad header the next good one is searched, as `tar -i` does.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterator, Sequence
from typing import Any, cast

from triage.sources.bytestream import ByteStream, Damage
from triage.sources.expand import Expansion
from triage.sources.interface import OpenedSource, ReaderInput, member_name, printable_name
from triage.sources.stream_views import SliceStream, SparseStream

_BLOCK = 512
_MAX_HEADER_BYTES = 4 << 20
"""Bytes of headers (long names, PAX records, maps of holes) that one member may have."""
_MAX_RESYNC_BYTES = 64 << 20
"""Bytes looked through for the next header after damage."""


class _Headers:
    """The stream that `tarfile` reads headers from, with a limit of bytes per member."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self.left = _MAX_HEADER_BYTES

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
    """A TarInfo that records why there is no next member, which `TarFile.next` hides."""

    @classmethod
    def fromtarfile(cls, tarfile: Any) -> Any:
        try:
            return super().fromtarfile(tarfile)
        except Exception as error:
            tarfile.why = type(error).__name__
            raise


class _Archive(tarfile.TarFile):
    """A TarFile that reads its first member on request, not when it is created."""

    tarinfo = _Info
    why = ""
    is_ready = False
    members: list[tarfile.TarInfo]

    def next(self) -> tarfile.TarInfo | None:
        return super().next() if self.is_ready else None


class _Members:
    """The members of a tar stream, one by one, each with the stream at its data."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self._headers = _Headers(stream)
        self._archive = _Archive(fileobj=cast(Any, self._headers), mode="r", errors="surrogateescape", encoding="utf-8")
        self._archive.is_ready = True
        self.has_end_mark = False
        self.damage: Damage | None = None

    def __iter__(self) -> Iterator[tarfile.TarInfo]:
        while True:
            info = self._next()
            if info is not None:
                self.has_end_mark = False
                yield info
            elif not self._resync():
                return

    def _next(self) -> tarfile.TarInfo | None:
        archive = self._archive
        archive.members = []  # or they would all be kept
        if len(archive.pax_headers) > 1000:
            archive.pax_headers = {}
        self._headers.left = _MAX_HEADER_BYTES
        archive.why = ""
        try:
            info = archive.next()
        except (tarfile.TarError, ValueError, OverflowError, RecursionError, IndexError, KeyError, OSError) as error:
            # Only a header can be at fault: the stream below does not raise.
            self._record_damage(str(error))
            return None
        if info is None:
            self.has_end_mark = self.has_end_mark or archive.why == "EOFHeaderError"
            if archive.why in ("InvalidHeaderError", "TruncatedHeaderError"):
                self._record_damage("bad header")
        elif info.size < 0 or archive.offset < self._stream.tell():
            self._record_damage("negative size")
            return None
        return info

    def _record_damage(self, why: str) -> None:
        if not self.has_end_mark and not self.damage:
            self.damage = Damage(
                "corrupt", f"the archive is damaged at byte {self._stream.tell():,} ({why}); members may be missing"
            )

    def _resync(self) -> bool:
        """Go to the next block that looks like a header (after damage, or where archives were concatenated)."""
        stream = self._stream
        for _ in range(_MAX_RESYNC_BYTES // _BLOCK):
            block = stream.read(_BLOCK)
            if len(block) < _BLOCK:
                return False
            if block[257:262] == b"ustar":
                stream.unread(block)
                self._archive.offset = stream.tell()
                return True
        return False


class TarReader:
    """Yields each regular member of a tar archive, in order."""

    kinds = frozenset({"tar"})

    def read(self, item: ReaderInput, expansion: Expansion) -> Iterator[OpenedSource]:
        """Yield the sources of the members; then report damage and what was left out."""
        if expansion.refuse_if_too_deep(item):
            return
        members = _Members(item.stream)
        try:
            for info in members:
                if not expansion.count_member(item):
                    break
                yield from self._member(item, info, expansion)
                if expansion.is_over:
                    break
        finally:
            if not expansion.is_over and not item.stream.damage:
                expansion.report_damage(item.name, members.damage or _missing_end_damage(members))

    def _member(self, item: ReaderInput, info: tarfile.TarInfo, expansion: Expansion) -> Iterator[OpenedSource]:
        if info.isdir():
            return
        name = expansion.name_member(item, member_name(info.name))
        if not info.isreg():
            expansion.warnings.add(
                "special-member", name, f"skipped, because it is {_describe_special(info)}, not a file"
            )
            return
        stream = _member_stream(item.stream, info, expansion)
        mtime = float(info.mtime) if info.mtime else None
        inner = expansion.input_for(
            item, stream, name=name, size=info.size, mtime=mtime, archives=item.archives + 1, layers=0
        )
        try:
            yield from expansion.expand(inner)
        finally:
            if not item.stream.damage:  # else the whole archive ends here, which is reported once
                expansion.report_damage(name, stream.damage)


def _member_stream(parent: ByteStream, info: tarfile.TarInfo, expansion: Expansion) -> ByteStream:
    """Return the bytes of the member whose data the parent is at."""
    if info.sparse is None:
        return SliceStream(parent, info.size)
    holes = cast(Sequence[tuple[int, int]], info.sparse)  # (offset, length) pairs, whatever the stubs say
    runs = [run for run in holes if run[1]]
    return SparseStream(
        SliceStream(parent, sum(length for _, length in runs if length > 0)), runs, info.size, expansion.spend
    )


def _missing_end_damage(members: _Members) -> Damage | None:
    if members.has_end_mark:
        return None
    return Damage("truncated-archive", "the archive has no end mark: it was cut off, and members may be missing")


def _describe_special(info: tarfile.TarInfo) -> str:
    if info.issym() or info.islnk():
        return f"a link to {printable_name(info.linkname)}"
    return "a FIFO" if info.isfifo() else "a device" if info.isdev() else "of an unknown type"
