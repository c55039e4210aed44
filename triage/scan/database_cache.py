"""Compiled Hyperscan databases in the user's cache directory: compiling them takes longer than reading a small job.

A file holds the databases of one list of literals and windows, behind a digest of its bytes. Its key names what the
databases depend on: the package, the processor, the literals and the windows. Hyperscan checks its own version, the
processor and a checksum once more when it loads a database. A file that fails any of this is ignored and written again.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from triage.base.content_digest import digest_bytes
from triage.base.private_files import read_private_file, write_private_file
from triage.base.shared_types import share_type

FORMAT_VERSION = 1  # raised when the same literals and windows give something else
_DIGEST_BYTES = 64
# One file per catalog and version; of older ones only a few stay.
_MAX_FILES = 6
_FILES = "scan-*.hyperscan"
# The record of the first processor in /proc/cpuinfo is shorter; on large machines the whole file takes long to read.
_CPU_BYTES = 4096


class StoredDatabases(msgspec.Struct, frozen=True):
    """What `HyperscanMatcher` compiles: windows, the literals that contain each, and databases by name."""

    key: str
    windows: list[bytes]
    window_literals: list[tuple[int, ...]]
    databases: Mapping[str, bytes]


def compute_key(literals: Sequence[bytes], windows: Sequence[bytes]) -> str:
    """Return a digest that changes when the databases must be compiled again."""
    import hyperscan

    package = getattr(hyperscan, "__version__", "")
    own = (FORMAT_VERSION, package, *os.uname()[::4], _processor_features())
    return digest_bytes(msgspec.msgpack.encode([own, literals, windows]))


def read_databases(directory: Path, key: str) -> StoredDatabases | None:
    """Return the databases that were stored under this key, or None if there are none, or damaged ones."""
    try:
        data = read_private_file(_path(directory, key)) or b""
        if digest_bytes(data[_DIGEST_BYTES:]).encode() != data[:_DIGEST_BYTES]:
            return None
        stored = msgspec.msgpack.decode(memoryview(data)[_DIGEST_BYTES:], type=share_type(StoredDatabases))
    except (OSError, ValueError, RecursionError):
        return None
    return stored if stored.key == key and len(stored.windows) == len(stored.window_literals) else None


def write_databases(directory: Path, stored: StoredDatabases) -> None:
    """Store the databases for the next run, and remove all but the newest files. Do nothing if that is impossible."""
    data = msgspec.msgpack.encode(stored)
    path = _path(directory, stored.key)
    write_private_file(path, digest_bytes(data).encode() + data)
    with contextlib.suppress(OSError):
        newest_first = sorted(directory.glob(_FILES), key=lambda file: file.stat().st_mtime_ns, reverse=True)
        for file in newest_first[_MAX_FILES:]:
            if file != path:
                file.unlink()


def _path(directory: Path, key: str) -> Path:
    return directory / _FILES.replace("*", key[:16])


def _processor_features() -> bytes:
    """Return the line of /proc/cpuinfo that names what the processor can do; nothing on other systems."""
    try:
        with open("/proc/cpuinfo", "rb") as file:
            lines = file.read(_CPU_BYTES).splitlines()
    except OSError:
        return b""
    return next((line for line in lines if line.startswith((b"flags", b"Features"))), b"")
