"""Decompressors with the interface of `bz2.BZ2Decompressor`.

Each decompresses one frame; a file may have several. Modules are imported at the first file of their format.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from triage.sources.interface import FileKind


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


class _Zlib:
    """`zlib.decompressobj` as a Frame."""

    def __init__(self, module: Any, wbits: int) -> None:
        self._inner = module.decompressobj(wbits)
        self.needs_input = True

    @property
    def eof(self) -> bool:
        return bool(self._inner.eof)

    @property
    def unused_data(self) -> bytes:
        data: bytes = self._inner.unused_data
        return data

    def decompress(self, data: bytes, max_length: int, /) -> bytes:
        tail = self._inner.unconsumed_tail
        out: bytes = self._inner.decompress(tail + data if tail else data, max_length)
        # Output that fills the bound may have more behind it even when all the input was taken.
        self.needs_input = not self._inner.unconsumed_tail and len(out) < max_length
        return out


class _Zstd:
    """`zstandard`'s decompressobj as a Frame."""

    needs_input = True

    def __init__(self, module: Any) -> None:
        self._inner = module.ZstdDecompressor().decompressobj()

    @property
    def eof(self) -> bool:
        return bool(self._inner.eof)

    @property
    def unused_data(self) -> bytes:
        data: bytes = self._inner.unused_data
        return data

    def decompress(self, data: bytes, max_length: int, /) -> bytes:
        out: bytes = self._inner.decompress(data) if data else b""
        return out


class _Lz4:
    """`lz4.frame`'s decompressor as a Frame: its `unused_data` may be None."""

    def __init__(self, module: Any) -> None:
        self._inner = module.LZ4FrameDecompressor()

    @property
    def eof(self) -> bool:
        return bool(self._inner.eof)

    @property
    def needs_input(self) -> bool:
        return bool(self._inner.needs_input)

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data or b""

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
