"""Find signature files: the shipped directory, and every file that a catalog depends on."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

ABOUT = "catalog.yaml"  # in the shipped directory: the catalog's version
GROUPS = "groups.yaml"  # beside it: groups of edges, which signatures of the directory may name in `leads_to`
HEALTHY = "healthy.txt"  # beside it: lines of healthy jobs, at which the scan should not stop
EVERYDAY = "everyday.txt"  # beside it: lines of healthy programs that no cause may match
MAX_FILES = 10_000

Stamp = tuple[str, int, int]  # path, size, mtime in nanoseconds


def find_shipped_directory() -> Path | None:
    """`triage/_signatures` in a wheel, `signatures/` in a checkout; None if neither is there."""
    package = Path(__file__).resolve().parents[1]
    for candidate in (package / "_signatures", package.parent / "signatures"):
        if (candidate / ABOUT).is_file():
            return candidate
    return None


def list_signature_files(root: Path) -> list[Path]:
    """The signature files under a directory in a fixed order (the file itself if it is one)."""
    return [Path(path) for path, _, _ in list_stamps(root) if is_signature_file(path)]


def is_signature_file(path: str) -> bool:
    """Whether the name is that of a signature file."""
    return path.endswith((".yaml", ".yml")) and os.path.basename(path) not in (ABOUT, GROUPS)


def list_stamps(root: Path) -> Iterator[Stamp]:
    """Every file that the catalog depends on, in a fixed order; without unreadable directories."""
    try:
        if root.is_dir():
            yield from sorted(_walk_directory(os.fspath(root)))[:MAX_FILES]
        else:
            status = root.stat()
            yield os.fspath(root), status.st_size, status.st_mtime_ns
            groups = root.absolute().parent.parent / GROUPS
            if groups.is_file():
                yield os.fspath(groups), groups.stat().st_size, groups.stat().st_mtime_ns
    except OSError:
        return


def _walk_directory(top: str) -> Iterator[Stamp]:
    pending = [top]
    while pending:
        for entry in _list_entries(pending.pop()):
            if entry.name.startswith("."):
                continue
            if entry.is_dir(follow_symlinks=False):
                pending.append(entry.path)
            elif entry.name.endswith((".yaml", ".yml")) or entry.name == HEALTHY:
                try:
                    status = entry.stat()
                    yield entry.path, status.st_size, status.st_mtime_ns
                except OSError:  # a broken link: reported when it is read
                    yield entry.path, -1, -1


def _list_entries(directory: str) -> Iterable[os.DirEntry[str]]:
    try:
        with os.scandir(directory) as entries:
            return list(entries)
    except OSError:
        return []
