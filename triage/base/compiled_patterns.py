"""Regular expressions in their compiled form, in the user's cache directory.

Python compiles each pattern again in each process; that takes a quarter of the time of a small job. Here a command
remembers the code that `re` makes of the patterns of triage's modules. The file belongs to one release of Python and to
this package. It stands behind a digest, and Python checks the code of each pattern before it accepts it. A file that
fails any of this is ignored and written again; without a cache directory every run only takes longer.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from triage.base import lazy_re
from triage.base.content_digest import digest_bytes
from triage.base.private_files import read_private_file, write_private_file
from triage.base.shared_types import share_type

FORMAT_VERSION = 1
_MAX_PATTERNS = 4096  # those of older versions stay until there are so many
_DIGEST_BYTES = 64
_NOTHING = msgspec.Raw(msgspec.msgpack.encode(None))


class StoredPattern(msgspec.Struct, frozen=True, array_like=True):
    """What `re` makes of a pattern. `code` holds numbers of four bytes in the order of this machine."""

    text: Any
    flags: int
    code: bytes
    groups: int
    group_numbers: dict[str, int]


class _File(msgspec.Struct):
    key: str
    patterns: dict[str, msgspec.Raw]


class PatternCache:
    """The patterns of a cache file, and those that were not in it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stored = _read(path)
        self.missing: dict[str, tuple[str | bytes, int]] = {}

    def find(self, key: str) -> re.Pattern[Any] | None:
        """Return a stored pattern; None if it is unknown, or Python refuses its code."""
        raw = self._stored.get(key)
        if raw is None:
            return None
        try:
            return _load(msgspec.msgpack.decode(raw, type=share_type(StoredPattern)))
        except (ValueError, TypeError, LookupError, RuntimeError, OverflowError):
            return None

    def write(self) -> None:
        """Add the missing patterns to the file. Do nothing if that is impossible."""
        known = _read(self._path) if self.missing else {}  # another command may have added some
        new = {key: _compile_to_store(*pattern) for key, pattern in self.missing.items() if key not in known}
        self.missing.clear()
        if not new:
            return
        known = known if len(known) + len(new) <= _MAX_PATTERNS else {}
        data = msgspec.msgpack.encode(_File(_compute_key(), known | new))
        write_private_file(self._path, digest_bytes(data).encode() + data)


def open_cache(directory: Path | None) -> None:
    """Take patterns from this directory from now on, in this process and its forks; from nowhere without one."""
    if directory is None or sys.implementation.name != "cpython":
        lazy_re.use_cache(None)
    else:
        lazy_re.use_cache(PatternCache(directory / f"patterns-{sys.implementation.cache_tag}.msgpack"))


def write_cache() -> None:
    """Store the patterns that were compiled since `open_cache`."""
    if isinstance(cache := lazy_re.current_cache(), PatternCache):
        cache.write()


@contextmanager
def patterns_cached_in(directory: Path | None) -> Iterator[None]:
    """Take patterns from this directory, and store those that were not there if no error is raised."""
    open_cache(directory)
    try:
        yield
        write_cache()
    finally:
        open_cache(None)


def list_missing() -> list[tuple[str, str | bytes, int]]:
    """Return the patterns that are not in the cache: their keys, their texts and their flags."""
    cache = lazy_re.current_cache()
    return [(key, *pattern) for key, pattern in cache.missing.items()] if cache is not None else []


def add_missing(patterns: Iterable[tuple[str, str | bytes, int]]) -> None:
    """Take over what `list_missing` returned in a forked process."""
    if (cache := lazy_re.current_cache()) is not None:
        cache.missing.update((key, (text, flags)) for key, text, flags in patterns)


def _load(stored: StoredPattern) -> re.Pattern[Any]:
    import _sre  # type: ignore[import-not-found]

    names: list[str | None] = [None] * (stored.groups + 1)
    for name, number in stored.group_numbers.items():
        names[number] = name
    code = memoryview(stored.code).cast("I").tolist()
    pattern: re.Pattern[Any] = _sre.compile(
        stored.text, stored.flags, code, stored.groups, stored.group_numbers, tuple(names)
    )
    return pattern


def _compile_to_store(text: str | bytes, flags: int) -> msgspec.Raw:
    """Return what is stored of a pattern: nothing if this Python does not give the code, or would read it otherwise."""
    from array import array

    try:
        from re import _compiler, _parser  # type: ignore[attr-defined]

        parsed = _parser.parse(text, flags)
        code = array("I", _compiler._code(parsed, flags)).tobytes()
        state = parsed.state
        stored = StoredPattern(text, flags | state.flags, code, state.groups - 1, dict(state.groupdict))
        raw = msgspec.Raw(msgspec.msgpack.encode(stored))
        return raw if _load(stored) == re.compile(text, flags) else _NOTHING
    except (ImportError, AttributeError, TypeError, ValueError, RuntimeError, OverflowError, re.error):
        return _NOTHING


def _read(path: Path) -> dict[str, msgspec.Raw]:
    try:
        data = read_private_file(path) or b""
        if digest_bytes(data[_DIGEST_BYTES:]).encode() != data[:_DIGEST_BYTES]:
            return {}
        file = msgspec.msgpack.decode(memoryview(data)[_DIGEST_BYTES:], type=share_type(_File))
    except (OSError, ValueError, RecursionError):
        return {}
    return file.patterns if file.key == _compute_key() else {}


def _compute_key() -> str:
    """Return what the code depends on: Python, and how this package derives patterns."""
    derivation = os.stat(os.path.join(os.path.dirname(__file__), "masked_re.py"))
    return f"{FORMAT_VERSION} {sys.version} {sys.byteorder} {derivation.st_size} {derivation.st_mtime_ns}"
