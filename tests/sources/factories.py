"""Files for the tests of sources, and how to read them."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import lzma
import os
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import lz4.frame
import zstandard

from triage.model import evidence as evidence_model
from triage.model.evidence import Source
from triage.sources import File, Limits, discover, streams

COMPRESSIONS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zstd": lambda data: zstandard.ZstdCompressor(write_checksum=True).compress(data),
    "lz4": lambda data: lz4.frame.compress(data, content_checksum=True, block_checksum=True),
}


def log(lines: int = 2000) -> bytes:
    """Return a log of `lines` different lines."""
    return b"".join(b"rank %d step %d loss %f\n" % (at % 8, at, 1 / (at + 1)) for at in range(lines))


def tar(members: Mapping[str, bytes], mode: str = "w") -> bytes:
    """Return a tar archive of regular files."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as archive:  # type: ignore[call-overload]
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def make_zip(members: Mapping[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Return a zip archive of regular files."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return out.getvalue()


@contextlib.contextmanager
def temporary_directory() -> Iterator[Path]:
    """A temporary directory (hypothesis must not share pytest's between examples)."""
    with tempfile.TemporaryDirectory() as path:
        yield Path(path)


def read_sources(
    file: File, limits: Limits | None = None
) -> tuple[list[tuple[Source, bytes]], list[evidence_model.Warning]]:
    """Return every source in `file` with its bytes, and the warnings."""
    warnings: list[evidence_model.Warning] = []
    sources = []
    for source, stream in streams(file, limits or Limits(), warnings.append):
        sources.append((source, Path(source.path or "").read_bytes() if stream is None else stream.read()))
    return sources, warnings


def read(
    data: bytes, limits: Limits | None = None, name: str = "f"
) -> tuple[dict[str, bytes], list[evidence_model.Warning]]:
    """Return the texts in a file of `data` by name (without the directory), and the warnings."""
    with temporary_directory() as place:
        (place / name).write_bytes(data)
        status = os.stat(place / name)
        file = discover([str(place)]).files[0]
        assert file.size == status.st_size
        sources, warnings = read_sources(file, limits)
        assert os.listdir(place) == [name]
    return {source.name.removeprefix(f"{place}/"): text for source, text in sources}, warnings


def codes(warnings: list[evidence_model.Warning]) -> list[str]:
    """Return the codes of warnings."""
    return [warning.code for warning in warnings]
