"""Explain errors of SQLite and of the disk below it: what happened, where, and what to do."""

from __future__ import annotations

import errno
import os
import sqlite3
import tempfile
from collections.abc import Mapping
from pathlib import Path

from triage.base.errors import ReadOnlyStoreError, StoreError

OTHER_FILE = "name another file with --store, or use --no-store to continue without a store"
PROBE_BYTES = 64 << 10
_FREE_SPACE = "free some space, or name a file on another disk with --store; what was stored before is still there"
_FULL: Mapping[int, tuple[str, str]] = {
    errno.ENOSPC: ("the disk is full; nothing of this was stored", _FREE_SPACE),
    errno.EDQUOT: ("the disk quota is used up; nothing of this was stored", _FREE_SPACE),
    errno.EFBIG: (
        "the file reached the largest size that this process may write; nothing of this was stored",
        "raise the limit (`ulimit -f`, LimitFSIZE of systemd), or name another file with --store",
    ),
}
# By the beginning of SQLite's name of the error; the first that fits counts (https://sqlite.org/rescode.html).
_KINDS = (
    (
        "SQLITE_CORRUPT",
        "the store's file is damaged",
        "save what can be read with `triage db export --salvage -o saved.jsonl`, move the file away, then run "
        "`triage db import saved.jsonl`; `triage db check` shows details",
    ),
    (
        "SQLITE_NOTADB",
        "this file is not a store, or its beginning is damaged",
        "if it was a store, save it with `triage db export --salvage -o saved.jsonl`; else name the store's file with "
        "--store",
    ),
    ("SQLITE_FULL", *_FULL[errno.ENOSPC]),
    (
        "SQLITE_READONLY_DBMOVED",
        "the store's file was moved or deleted while it was open; nothing of this was stored",
        "put the file back, or run the command again to make a new store",
    ),
    ("SQLITE_LOCKED", "another connection has locked the store", "try again"),
    ("SQLITE_IOERR", "the disk failed", "check the disk (dmesg, df), then run `triage db check`"),
    ("SQLITE_TOOBIG", "this is too large for the store", "ingest it with --no-store"),
)


def explain_error(error: sqlite3.Error, path: Path) -> StoreError:
    """Return the error as a StoreError with what to do."""
    name = getattr(error, "sqlite_errorname", "") or ""
    if name.startswith(("SQLITE_IOERR", "SQLITE_CANTOPEN", "SQLITE_FULL")) and (full := _find_full_disk(path)):
        return StoreError(f"{full[0]} ({error})", hint=full[1], path=str(path))
    for prefix, message, hint in _KINDS:
        if name.startswith(prefix):
            return StoreError(f"{message} ({error})", hint=hint, path=str(path))
    if name.startswith(("SQLITE_READONLY", "SQLITE_PERM", "SQLITE_CANTOPEN", "SQLITE_AUTH")):
        return _explain_access(error, path, name)
    if name.startswith("SQLITE_BUSY"):
        hint = f"try again; {_name_lock_owner(path) or '`fuser FILE` names the process'}"
        return StoreError(f"another process has locked the store for too long ({error})", hint=hint, path=str(path))
    return StoreError(f"the store failed: {error}", hint="run `triage db check` to check the file", path=str(path))


def explain_read_only(path: Path) -> ReadOnlyStoreError:
    """Return the error of a write into a store that is read-only."""
    what, how = _read_only_part(path)
    return ReadOnlyStoreError(f"the store is read-only: {what}", hint=f"{how}, or {OTHER_FILE}", path=str(path))


def _explain_access(error: sqlite3.Error, path: Path, name: str) -> StoreError:
    if name.startswith("SQLITE_READONLY"):
        return explain_read_only(path)
    hint = f"check who may read and write {path} and its directory, or {OTHER_FILE}"
    return StoreError(f"the store cannot be opened ({error})", hint=hint, path=str(path))


def _read_only_part(path: Path) -> tuple[str, str]:
    """Return what is read-only about a store, and how to change it."""
    try:
        is_mounted_read_only = bool(os.statvfs(path.parent).f_flag & os.ST_RDONLY)
    except OSError:
        is_mounted_read_only = False
    if is_mounted_read_only:
        return "its file system is mounted read-only", "mount it writable (dmesg says if the kernel did this)"
    if path.exists() and not os.access(path, os.W_OK):
        return "you may not write this file", f"become {_owner(path)}, or let the owner run `chmod u+w` on the file"
    if not os.access(path.parent, os.W_OK):
        return "you may not write its directory, where SQLite needs a log", f"let {_owner(path.parent)} change that"
    return "it was opened for reading", "start again"


def _owner(path: Path) -> str:
    try:
        return path.owner()
    except (KeyError, OSError):
        return "its owner"


def _find_full_disk(path: Path) -> tuple[str, str] | None:
    """Return message and hint if the disk takes no more bytes: SQLite reports that as an I/O error at some places."""
    try:
        with tempfile.TemporaryFile(dir=path.parent) as file:
            file.write(b"\0" * PROBE_BYTES)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return _FULL.get(error.errno or 0)
    return _FULL[errno.EFBIG] if _is_at_size_limit(path) else None


def _is_at_size_limit(path: Path) -> bool:
    import resource

    limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    sizes = [file.stat().st_size for file in (path, Path(f"{path}-wal")) if file.exists()]
    return limit != resource.RLIM_INFINITY and max(sizes, default=0) + PROBE_BYTES > limit


def _name_lock_owner(path: Path) -> str:
    """Return a sentence that names the process with a lock on the store, or nothing where Linux does not say."""
    try:
        files = {os.stat(f"{path}{end}").st_ino for end in ("", "-shm") if os.path.exists(f"{path}{end}")}
        locks = [line.split() for line in Path("/proc/locks").read_text(encoding="ascii").splitlines()]
        for parts in locks:  # 1: POSIX ADVISORY WRITE 4711 fd:01:131075 120 120
            is_ours = "WRITE" in parts and int(parts[parts.index("WRITE") + 2].rpartition(":")[2]) in files
            if is_ours and (pid := int(parts[parts.index("WRITE") + 1])) not in (-1, os.getpid()):
                name = Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip()
                return f"the process {pid} ({name}) has it"
    except (OSError, ValueError, IndexError):
        pass  # the process ended meanwhile, or this system has no such file: the error is told without a name
    return ""
