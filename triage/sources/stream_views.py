"""Streams over streams: a slice, one with holes, one with a checksum, one cut short, one in another encoding."""

from __future__ import annotations

import codecs
import zlib
from collections.abc import Callable, Iterator, Sequence

from triage.sources.bytestream import PIECE, ByteStream, Damage


class SliceStream(ByteStream):
    """The next `length` bytes of a parent. Ends with `damage` when the parent ends first."""

    def __init__(self, parent: ByteStream, length: int, code: str = "truncated-archive") -> None:
        super().__init__()
        self._parent = parent
        self._left = length
        self._code = code

    def _read_piece(self) -> bytes:
        if self._left <= 0:
            return b""
        piece = self._parent.read1(min(self._left, 4 * PIECE))
        self._left -= len(piece)
        if not piece:
            self.damage = self._parent.damage or Damage(
                self._code, f"the archive ends {self._left:,} bytes before this member does"
            )
        return piece


class SparseStream(ByteStream):
    """A member with holes: `runs` of (offset, length) lie one after the other in the parent; the file has `size` bytes.

    `spend` gets the number of bytes produced, since holes take no space in the archive.
    """

    def __init__(
        self, parent: ByteStream, runs: Sequence[tuple[int, int]], size: int, spend: Callable[[int], Damage | None]
    ) -> None:
        super().__init__()
        self._parent = parent
        self._spend = spend
        self._pieces = self._generate(runs, size)

    def _read_piece(self) -> bytes:
        if self.damage:
            return b""
        return self._deliver(next(self._pieces, b""))

    def _deliver(self, piece: bytes) -> bytes:
        refused = self._spend(len(piece))
        self.damage = refused or self.damage
        return piece[: refused.deliverable] if refused else piece

    def _generate(self, runs: Sequence[tuple[int, int]], size: int) -> Iterator[bytes]:
        at = 0
        for offset, length in [*runs, (size, 0)]:
            if offset < at or length < 0:
                self.damage = Damage("corrupt", "the map of this member's holes is invalid")
                return
            while at < offset:
                hole = bytes(min(offset - at, PIECE))
                at += len(hole)
                yield hole
            while length:
                piece = self._parent.read1(min(length, 4 * PIECE))
                if not piece:
                    self.damage = self._parent.damage or Damage(
                        "truncated-archive", "the archive ends inside this member"
                    )
                    return
                at += len(piece)
                length -= len(piece)
                yield piece


class ChecksummedStream(ByteStream):
    """A parent whose bytes must have a certain CRC-32. The bytes are delivered in any case."""

    def __init__(self, parent: ByteStream, crc: int, spend: Callable[[int], Damage | None] | None = None) -> None:
        super().__init__()
        self._parent = parent
        self._crc = crc
        self._sum = 0
        self._spend = spend

    def _read_piece(self) -> bytes:
        if self.damage:
            return b""
        piece = self._parent.read1(4 * PIECE)
        refused = self._spend(len(piece)) if self._spend else None
        if refused or self._parent.damage:
            self.damage = refused or self._parent.damage
            return piece[: refused.deliverable] if refused else piece
        self._sum = zlib.crc32(piece, self._sum)
        if not piece and self._sum != self._crc:
            self.damage = Damage("corrupt", "the checksum is wrong: all bytes were read, but some may be wrong")
        return piece


class CappedStream(ByteStream):
    """A parent cut off after `limit` bytes."""

    def __init__(self, parent: ByteStream, limit: int) -> None:
        super().__init__()
        self._parent = parent
        self._left = limit
        self._limit = limit

    def _read_piece(self) -> bytes:
        if self.damage:
            return b""
        piece = self._parent.read1(4 * PIECE)
        if not piece:
            self.damage = self._parent.damage
        elif len(piece) > self._left:
            piece = piece[: self._left]
            self.damage = Damage("too-large", f"only the first {self._limit:,} bytes were read (max_member_bytes)")
        self._left -= len(piece)
        return piece


class TranscodedStream(ByteStream):
    """Text of another encoding as UTF-8, without its byte order mark; undecodable bytes become U+FFFD."""

    def __init__(self, parent: ByteStream, encoding: str) -> None:
        super().__init__()
        self._parent = parent
        self._decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
        self._first = True
        self._final = False

    def _read_piece(self) -> bytes:
        while not self._final:
            piece = self._parent.read1(PIECE)
            self._final = not piece
            text = self._decoder.decode(piece, final=self._final)
            if text and self._first:
                self._first = False
                text = text.removeprefix("\ufeff")
            if text:
                return text.encode("utf-8", "replace")
        self.damage = self._parent.damage
        return b""
