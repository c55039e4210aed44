"""Zip archives, by their directory at the end or (when that is missing or absurd) by walking from member to member.

The standard library reads the directory; the bytes are read here, so that a wrong checksum costs a warning and not the
text.
"""

from __future__ import annotations

import calendar
import contextlib
import stat
import struct
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from typing import IO, TYPE_CHECKING, cast

from triage.sources import names, zip_walk
from triage.sources.bytestream import ByteStream, Damage, FileStream, Memory
from triage.sources.engines import Engine, bzip2_engine, deflate_engine, lzma_engine, zstd_engine
from triage.sources.inflate import Inflated
from triage.sources.interface import Item, Opened
from triage.sources.views import Checked, Slice
from triage.sources.zip_walk import ENCRYPTED, END_MARK, UTF8, Entry

if TYPE_CHECKING:
    from triage.sources.expand import Expansion

_DIRECTORY = 64 << 20
"""Bytes of directory that are read into memory (about half a million members)."""
_NESTED = 64 << 20
"""Bytes of a zip inside another archive that are held in memory to read its directory; a larger one is walked."""
_END = 22 + 20 + 56 + 65_535
"""Bytes at the end within which the records that end an archive lie."""


class Zip:
    """Each regular member of a zip archive, in the order of its directory."""

    kinds = frozenset({"zip"})

    def read(self, item: Item, way: Expansion) -> Iterator[Opened]:
        """Yield the members' sources; afterwards say what was damaged or left out."""
        if way.too_deep(item):
            return
        stream = item.stream
        if not isinstance(stream, FileStream) and len(whole := stream.peek(_NESTED)) < _NESTED:
            stream = Memory(whole)
        infos = directory(stream)
        if infos is None:
            yield from self._walked(item, stream, way)
        elif _is_checkpoint(infos):
            way.notes.add("skipped", item.name, "skipped, because it is a PyTorch checkpoint, not a log")
        else:
            yield from self._listed(item, stream, infos, way)

    def _listed(self, item: Item, stream: ByteStream, infos: list[zipfile.ZipInfo], way: Expansion) -> Iterator[Opened]:
        for info in infos:
            if not way.member(item):
                return
            entry = _entry(info)
            stream.seek(max(0, info.header_offset))
            if not zip_walk.read_header(stream):
                way.notes.add(
                    "corrupt", shown(item, entry), "skipped, because there is no member where the directory says"
                )
            else:
                yield from _member(item, entry, stream, way)
            if way.over:
                return

    def _walked(self, item: Item, stream: ByteStream, way: Expansion) -> Iterator[Opened]:
        """Members by their own headers. What a link is cannot be told: its target comes as a short text."""
        ended = False
        while found := zip_walk.next_signature(stream):
            if found != zip_walk.LOCAL:
                ended = True
                break
            entry = zip_walk.read_header(stream)
            if entry is None or not way.member(item):
                break
            start = stream.tell()
            if entry.packed is None and not entry.method:
                way.notes.add(
                    "skipped",
                    shown(item, entry),
                    "skipped, because where it ends is told only in the archive's lost directory",
                )
                continue
            yield from _member(item, entry, stream, way)
            if way.over:
                return
            if entry.packed is not None:
                stream.seek(start + entry.packed)
        if not item.stream.damage and (stream.seekable() or not ended):
            way.report(
                item.name,
                Damage(
                    "truncated-archive", "its directory is missing or damaged: what members could be found were read"
                ),
            )


def shown(item: Item, entry: Entry) -> str:
    """The member's name as the user sees it."""
    return f"{item.name}!/{names.member(entry.name)}"


def directory(stream: ByteStream) -> list[zipfile.ZipInfo] | None:
    """The directory of an archive that can be read at any offset; None when there is none, or one too large to hold."""
    if not stream.seekable():
        return None
    try:
        if _directory_size(stream) > _DIRECTORY:
            return None
        stream.seek(0)
        with zipfile.ZipFile(cast(IO[bytes], stream)) as archive:
            infos = archive.infolist()
        stream.seek(0)
        # In an archive that was cut off, the end of an empty directory can stand in what a member holds.
        return None if not infos and stream.read(4) == b"PK\x03\x04" else infos
    except (zipfile.BadZipFile, NotImplementedError, struct.error, ValueError, OSError, OverflowError, EOFError):
        return None
    finally:
        stream.seek(0)


def _directory_size(stream: ByteStream) -> int:
    """Bytes of directory that the end of the archive claims."""
    stream.seek(max(0, stream.seek(0, 2) - _END))
    tail = stream.read()
    end, end64 = tail.rfind(b"PK\5\6"), tail.rfind(b"PK\6\6")
    size = int.from_bytes(tail[end + 12 : end + 16], "little") if end >= 0 else 0
    if end64 < 0:
        return size
    size64 = int.from_bytes(tail[end64 + 40 : end64 + 48], "little")
    return size64 if size == 0xFFFFFFFF else max(size, size64)


def _entry(info: zipfile.ZipInfo) -> Entry:
    name = info.orig_filename
    if not info.flag_bits & UTF8:
        with contextlib.suppress(UnicodeError):
            name = name.encode("cp437").decode("utf-8")  # many tools write UTF-8 without saying so
    try:
        mtime = float(calendar.timegm((*info.date_time, 0, 0, 0)))
    except (ValueError, OverflowError):
        mtime = None
    mode = info.external_attr >> 16
    return Entry(name, info.compress_type, info.flag_bits, info.CRC, info.compress_size, info.file_size, mtime, mode)


def _is_checkpoint(infos: list[zipfile.ZipInfo]) -> bool:
    """torch.save's layout: one folder with data.pkl and version (torch/csrc/jit/serialization)."""
    last = {info.filename.rsplit("/", 1)[-1] for info in infos[:100] if info.filename.count("/") == 1}
    return "data.pkl" in last and any(info.filename.endswith("/version") for info in infos[-100:])


def _member(item: Item, entry: Entry, stream: ByteStream, way: Expansion) -> Iterator[Opened]:
    """The sources of the member at whose data `stream` stands."""
    name = shown(item, entry)
    if entry.name.endswith("/"):
        return
    if stat.S_ISLNK(entry.mode):
        way.notes.add("special-member", name, "skipped, because it is a link, not a file")
        return
    if entry.flags & ENCRYPTED:
        way.notes.add(
            "encrypted",
            name,
            "skipped, because it is encrypted; unpack the archive with its password and give the directory",
        )
        return
    packed = stream if entry.packed is None else Slice(stream, entry.packed)
    opened = _unpacked(entry, packed, way)
    if isinstance(opened, str):
        way.notes.add("skipped", name, f"skipped, because {opened}; unpack the archive first")
        return
    if entry.crc is not None:
        opened = Checked(opened, entry.crc, None if entry.method else way.spend)
    inner = way.inside(
        item, opened, name=name, size=entry.size, mtime=entry.mtime, archives=item.archives + 1, layers=0
    )
    try:
        yield from way.expand(inner)
    finally:
        if entry.packed is None and isinstance(opened, Inflated):
            opened.drain()
            stream.unread(opened.rest())
        if not item.stream.damage:
            way.report(name, opened.damage)


def _unpacked(entry: Entry, packed: ByteStream, way: Expansion) -> ByteStream | str:
    """The member's text, or why it cannot be had. Method numbers: PKWARE APPNOTE 4.4.5."""
    engine: Engine
    try:
        match entry.method:
            case 0:
                return packed
            case 8:
                engine = deflate_engine()
            case 12:
                engine = bzip2_engine(several=False)
            case 14:
                head = packed.read(9)  # version, length of the properties (always 5), the properties
                engine = lzma_engine(head[4:].ljust(5, b"\0"), None if entry.flags & END_MARK else entry.size)
            case 93:
                engine = replace(zstd_engine(), several=False)
            case 9:
                return "it is compressed with Deflate64, as Windows does for large files"
            case other:
                return f"it is compressed with method {other}"
    except ImportError as error:
        return f"{error.name} is not installed"
    return Inflated(packed, engine, way.spend)
