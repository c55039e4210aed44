"""The compiled catalog as one JSON file in the user's cache directory.

Plain JSON, never pickle: a manipulated cache can at worst contain other signatures, and is dropped as soon as its shape
is wrong. Writing is atomic and best effort; without a writable cache every run only takes longer.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

import msgspec

from triage.catalog.signature_files import Stamp

_Cached = TypeVar("_Cached")
FORMAT_VERSION = 8  # raised when the same files compile to something else
MAX_BYTES = 64 * 1024 * 1024
# Modules besides this package that a compiled catalog depends on.
COMPILED_WITH = (("evidence", "__init__.py"), ("scan", "windows.py"))
OFF_VALUES = frozenset({"", "0", "off", "no", "none"})


def choose_directory(directory: Path | None = None) -> Path | None:
    """The directory of caches: this one, $TRIAGE_CACHE (`off` for none), or `triage` in the user's cache directory."""
    if directory is not None:
        return directory
    chosen = os.environ.get("TRIAGE_CACHE")
    if chosen is not None:
        return None if chosen.strip().lower() in OFF_VALUES else Path(chosen)
    home = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(home):
        return Path(home) / "triage"
    user = os.path.expanduser("~")
    return Path(user) / ".cache" / "triage" if os.path.isabs(user) else None


def compute_key(stamps: Iterable[Stamp]) -> str:
    """A digest that changes when a file, its size, its time or this package changes."""
    here = os.path.dirname(__file__)
    package = os.path.dirname(here)
    others = [os.path.join(package, *path) for path in COMPILED_WITH]
    modules = [
        *(entry.path for entry in os.scandir(here) if entry.name.endswith(".py")),
        *filter(os.path.isfile, others),
    ]
    stats = ((path, os.stat(path)) for path in modules)
    own = sorted((os.path.relpath(path, package), stat.st_size, stat.st_mtime_ns) for path, stat in stats)
    text = json.dumps([FORMAT_VERSION, own, list(stamps)])
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def name_file(directory: Path, sources: Iterable[str]) -> Path:
    """The cache file of a set of source directories: one per set, so that old versions do not pile up."""
    name = hashlib.sha256("\0".join(sources).encode("utf-8", "surrogateescape")).hexdigest()[:16]
    return directory / f"catalog-{name}.json"


class _CacheFile(msgspec.Struct):
    key: str
    catalog: msgspec.Raw


def read_cache(path: Path, expected: str, of_type: type[_Cached]) -> _Cached | None:
    """Read the value if the file is this user's, complete and has the key `expected`; otherwise None."""
    try:
        file = msgspec.json.decode(_read_private_file(path) or b"", type=_CacheFile)
        return msgspec.json.decode(file.catalog, type=of_type) if file.key == expected else None
    except (OSError, ValueError, RecursionError):
        return None


def write_cache(path: Path, expected: str, catalog: object) -> None:
    """Write a catalog, or a part of one, atomically, readable by the user alone. Do nothing if that is impossible."""
    import tempfile  # slow to import, and a cache hit does not write

    temporary = ""
    try:
        data = msgspec.json.encode({"key": expected, "catalog": catalog})
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


def _read_private_file(path: Path) -> bytes | None:
    """The bytes of a regular file of this user that nobody else can write."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    with open(os.open(path, flags), "rb") as stream:
        status = os.fstat(stream.fileno())
        foreign = hasattr(os, "getuid") and (status.st_uid != os.getuid() or status.st_mode & 0o022)
        if not stat.S_ISREG(status.st_mode) or foreign or status.st_size > MAX_BYTES:
            return None
        return stream.read(MAX_BYTES)
