"""The compiled catalog as one JSON file in the user's cache directory.

Plain JSON, never pickle: a manipulated cache can at worst contain other signatures, and is dropped as soon as its shape
is wrong. Writing is atomic and best effort; without a writable cache every run only takes longer.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

import msgspec

from triage.base.content_digest import digest_bytes
from triage.base.private_files import read_private_file, write_private_file
from triage.base.shared_types import share_type
from triage.catalog.signature_files import Stamp

_Cached = TypeVar("_Cached")
FORMAT_VERSION = 11  # raised when the same files compile to something else
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
    return digest_bytes(text.encode("utf-8", "surrogateescape"))


def name_file(directory: Path, sources: Iterable[str]) -> Path:
    """The cache file of a set of source directories: one per set, so that old versions do not pile up."""
    name = digest_bytes("\0".join(sources).encode("utf-8", "surrogateescape"))[:16]
    return directory / f"catalog-{name}.json"


class _CacheFile(msgspec.Struct):
    key: str
    catalog: msgspec.Raw


def read_cache(path: Path, expected: str, of_type: type[_Cached]) -> _Cached | None:
    """Read the value if the file is this user's, complete and has the key `expected`; otherwise None."""
    try:
        file = msgspec.json.decode(read_private_file(path) or b"", type=share_type(_CacheFile))
        return msgspec.json.decode(file.catalog, type=share_type(of_type)) if file.key == expected else None
    except (OSError, ValueError, RecursionError):
        return None


def write_cache(path: Path, expected: str, catalog: object) -> None:
    """Write a catalog, or a part of one, atomically, readable by the user alone. Do nothing if that is impossible."""
    try:
        data = msgspec.json.encode({"key": expected, "catalog": catalog})
    except ValueError:
        return
    write_private_file(path, data)
