"""Hostile compressed files: cut, joined, damaged, and bombs."""

from __future__ import annotations

import bz2
import functools
import gzip
import lzma
import struct
import zlib
from collections.abc import Callable, Iterable

import lz4.frame
import zstandard

from tests.hostile.archives import QUIET, patched
from tests.hostile.model import MIB, HostileCase, Job, repeat
from tests.sources.factories import COMPRESSIONS

SUFFIXES = {"gzip": "gz", "bzip2": "bz2", "xz": "xz", "zstd": "zst", "lz4": "lz4"}


def _lz4(pieces: Iterable[bytes]) -> bytes:
    packer = lz4.frame.LZ4FrameCompressor()
    return b"".join([packer.begin(), *map(packer.compress, pieces), packer.flush()])


def _packed(packer: zlib._Compress | bz2.BZ2Compressor | lzma.LZMACompressor, pieces: Iterable[bytes]) -> bytes:
    return b"".join([*map(packer.compress, pieces), packer.flush()])


PACKERS: dict[str, Callable[[Iterable[bytes]], bytes]] = {
    "gzip": lambda pieces: _packed(zlib.compressobj(9, wbits=31), pieces),
    "bzip2": lambda pieces: _packed(bz2.BZ2Compressor(), pieces),
    "xz": lambda pieces: _packed(lzma.LZMACompressor(preset=1), pieces),
    "zstd": lambda pieces: zstandard.ZstdCompressor().compress(b"".join(pieces)),
    "lz4": _lz4,
}
BOMB_SIZES = {"gzip": 4096, "bzip2": 1100, "xz": 1100, "zstd": 1100, "lz4": 1100}
"""MiB of a bomb at full size: what passes the floor of the limit, and four gigabytes where it cannot be reached."""


def write_cut(kind: str, job: Job) -> None:
    """The good log, and noise behind it, cut in the noise."""
    noise = b"".join(b"%d %d\n" % (number, number * 7919 % 104_729) for number in range(200_000))
    data = COMPRESSIONS[kind](job.good + noise)
    job.write(f"console.log.{SUFFIXES[kind]}", data[: len(data) * 2 // 3])


def write_joined(kind: str, job: Job) -> None:
    """The good log in two frames, between very many empty ones."""
    half = len(job.good) // 2
    empty = COMPRESSIONS[kind](b"") * job.size(500, 20_000)
    data = [empty, COMPRESSIONS[kind](job.good[:half]), empty, COMPRESSIONS[kind](job.good[half:]), empty]
    job.write(f"console.log.{SUFFIXES[kind]}", b"".join(data))


def write_bomb(kind: str, job: Job) -> None:
    """The good log, then NULs that take next to no space."""
    size = job.size(32, BOMB_SIZES[kind]) * MIB
    job.write(f"console.log.{SUFFIXES[kind]}", PACKERS[kind]((job.good, *repeat(b"\0", size))))


def write_garbage(kind: str, job: Job) -> None:
    """The good log, then bytes that are not of the format."""
    job.write(f"console.log.{SUFFIXES[kind]}", COMPRESSIONS[kind](job.good) + b"garbage" * 999)


def write_large_window(job: Job) -> None:
    """zstd: a frame that asks for a window of two gigabytes."""
    frame = bytearray(zstandard.ZstdCompressor(write_content_size=False).compress(QUIET * 9999))
    job.write("window.log.zst", patched(bytes(frame), 5, b"\xa8"))


def write_skippable_frames(job: Job) -> None:
    """zstd: frames to be skipped, whose last one claims four gigabytes."""
    skipped = struct.pack("<LL", 0x184D2A50, 0) * job.size(2_000, 200_000)
    tail = struct.pack("<LL", 0x184D2A50, 0xFFFFFFFF)
    job.write("console.log.zst", skipped + COMPRESSIONS["zstd"](job.good) + tail)


def write_large_xz_dictionary(job: Job) -> None:
    """xz: a block that asks for a dictionary of four gigabytes."""
    data = lzma.compress(QUIET, check=lzma.CHECK_NONE)
    at = data.index(b"\x21\x01") + 2
    header = patched(data[12 : at + 1 + 7], at - 12, b"\x28")[: (data[12] + 1) * 4 - 4]
    job.write(
        "dictionary.log.xz", data[:12] + header + struct.pack("<L", zlib.crc32(header)) + data[12 + len(header) + 4 :]
    )


def write_endless_gzip_header(job: Job) -> None:
    """gzip: a header whose file name has no end."""
    job.write("name.log.gz", b"\x1f\x8b\x08\x08" + bytes(6) + b"n" * (8 * MIB))


def write_wrong_checksum(job: Job) -> None:
    """gzip: the checksum and the length at the end are wrong."""
    job.write("console.log.gz", patched(gzip.compress(job.good), -8, b"\xff" * 8))


def write_compressed_twice(job: Job) -> None:
    """A compression in a compression."""
    job.write("twice.log.gz", gzip.compress(bz2.compress(QUIET)))


def _cases(kind: str) -> Iterable[HostileCase]:
    """Yield the four cases of one compression."""
    where = functools.partial
    yield HostileCase(f"{kind}: cut", where(write_cut, kind), r"truncated: ", holds_good=True)
    all_read = "all frames are read as one text"
    yield HostileCase(f"{kind}: many frames", where(write_joined, kind), "", all_read, holds_good=True, seconds=300)
    yield HostileCase(f"{kind}: garbage behind", where(write_garbage, kind), r"corrupt: ", holds_good=True)
    if kind in ("gzip", "lz4"):
        limit = "the format cannot reach the limit of the ratio; the text is read in bounded memory"
        yield HostileCase(f"{kind}: bomb", where(write_bomb, kind), "", limit, holds_good=True, seconds=300)
    else:
        yield HostileCase(f"{kind}: bomb", where(write_bomb, kind), r"bomb: ", holds_good=True, seconds=300)


CASES = (
    *(case for kind in COMPRESSIONS for case in _cases(kind)),
    HostileCase("zstd: window of gigabytes", write_large_window, r"corrupt: "),
    HostileCase("zstd: skippable frames", write_skippable_frames, r"(corrupt|truncated): ", holds_good=True),
    HostileCase("xz: dictionary of gigabytes", write_large_xz_dictionary, r"corrupt: "),
    HostileCase("gzip: endless header", write_endless_gzip_header, r"(corrupt|truncated): "),
    HostileCase("gzip: wrong checksum", write_wrong_checksum, r"corrupt: ", holds_good=True),
    HostileCase("gzip: compressed twice", write_compressed_twice, r"nested-too-deep: "),
)
