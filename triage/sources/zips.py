"""Read zip archives by their directory at the end, or (when it is missing or absurd) from header to header.

The standard library parses the directory; the bytes are read here, so that a wrong checksum costs a warning and not
the text.
"""

from __future__ import annotations

import calendar
import contextlib
import stat
import struct
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import IO, cast

from triage.base.lazy_re import lazy_re
from triage.sources.bytestream import ByteStream, Damage, MemoryStream
from triage.sources.decompress import (
    CompressionFormat,
    DecompressedStream,
    bzip2_format,
    deflate_format,
    lzma_format,
    zstd_format,
)
from triage.sources.expand import Expansion
from triage.sources.interface import OpenedSource, ReaderInput, member_name
from triage.sources.stream_views import ChecksummedStream, SliceStream

LOCAL = b"PK\x03\x04"
ENCRYPTED, DESCRIPTOR, UTF8, END_MARK = 0x1, 0x8, 0x800, 0x2

_HEADER = struct.Struct("<4s5H3L2H")
_SIGNATURE = lazy_re(rb"PK(\x03\x04|\x01\x02|\x05\x06)")
_WINDOW = 64 * 1024
_UNKNOWN = 0xFFFFFFFF
_MAX_DIRECTORY_BYTES = 64 << 20
"""Bytes of directory that are read into memory (about half a million members)."""
_MAX_NESTED_BYTES = 64 << 20
"""Bytes of a zip inside another archive that are held in memory to read its directory; a larger one is walked."""
_END_RECORDS_BYTES = 22 + 20 + 56 + 65_535
"""Bytes at the end within which the records that end an archive lie."""


@dataclass(frozen=True, slots=True)
class ZipEntry:
    """A member as its header describes it.

    Sizes and checksum are None when they follow the data. `mode` is as in stat, 0 if unknown.
    """

    name: str
    method: int
    flags: int
    crc: int | None
    packed: int | None
    size: int | None
    mtime: float | None = None
    mode: int = 0


def next_signature(stream: ByteStream) -> bytes:
    """Go to the next header of a member or of the directory; return its four bytes, nothing at the end."""
    while True:
        window = stream.peek(_WINDOW)
        match = _SIGNATURE.search(window)
        if match:
            stream.read(match.start())
            return match.group()
        stream.read(max(len(window) - 3, 0) if len(window) == _WINDOW else len(window))
        if len(window) < _WINDOW:
            return b""


def read_header(stream: ByteStream) -> ZipEntry | None:
    """Read the header at the stream's position and leave the stream at the data.

    Returns None (some bytes further on) when there is no header.
    """
    block = stream.read(_HEADER.size)
    if len(block) < _HEADER.size or not block.startswith(LOCAL):
        return None
    _, _, flags, method, time, date, crc, packed, size, name_length, extra_length = _HEADER.unpack(block)
    name, extra = stream.read(name_length), stream.read(extra_length)
    if len(extra) < extra_length:
        return None
    sizes_follow = bool(flags & DESCRIPTOR) and not packed
    if _UNKNOWN in (packed, size):
        size, packed = _zip64(extra, size, packed)
        sizes_follow = sizes_follow or (bool(flags & DESCRIPTOR) and not packed)
    decoded_name = name.decode("utf-8" if flags & UTF8 or _is_utf8(name) else "cp437", "replace")
    if sizes_follow:
        return ZipEntry(decoded_name, method, flags, None, None, None, _time(date, time))
    return ZipEntry(decoded_name, method, flags, crc, packed, size, _time(date, time))


def _zip64(extra: bytes, size: int, packed: int) -> tuple[int, int]:
    """Return the sizes beyond 4 GiB from the extra field 1 (APPNOTE 4.5.3)."""
    at = 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<HH", extra, at)
        if kind == 1:
            large_sizes = [
                int.from_bytes(extra[begin : begin + 8], "little") for begin in range(at + 4, at + 4 + length - 7, 8)
            ]
            size = large_sizes.pop(0) if size == _UNKNOWN and large_sizes else size
            packed = large_sizes.pop(0) if packed == _UNKNOWN and large_sizes else packed
        at += 4 + length
    return size, packed


def _is_utf8(name: bytes) -> bool:
    try:
        name.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _time(date: int, time: int) -> float | None:
    """Return a DOS date and time, which has no zone, read as UTC."""
    try:
        return float(
            calendar.timegm(
                (1980 + (date >> 9), date >> 5 & 15, date & 31, time >> 11, time >> 5 & 63, (time & 31) * 2, 0, 0, 0)
            )
        )
    except (ValueError, OverflowError):
        return None


class ZipReader:
    """Yields each regular member of a zip archive, in the order of its directory."""

    kinds = frozenset({"zip"})

    def read(self, item: ReaderInput, expansion: Expansion) -> Iterator[OpenedSource]:
        """Yield the sources of the members; then report damage and what was left out."""
        if expansion.refuse_if_too_deep(item):
            return
        stream = item.stream
        if not stream.seekable() and len(whole := stream.peek(_MAX_NESTED_BYTES)) < _MAX_NESTED_BYTES:
            stream = MemoryStream(whole)
        infos = read_directory(stream)
        if infos is None:
            yield from self._read_by_headers(item, stream, expansion)
        elif _is_checkpoint(infos):
            expansion.warnings.add("skipped", item.name, "skipped, because it is a PyTorch checkpoint, not a log")
        else:
            yield from self._read_by_directory(item, stream, infos, expansion)

    def _read_by_directory(
        self, item: ReaderInput, stream: ByteStream, infos: list[zipfile.ZipInfo], expansion: Expansion
    ) -> Iterator[OpenedSource]:
        for info in infos:
            if not expansion.count_member(item):
                return
            entry = _entry(info)
            stream.seek(max(0, info.header_offset))
            if not read_header(stream):
                expansion.warnings.add(
                    "corrupt",
                    display_name(item, entry),
                    "skipped, because the archive's directory gives a wrong position for it",
                )
            else:
                yield from _member(item, entry, stream, expansion)
            if expansion.is_over:
                return

    def _read_by_headers(self, item: ReaderInput, stream: ByteStream, expansion: Expansion) -> Iterator[OpenedSource]:
        """Read the members by their own headers, which do not mark links: a link's target is read as a short text."""
        ended = False
        while signature := next_signature(stream):
            if signature != LOCAL:
                ended = True
                break
            entry = read_header(stream)
            if entry is None or not expansion.count_member(item):
                break
            start = stream.tell()
            if entry.packed is None and not entry.method:
                expansion.warnings.add(
                    "skipped",
                    display_name(item, entry),
                    "skipped, because its size was only in the archive's directory, which is lost",
                )
                continue
            yield from _member(item, entry, stream, expansion)
            if expansion.is_over:
                return
            if entry.packed is not None:
                stream.seek(start + entry.packed)
        if not item.stream.damage and (stream.seekable() or not ended):
            message = "the archive's directory is missing or damaged; the members that could be found were read"
            expansion.report_damage(item.name, Damage("truncated-archive", message))


def display_name(item: ReaderInput, entry: ZipEntry) -> str:
    """Return the member's name as the user sees it."""
    return f"{item.name}!/{member_name(entry.name)}"


def read_directory(stream: ByteStream) -> list[zipfile.ZipInfo] | None:
    """Return the directory of an archive; None when there is none, it is too large, or the stream cannot seek."""
    if not stream.seekable():
        return None
    try:
        if _directory_size(stream) > _MAX_DIRECTORY_BYTES:
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
    """Return the directory's size in bytes, as the end of the archive claims it."""
    stream.seek(max(0, stream.seek(0, 2) - _END_RECORDS_BYTES))
    tail = stream.read()
    end, end64 = tail.rfind(b"PK\5\6"), tail.rfind(b"PK\6\6")
    size = int.from_bytes(tail[end + 12 : end + 16], "little") if end >= 0 else 0
    if end64 < 0:
        return size
    size64 = int.from_bytes(tail[end64 + 40 : end64 + 48], "little")
    return size64 if size == 0xFFFFFFFF else max(size, size64)


def _entry(info: zipfile.ZipInfo) -> ZipEntry:
    name = info.orig_filename
    if not info.flag_bits & UTF8:
        with contextlib.suppress(UnicodeError):
            name = name.encode("cp437").decode("utf-8")  # many tools write UTF-8 without saying so
    try:
        mtime = float(calendar.timegm((*info.date_time, 0, 0, 0)))
    except (ValueError, OverflowError):
        mtime = None
    mode = info.external_attr >> 16
    return ZipEntry(name, info.compress_type, info.flag_bits, info.CRC, info.compress_size, info.file_size, mtime, mode)


def _is_checkpoint(infos: list[zipfile.ZipInfo]) -> bool:
    """Whether it has torch.save's layout: one folder with data.pkl and version (torch/csrc/jit/serialization)."""
    last = {info.filename.rsplit("/", 1)[-1] for info in infos[:100] if info.filename.count("/") == 1}
    return "data.pkl" in last and any(info.filename.endswith("/version") for info in infos[-100:])


def _member(item: ReaderInput, entry: ZipEntry, stream: ByteStream, expansion: Expansion) -> Iterator[OpenedSource]:
    """Yield the sources of the member whose data `stream` is at."""
    if entry.name.endswith("/"):
        return
    name = expansion.name_member(item, member_name(entry.name))
    if refused := _refusal(entry):
        code, reason = refused
        expansion.warnings.add(code, name, f"skipped, because {reason}")
        return
    opened = _decompress(entry, stream if entry.packed is None else SliceStream(stream, entry.packed), expansion)
    if isinstance(opened, str):
        expansion.warnings.add("skipped", name, f"skipped, because {opened}; unpack the archive first")
        return
    if entry.crc is not None:
        opened = ChecksummedStream(opened, entry.crc, None if entry.method else expansion.spend)
    inner = expansion.input_for(
        item, opened, name=name, size=entry.size, mtime=entry.mtime, archives=item.archives + 1, layers=0
    )
    try:
        yield from expansion.expand(inner)
    finally:
        if entry.packed is None and isinstance(opened, DecompressedStream):
            opened.drain()
            stream.unread(opened.unused_input())
        if not item.stream.damage:
            expansion.report_damage(name, opened.damage)


def _refusal(entry: ZipEntry) -> tuple[str, str] | None:
    """Return the warning's code and reason for a member that is never read."""
    if stat.S_ISLNK(entry.mode):
        return "special-member", "it is a link, not a file"
    if entry.flags & ENCRYPTED:
        return "encrypted", "it is encrypted; unpack the archive with its password and give the directory"
    return None


def _decompress(entry: ZipEntry, packed: ByteStream, expansion: Expansion) -> ByteStream | str:
    """Return the member's text, or why it cannot be read. Method numbers: PKWARE APPNOTE 4.4.5."""
    compression: CompressionFormat
    try:
        match entry.method:
            case 0:
                return packed
            case 8:
                compression = deflate_format()
            case 12:
                compression = bzip2_format(multiple_frames=False)
            case 14:
                head = packed.read(9)  # version, length of the properties (always 5), the properties
                compression = lzma_format(head[4:].ljust(5, b"\0"), None if entry.flags & END_MARK else entry.size)
            case 93:
                compression = replace(zstd_format(), multiple_frames=False)
            case 9:
                return "it is compressed with Deflate64, as Windows does for large files"
            case other:
                return f"it is compressed with method {other}"
    except ImportError as error:
        return f"{error.name} is not installed"
    return DecompressedStream(packed, compression, expansion.spend)
