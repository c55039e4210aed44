"""The headers that lie before each member of a zip archive (PKWARE APPNOTE 4.3.7), for reading it without its
directory.
"""

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
class Entry:
    """A member as its header tells it. Sizes and checksum are None when they follow the data. `mode` as in stat, 0 if
    not told.
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
    """Go to the next header of a member or of the directory, and give its four bytes; nothing at the end."""
    while True:
        window = stream.peek(_WINDOW)
        found = _SIGNATURE.search(window)
        if found:
            stream.read(found.start())
            return found.group()
        stream.read(max(len(window) - 3, 0) if len(window) == _WINDOW else len(window))
        if len(window) < _WINDOW:
            return b""


def read_header(stream: ByteStream) -> Entry | None:
    """The header at which the stream stands, leaving it at the data; None (and some bytes further on) when there is
    none.
    """
    block = stream.read(_HEADER.size)
    if len(block) < _HEADER.size or not block.startswith(LOCAL):
        return None
    _, _, flags, method, time, date, crc, packed, size, name_length, extra_length = _HEADER.unpack(block)
    name, extra = stream.read(name_length), stream.read(extra_length)
    if len(extra) < extra_length:
        return None
    later = bool(flags & DESCRIPTOR) and not packed
    if _UNKNOWN in (packed, size):
        size, packed = _zip64(extra, size, packed)
        later = later or (bool(flags & DESCRIPTOR) and not packed)
    shown = name.decode("utf-8" if flags & UTF8 or _is_utf8(name) else "cp437", "replace")
    if later:
        return Entry(shown, method, flags, None, None, None, _time(date, time))
    return Entry(shown, method, flags, crc, packed, size, _time(date, time))


def _zip64(extra: bytes, size: int, packed: int) -> tuple[int, int]:
    """Sizes beyond 4 GiB, from the extra field 1 (APPNOTE 4.5.3)."""
    at = 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<HH", extra, at)
        if kind == 1:
            far = [
                int.from_bytes(extra[begin : begin + 8], "little") for begin in range(at + 4, at + 4 + length - 7, 8)
            ]
            size = far.pop(0) if size == _UNKNOWN and far else size
            packed = far.pop(0) if packed == _UNKNOWN and far else packed
        at += 4 + length
    return size, packed


def _is_utf8(name: bytes) -> bool:
    try:
        name.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _time(date: int, time: int) -> float | None:
    """A DOS date and time, which has no zone, read as UTC."""
    try:
        return float(
            calendar.timegm(
                (1980 + (date >> 9), date >> 5 & 15, date & 31, time >> 11, time >> 5 & 63, (time & 31) * 2, 0, 0, 0)
            )
        )
    except (ValueError, OverflowError):
        return None
