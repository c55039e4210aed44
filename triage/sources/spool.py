"""Standard input as a file that can be read at any offset, by this process and its workers."""

from __future__ import annotations

import os
import stat
import sys
from typing import BinaryIO

from triage.sources.interface import Limits, SourceError
from triage.sources.notes import Notes

_kept: list[BinaryIO] = []
"""The spools of this process: a file without a name lives as long as something holds it open."""


def spooled(stdin: BinaryIO | None, limits: Limits, notes: Notes) -> str:
    """A path under which standard input can be opened and read from its beginning, as long as this process lives.

    A file redirected to standard input is used where it lies; a pipe is copied to a temporary file that has no name.
    """
    source = stdin if stdin is not None else sys.stdin.buffer
    return _redirected(source) or _copied(source, limits, notes)


def _redirected(source: BinaryIO) -> str | None:
    try:
        fd = source.fileno()
        if not stat.S_ISREG(os.fstat(fd).st_mode) or os.lseek(fd, 0, os.SEEK_CUR) != 0:
            return None
        path = _path(fd)
        os.close(os.open(path, os.O_RDONLY))
    except (OSError, ValueError, AttributeError):
        return None
    return path


def _copied(source: BinaryIO, limits: Limits, notes: Notes) -> str:
    import tempfile  # not needed by most runs, and slow to import

    spool: BinaryIO = tempfile.TemporaryFile(prefix="triage-", buffering=0)  # noqa: SIM115
    _kept.append(spool)
    left = limits.max_member_bytes
    try:
        while left > 0 and (piece := source.read(min(1 << 20, left))):
            spool.write(piece)
            left -= len(piece)
    except OSError as error:
        where = tempfile.gettempdir()
        hint = (
            f"Free some space in {where}, set TMPDIR to a roomier directory, or save the log to a file and give that."
        )
        raise SourceError(f"standard input cannot be kept: {error.strerror}", hint=hint, path="-") from error
    if left <= 0:
        notes.add("too-large", "-", f"only the first {limits.max_member_bytes:,} bytes were read (max_member_bytes)")
    return _path(spool.fileno())


def _path(fd: int) -> str:
    """A path by which other processes of this user can open the descriptor too, where the system has such paths."""
    own = f"/proc/{os.getpid()}/fd/{fd}"
    return own if os.path.exists(own) else f"/dev/fd/{fd}"
