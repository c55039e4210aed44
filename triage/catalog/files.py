"""Where signature files lie: the shipped directory, and every file below a directory that a catalog depends on."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

ABOUT = "catalog.yaml"  # in the shipped directory: the catalog's version
HEALTHY = "healthy.txt"  # beside it: lines that must not open the scan's gate
MAX_FILES = 10_000

Stamp = tuple[str, int, int]  # path, size, mtime in nanoseconds


def shipped_directory() -> Path | None:
    """`triage/_signatures` in a wheel, `signatures/` in a checkout; None if neither is there."""
    package = Path(__file__).resolve().parents[1]
    for candidate in (package / "_signatures", package.parent / "signatures"):
        if (candidate / ABOUT).is_file():
            return candidate
    return None


def files(root: Path) -> list[Path]:
    """The signature files under a directory in a fixed order (the file itself if it is one)."""
    return [Path(path) for path, _, _ in stamps(root) if is_signature(path)]


def is_signature(path: str) -> bool:
    return path.endswith((".yaml", ".yml")) and os.path.basename(path) != ABOUT


def stamps(root: Path) -> Iterator[Stamp]:
    """Every file that the catalog depends on, in a fixed order. What cannot be looked at is left out."""
    try:
        if root.is_dir():
            yield from sorted(_walk(os.fspath(root)))[:MAX_FILES]
        else:
            found = root.stat()
            yield os.fspath(root), found.st_size, found.st_mtime_ns
    except OSError:
        return


def _walk(top: str) -> Iterator[Stamp]:
    pending = [top]
    while pending:
        for entry in _entries(pending.pop()):
            if entry.name.startswith("."):
                continue
            if entry.is_dir(follow_symlinks=False):
                pending.append(entry.path)
            elif entry.name.endswith((".yaml", ".yml")) or entry.name == HEALTHY:
                try:
                    found = entry.stat()
                except OSError:  # a link to nothing: reported when it is read
                    yield entry.path, -1, -1
                    continue
                yield entry.path, found.st_size, found.st_mtime_ns


def _entries(directory: str) -> Iterable[os.DirEntry[str]]:
    try:
        with os.scandir(directory) as entries:
            return list(entries)
    except OSError:
        return []
