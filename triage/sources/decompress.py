"""Read compressed files (gzip, bzip2, xz, zstd, lz4): deliver all bytes that can be recovered, then report the damage.

Each format has a decompressor of one frame, with the interface of `bz2.BZ2Decompressor`; a file may have several
frames. Modules are imported at the first file of their format.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from triage.sources.bytestream import PIECE, ByteStream, Damage
from triage.sources.expand import Expansion
from triage.sources.interface import FileKind, OpenedSource, ReaderInput

_MAX_OUTPUT = 1 << 20
_TAIL = 64


class Frame(Protocol):
    """The decompressor of one frame."""

    @property
    def eof(self) -> bool:
        """Whether the frame is complete."""

    @property
    def needs_input(self) -> bool:
        """Whether more input is needed before more output."""

    @property
    def unused_data(self) -> bytes:
        """The input after the end of the frame."""

    def decompress(self, data: bytes, max_length: int, /) -> bytes:
        """Feed `data` and return at most `max_length` bytes of output."""


@dataclass(frozen=True, slots=True)
class CompressionFormat:
    """How to decompress a format.

    `new_frame` returns a decompressor, `errors` are the exceptions that it raises, `feed_bytes` is how many bytes to
    feed at once. That limits what a call can lose in a damaged frame and, for zstd (which has no output limit of its
    own), how much it can produce.
    """

    name: str
    new_frame: Callable[[], Frame]
    errors: tuple[type[Exception], ...]
    feed_bytes: int = 32 * 1024
    multiple_frames: bool = True


class _Wrapped:
    """A decompressor of a library as a Frame; the `unused_data` of lz4's may be None."""

    _inner: Any

    @property
    def eof(self) -> bool:
        return bool(self._inner.eof)

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data or b""


class _Zlib(_Wrapped):
    """`zlib.decompressobj` as a Frame."""

    def __init__(self, module: Any, wbits: int) -> None:
        self._inner = module.decompressobj(wbits)
        self.needs_input = True

    def decompress(self, data: bytes, max_length: int, /) -> bytes:
        tail = self._inner.unconsumed_tail
        out: bytes = self._inner.decompress(tail + data if tail else data, max_length)
        # Output that fills the bound may have more behind it even when all the input was taken.
        self.needs_input = not self._inner.unconsumed_tail and len(out) < max_length
        return out


class _Zstd(_Wrapped):
    """`zstandard`'s decompressobj as a Frame."""

    needs_input = True

    def __init__(self, module: Any) -> None:
        self._inner = module.ZstdDecompressor().decompressobj()

    def decompress(self, data: bytes, max_length: int, /) -> bytes:
        out: bytes = self._inner.decompress(data) if data else b""
        return out


class _Lz4(_Wrapped):
    """`lz4.frame`'s decompressor as a Frame."""

    def __init__(self, module: Any) -> None:
        self._inner = module.LZ4FrameDecompressor()

    @property
    def needs_input(self) -> bool:
        return bool(self._inner.needs_input)

    def decompress(self, data: bytes, max_length: int, /) -> bytes:
        out: bytes = self._inner.decompress(data, max_length)
        return out


def gzip_format() -> CompressionFormat:
    """Return gzip: by isal if it is installed (several times faster), else by zlib."""
    return _deflate("gzip", 31, multiple_frames=True)


def deflate_format() -> CompressionFormat:
    """Return the bare deflate stream of a zip member."""
    return _deflate("deflate", -15, multiple_frames=False)


def _deflate(name: str, wbits: int, *, multiple_frames: bool) -> CompressionFormat:
    try:
        lib = importlib.import_module("isal.igzip_lib")
    except ImportError:
        zlib = importlib.import_module("zlib")
        return CompressionFormat(name, lambda: _Zlib(zlib, wbits), (zlib.error,), multiple_frames=multiple_frames)
    flag = lib.DECOMP_GZIP if wbits > 0 else lib.DECOMP_DEFLATE
    return CompressionFormat(
        name,
        lambda: lib.IgzipDecompressor(flag=flag, hist_bits=15),
        (lib.IsalError, ValueError),
        multiple_frames=multiple_frames,
    )


def bzip2_format(*, multiple_frames: bool = True) -> CompressionFormat:
    """Return bzip2."""
    bz2 = importlib.import_module("bz2")
    return CompressionFormat(
        "bzip2", bz2.BZ2Decompressor, (OSError, ValueError, EOFError), multiple_frames=multiple_frames
    )


def xz_format() -> CompressionFormat:
    """Return xz, with at most 1 GiB of dictionary."""
    lzma = importlib.import_module("lzma")
    return CompressionFormat(
        "xz", lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=1 << 30), (lzma.LZMAError, EOFError)
    )


def zstd_format() -> CompressionFormat:
    """Return zstd: a block of four bytes can expand to 128 KiB, so a call gets 4 KiB (at worst 128 MiB of output)."""
    zstandard = importlib.import_module("zstandard")
    return CompressionFormat("zstd", lambda: _Zstd(zstandard), (zstandard.ZstdError,), feed_bytes=4 * 1024)


def lz4_format() -> CompressionFormat:
    """Return lz4 frames, as systemd-coredump writes them, by the package lz4."""
    lz4 = importlib.import_module("lz4.frame")
    return CompressionFormat("lz4", lambda: _Lz4(lz4), (RuntimeError, EOFError, ValueError))


def lzma_format(head: bytes, size: int | None) -> CompressionFormat:
    """Return the LZMA stream of a zip member.

    `head` are its five bytes of properties, `size` is its size, or None if the stream has an end mark.
    """
    lzma = importlib.import_module("lzma")
    start = head + (b"\xff" * 8 if size is None else size.to_bytes(8, "little"))

    def new_frame() -> Frame:
        inner: Frame = lzma.LZMADecompressor(lzma.FORMAT_ALONE, memlimit=1 << 30)
        inner.decompress(start, 0)
        return inner

    return CompressionFormat("lzma", new_frame, (lzma.LZMAError, EOFError), multiple_frames=False)


FORMATS: dict[FileKind, Callable[[], CompressionFormat]] = {
    "gzip": gzip_format,
    "bzip2": bzip2_format,
    "xz": xz_format,
    "zstd": zstd_format,
    "lz4": lz4_format,
}


class DecompressedStream(ByteStream):
    """The decompressed bytes of `parent`. `spend` gets the number of bytes produced and may stop the stream.

    The last bytes of the parent, which hold the checksums, are fed one by one: a decompressor that finds a wrong
    checksum drops what it produced in that call, and the end of a log matters most.
    """

    def __init__(
        self, parent: ByteStream, compression: CompressionFormat, spend: Callable[[int], Damage | None]
    ) -> None:
        super().__init__()
        self._parent = parent
        self._format = compression
        self._spend = spend
        self._input = b""
        self._input_position = 0
        self._parent_ended = False
        self._frame: Frame | None = compression.new_frame()
        self._fed = False
        self._frames = 0
        self.produced = 0

    def unused_input(self) -> bytes:
        """Return bytes taken from the parent that do not belong to the compressed stream."""
        unused = self._frame.unused_data if self._frame and self._frame.eof else b""
        return unused + self._input[self._input_position :]

    def drain(self) -> None:
        """Read to the end, to learn where the compressed data ends."""
        while self.read1():
            pass

    def _read_piece(self) -> bytes:
        while self._frame:
            try:
                out = self._step(self._frame)
            except self._format.errors as error:
                self._end_damaged(error)
                return b""
            if out:
                return self._account(out)
        return b""

    def _account(self, out: bytes) -> bytes:
        self.produced += len(out)
        refused = self._spend(len(out))
        if refused:
            self.damage, self._frame = refused, None
            return out[: refused.deliverable]
        return out

    def _step(self, frame: Frame) -> bytes:
        """Call the decompressor once; set `_frame` to None at the end."""
        if frame.eof:
            self._next_frame(frame)
            return b""
        piece = self._next_input() if frame.needs_input else b""
        if frame.needs_input and not piece:
            self._end_early()
            return b""
        self._fed = self._fed or bool(piece)
        return frame.decompress(piece, _MAX_OUTPUT)

    def _next_frame(self, frame: Frame) -> None:
        """Go on to the next frame, past padding."""
        self._frames += 1
        if not self._format.multiple_frames:
            self._input, self._input_position = self.unused_input(), 0
            self._frame = None
            return
        self._input = frame.unused_data + self._input[self._input_position :]
        self._input_position = 0
        self._frame = None
        while not self._input.strip(b"\0"):
            self._input = self._parent.read1(PIECE)
            if not self._input:
                self.damage = self._parent.damage
                return
        self._input = self._input.lstrip(b"\0")
        self._frame, self._fed = self._format.new_frame(), False

    def _next_input(self) -> bytes:
        """Return the next bytes to feed: many, but one by one near the end of the parent."""
        left = len(self._input) - self._input_position
        while left <= _TAIL and not self._parent_ended:
            more = self._parent.read1(PIECE)
            self._parent_ended = not more
            self._input = self._input[self._input_position :] + more
            self._input_position = 0
            left = len(self._input)
        size = min(self._format.feed_bytes, left - _TAIL) if left > _TAIL else min(1, left)
        piece = self._input[self._input_position : self._input_position + size]
        self._input_position += size
        return piece

    def _end_early(self) -> None:
        """End because the parent ended inside a frame."""
        self._frame = None
        self.damage = self._parent.damage or Damage(
            "truncated", f"the {self._format.name} data ends too early, after {self.produced:,} bytes of text"
        )

    def _end_damaged(self, error: Exception) -> None:
        self._frame = None
        reason = str(error) or type(error).__name__
        after, name = f"after {self.produced:,} bytes of text", self._format.name
        if self._frames:
            message = f"the data {after} is not {name} data and was ignored ({reason})"
        else:
            message = f"the {name} data is damaged {after} ({reason}); the rest was not read"
        self.damage = Damage("corrupt", message)


class CompressedReader:
    """Decompress the input and pass it on to the other readers, under the same name."""

    kinds = frozenset(FORMATS)

    def read(self, item: ReaderInput, expansion: Expansion) -> Iterator[OpenedSource]:
        """Yield the sources inside; then report damage."""
        if item.layers:
            expansion.warnings.add(
                "nested-too-deep", item.name, "skipped, because it is compressed twice; decompress it once"
            )
            return
        try:
            compression = FORMATS[item.kind]()
        except ImportError as error:
            expansion.warnings.add(
                "skipped",
                item.name,
                f"skipped, because {error.name} is not installed: pip install {(error.name or '').partition('.')[0]}",
            )
            return
        stream = DecompressedStream(item.stream, compression, expansion.spend)
        inner = expansion.input_for(item, stream, size=None, layers=item.layers + 1)
        try:
            yield from expansion.expand(inner)
        finally:
            damage = stream.damage
            if damage and damage.code == "truncated" and inner.kind in ("tar", "zip"):
                damage = damage._replace(code="truncated-archive")
            expansion.report_damage(item.name, damage)
