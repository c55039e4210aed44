"""The compiled catalog as one JSON file in the user's cache directory.

Plain JSON, never pickle: a cache that somebody tampered with can at worst give other signatures, and is dropped as soon
as
its shape is wrong. Writing is atomic and best effort; a cache that cannot be written only costs time.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
from collections.abc import Iterable
from pathlib import Path

from triage.catalog import codec
from triage.catalog.files import Stamp
from triage.catalog.model import Catalog

LOADER = 6  # raised when compiling gives something else for the same files
MAX_BYTES = 64 * 1024 * 1024
COMPILED_WITH = (
    ("evidence", "__init__.py"),
    ("scan", "windows.py"),
)  # modules besides this package that a compiled catalog depends on
OFF = frozenset({"", "0", "off", "no", "none"})


def directory(given: Path | None = None) -> Path | None:
    """Where caches are kept: as given, $TRIAGE_CACHE (`off` for none), or `triage` in the user's cache directory."""
    if given is not None:
        return given
    chosen = os.environ.get("TRIAGE_CACHE")
    if chosen is not None:
        return None if chosen.strip().lower() in OFF else Path(chosen)
    home = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(home):
        return Path(home) / "triage"
    user = os.path.expanduser("~")
    return Path(user) / ".cache" / "triage" if os.path.isabs(user) else None


def key(stamps: Iterable[Stamp]) -> str:
    """Changes when a file, its size, its time or this package changes."""
    here = os.path.dirname(__file__)
    package = os.path.dirname(here)
    others = [os.path.join(package, *path) for path in COMPILED_WITH]
    modules = [
        *(entry.path for entry in os.scandir(here) if entry.name.endswith(".py")),
        *filter(os.path.isfile, others),
    ]
    own = sorted(
        (os.path.relpath(path, package), (found := os.stat(path)).st_size, found.st_mtime_ns) for path in modules
    )
    text = json.dumps([LOADER, own, list(stamps)])
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def file(within: Path, sources: Iterable[str]) -> Path:
    """One file for each set of directories, so that old versions do not pile up."""
    name = hashlib.sha256("\0".join(sources).encode("utf-8", "surrogateescape")).hexdigest()[:16]
    return within / f"catalog-{name}.json"


def read(path: Path, expected: str) -> Catalog | None:
    """The catalog if the file is ours, complete and written for `expected`; otherwise None."""
    try:
        content = _content(path)
        data = json.loads(content) if content is not None else None
        if not isinstance(data, dict) or data.get("key") != expected:
            return None
        return codec.catalog_from(data.get("catalog"))
    except (OSError, ValueError, RecursionError):
        return None


def write(path: Path, expected: str, catalog: Catalog) -> None:
    """Put the catalog there in one step, readable by the user alone. Nothing happens if that is not possible."""
    import tempfile  # slow to import, and a cache hit does not write

    data = json.dumps(
        {"key": expected, "catalog": codec.catalog_data(catalog)}, ensure_ascii=False, separators=(",", ":")
    )
    temporary = ""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(prefix=path.name + ".", dir=path.parent)  # mkstemp makes it 0600
        with os.fdopen(descriptor, "wb") as out:
            out.write(data.encode())
        os.replace(temporary, path)
    except (OSError, ValueError):
        if temporary:
            with contextlib.suppress(OSError):
                os.unlink(temporary)


def _content(path: Path) -> bytes | None:
    """The bytes of a regular file of this user that nobody else can write."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    with open(os.open(path, flags), "rb") as stream:
        found = os.fstat(stream.fileno())
        foreign = hasattr(os, "getuid") and (found.st_uid != os.getuid() or found.st_mode & 0o022)
        if not stat.S_ISREG(found.st_mode) or foreign or found.st_size > MAX_BYTES:
            return None
        return stream.read(MAX_BYTES)
