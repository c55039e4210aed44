"""The decompressors, all in the shape of `bz2.BZ2Decompressor`: feed bytes, get at most `most` bytes, ask for `eof`.

Each is one frame; a file may hold several. Modules are imported when the first file of the kind is met.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from triage.sources.interface import FileKind


class Frame(Protocol):
    """One compressed frame being taken apart."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Engine:
    """How to read a format: `frame` makes a decompressor, `errors` is what it raises, `feed` how many bytes to give at
    once.

    `feed` bounds what one call can lose to a damaged frame, and for zstd (which has no bound of its own) what it can
    make.
    """

    name: str
    frame: Callable[[], Frame]
    errors: tuple[type[Exception], ...]
    feed: int = 32 * 1024
    several: bool = True


class _Zlib:
    """`zlib.decompressobj` in the common shape."""

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
    """`zstandard`'s decompressobj in the common shape."""

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
    """`lz4.frame`'s decompressor in the common shape: what is left over is None there as long as there is nothing."""

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


def gzip_engine() -> Engine:
    """gzip files, by isal when it is installed (several times faster), else by zlib."""
    return _deflate("gzip", 31, several=True)


def deflate_engine() -> Engine:
    """The bare deflate stream of a zip member."""
    return _deflate("deflate", -15, several=False)


def _deflate(name: str, wbits: int, *, several: bool) -> Engine:
    try:
        lib = importlib.import_module("isal.igzip_lib")
    except ImportError:
        zlib = importlib.import_module("zlib")
        return Engine(name, lambda: _Zlib(zlib, wbits), (zlib.error,), several=several)
    flag = lib.DECOMP_GZIP if wbits > 0 else lib.DECOMP_DEFLATE
    return Engine(
        name, lambda: lib.IgzipDecompressor(flag=flag, hist_bits=15), (lib.IsalError, ValueError), several=several
    )


def bzip2_engine(*, several: bool = True) -> Engine:
    """bzip2 files."""
    bz2 = importlib.import_module("bz2")
    return Engine("bzip2", bz2.BZ2Decompressor, (OSError, ValueError, EOFError), several=several)


def xz_engine() -> Engine:
    """xz files, with at most 1 GiB of dictionary."""
    lzma = importlib.import_module("lzma")
    return Engine("xz", lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=1 << 30), (lzma.LZMAError, EOFError))


def zstd_engine() -> Engine:
    """zstd files. One block of four bytes can hold 128 KiB, so that 4 KiB are fed at once: 128 MiB at worst."""
    zstandard = importlib.import_module("zstandard")
    return Engine("zstd", lambda: _Zstd(zstandard), (zstandard.ZstdError,), feed=4 * 1024)


def lz4_engine() -> Engine:
    """lz4 frames, as systemd-coredump writes them; by the package lz4."""
    lz4 = importlib.import_module("lz4.frame")
    return Engine("lz4", lambda: _Lz4(lz4), (RuntimeError, EOFError, ValueError))


def lzma_engine(head: bytes, size: int | None) -> Engine:
    """The LZMA stream of a zip member, whose five bytes of properties are `head` and whose `size` is known unless it
    has an end mark.
    """
    lzma = importlib.import_module("lzma")
    start = head + (b"\xff" * 8 if size is None else size.to_bytes(8, "little"))

    def frame() -> Frame:
        inner: Frame = lzma.LZMADecompressor(lzma.FORMAT_ALONE, memlimit=1 << 30)
        inner.decompress(start, 0)
        return inner

    return Engine("lzma", frame, (lzma.LZMAError, EOFError), several=False)


ENGINES: dict[FileKind, Callable[[], Engine]] = {
    "gzip": gzip_engine,
    "bzip2": bzip2_engine,
    "xz": xz_engine,
    "zstd": zstd_engine,
    "lz4": lz4_engine,
}
