"""A directory of generated pages: find outdated pages, and bring the directory up to date.

A generated page begins with a mark. Only such pages are removed; pages that people wrote stay.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from triage.base.errors import OptionError


def find_stale_pages(directory: Path, pages: Mapping[str, str], mark: str) -> list[str]:
    """The names of pages that are missing, differ or are obsolete. OptionError if the directory cannot be read."""
    try:
        differing = [name for name, content in pages.items() if _read(directory / name) != content]
        return sorted([*differing, *_list_leftovers(directory, pages, mark)])
    except OSError as error:
        hint = "give -o a directory that you can read"
        raise OptionError(f"cannot read {directory}: {error.strerror}", hint=hint) from None


def write_pages(directory: Path, pages: Mapping[str, str], mark: str) -> None:
    """Write these pages and remove obsolete ones.

    OptionError if the directory cannot be written, or contains a page of this name that people wrote.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        existing = ((name, _read(directory / name)) for name in pages)
        foreign = [name for name, content in existing if content is not None and not content.startswith(mark)]
        if foreign:
            message = f"{directory / foreign[0]} was not written by this command"
            raise OptionError(message, hint="give -o a directory of its own")
        for name in _list_leftovers(directory, pages, mark):
            (directory / name).unlink()
        for name in find_stale_pages(directory, pages, mark):
            (directory / name).write_text(pages[name], encoding="utf-8", newline="\n")
    except OSError as error:
        hint = "give -o a directory that you can write to"
        raise OptionError(f"cannot write to {directory}: {error.strerror}", hint=hint) from None


def _list_leftovers(directory: Path, pages: Mapping[str, str], mark: str) -> list[str]:
    if not directory.is_dir():
        return []
    others = (path for path in directory.glob("*.md") if path.name not in pages)
    return [path.name for path in others if (_read(path) or "").startswith(mark)]


def _read(path: Path) -> str | None:
    try:
        return path.read_bytes().decode("utf-8", "replace")
    except (FileNotFoundError, NotADirectoryError):
        return None
