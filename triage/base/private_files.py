"""Files in the user's cache directory that nobody else can change. Writing is atomic and best effort."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

MAX_BYTES = 64 * 1024 * 1024


def read_private_file(path: Path) -> bytes | None:
    """Return the bytes of a regular file of this user that nobody else can write; None if it is another's or too large.

    Raises OSError where there is none.
    """
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    with open(os.open(path, flags), "rb") as stream:
        status = os.fstat(stream.fileno())
        foreign = hasattr(os, "getuid") and (status.st_uid != os.getuid() or status.st_mode & 0o022)
        if not stat.S_ISREG(status.st_mode) or foreign or status.st_size > MAX_BYTES:
            return None
        return stream.read(MAX_BYTES)


def write_private_file(path: Path, data: bytes) -> None:
    """Write a file atomically, readable by the user alone. Do nothing if that is impossible."""
    import tempfile  # slow to import, and who finds the file in the cache does not write

    temporary = ""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _remove_parts(path)
        descriptor, temporary = tempfile.mkstemp(prefix=path.name + ".", dir=path.parent)  # mkstemp makes it 0600
        with os.fdopen(descriptor, "wb") as out:
            out.write(data)
        os.replace(temporary, path)
    except (OSError, ValueError):
        if temporary:
            with contextlib.suppress(OSError):
                os.unlink(temporary)


def _remove_parts(path: Path) -> None:
    """Remove what killed processes left. A process that writes at this moment loses its part, and writes no cache."""
    for part in path.parent.glob(f"{path.name}.*"):
        with contextlib.suppress(OSError):
            part.unlink()
