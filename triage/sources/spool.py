"""Make standard input a file that this process and its workers can read at any offset."""

from __future__ import annotations

import os
import stat
import sys
from typing import BinaryIO

from triage.sources.interface import Limits, SourceError
from triage.sources.warning_limiter import WarningLimiter

_spools: list[BinaryIO] = []
"""The spools of this process: a file without a name exists as long as it is open."""


def spool_stdin(stdin: BinaryIO | None, limits: Limits, warnings: WarningLimiter) -> str:
    """Return a path from which standard input can be read from its beginning while this process lives.

    A file redirected to standard input is used where it is; a pipe is copied to a temporary file without a name.
    """
    source = stdin if stdin is not None else sys.stdin.buffer
    return _redirected_file(source) or _copy_to_temporary_file(source, limits, warnings)


def _redirected_file(source: BinaryIO) -> str | None:
    try:
        fd = source.fileno()
        if not stat.S_ISREG(os.fstat(fd).st_mode) or os.lseek(fd, 0, os.SEEK_CUR) != 0:
            return None
        path = _descriptor_path(fd)
        os.close(os.open(path, os.O_RDONLY))
    except (OSError, ValueError, AttributeError):
        return None
    return path


def _copy_to_temporary_file(source: BinaryIO, limits: Limits, warnings: WarningLimiter) -> str:
    import tempfile  # not needed by most runs, and slow to import

    spool: BinaryIO = tempfile.TemporaryFile(prefix="triage-", buffering=0)  # noqa: SIM115
    _spools.append(spool)
    remaining = limits.max_member_bytes
    try:
        while remaining > 0 and (piece := source.read(min(1 << 20, remaining))):
            spool.write(piece)
            remaining -= len(piece)
    except OSError as error:
        where = tempfile.gettempdir()
        hint = f"Free some space in {where}, set TMPDIR to a larger directory, or save the log to a file and give that."
        raise SourceError(f"standard input cannot be stored: {error.strerror}", hint=hint, path="-") from error
    if remaining <= 0:
        warnings.add("too-large", "-", f"only the first {limits.max_member_bytes:,} bytes were read (max_member_bytes)")
    return _descriptor_path(spool.fileno())


def _descriptor_path(fd: int) -> str:
    """Return a path by which other processes of this user can open the descriptor, where the system has one."""
    own = f"/proc/{os.getpid()}/fd/{fd}"
    return own if os.path.exists(own) else f"/dev/fd/{fd}"
