"""A directory of generated pages: which of them are out of date, and bringing it up to date.

A page that was generated begins with a mark. Only such pages are ever removed; what people wrote stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from triage.base.errors import OptionError


def stale(directory: Path, wanted: Mapping[str, str], mark: str) -> list[str]:
    """The names of pages that are missing, differ or should not be there any more. Raises OptionError when that cannot
    be told.
    """
    try:
        differing = [name for name, content in wanted.items() if _read(directory / name) != content]
        return sorted([*differing, *_left_over(directory, wanted, mark)])
    except OSError as error:
        raise OptionError(
            f"cannot read {directory}: {error.strerror}", hint="give -o a directory that you may read"
        ) from None


def write(directory: Path, wanted: Mapping[str, str], mark: str) -> None:
    """Make the directory hold these pages. Raises OptionError when it cannot be written, or when a page is somebody's
    own.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        own = [name for name in wanted if (found := _read(directory / name)) is not None and not found.startswith(mark)]
        if own:
            raise OptionError(
                f"{directory / own[0]} was not written by this command", hint="give -o a directory of its own"
            )
        for name in _left_over(directory, wanted, mark):
            (directory / name).unlink()
        for name, content in wanted.items():
            if _read(directory / name) != content:
                (directory / name).write_text(content, encoding="utf-8", newline="\n")
    except OSError as error:
        raise OptionError(
            f"cannot write to {directory}: {error.strerror}", hint="give -o a directory that you may write"
        ) from None


def _left_over(directory: Path, wanted: Mapping[str, str], mark: str) -> list[str]:
    if not directory.is_dir():
        return []
    return [
        path.name for path in directory.glob("*.md") if path.name not in wanted and (_read(path) or "").startswith(mark)
    ]


def _read(path: Path) -> str | None:
    try:
        return path.read_bytes().decode("utf-8", "replace")
    except (FileNotFoundError, NotADirectoryError):
        return None
