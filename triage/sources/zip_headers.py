"""Read the header before each member of a zip archive (PKWARE APPNOTE 4.3.7), without the directory."""

from __future__ import annotations

import calendar
import struct
from dataclasses import dataclass

from triage.base.lazy_re import lazy_re
from triage.sources.bytestream import ByteStream

LOCAL = b"PK\x03\x04"
ENCRYPTED, DESCRIPTOR, UTF8, END_MARK = 0x1, 0x8, 0x800, 0x2

_HEADER = struct.Struct("<4s5H3L2H")
_SIGNATURE = lazy_re(rb"PK(\x03\x04|\x01\x02|\x05\x06)")
_WINDOW = 64 * 1024
_UNKNOWN = 0xFFFFFFFF


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
