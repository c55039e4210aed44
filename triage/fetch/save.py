"""Write what a source yields into files below a directory."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from triage.base.errors import OptionError
from triage.fetch.interface import Piece

MAX_NAME = 120


@dataclass(frozen=True, slots=True)
class FetchedFiles:
    """The names of the files, their bytes together, and whether the limit ended the fetch.

    `problems` names the files that could not be fetched, each with the reason.
    """

    names: tuple[str, ...]
    size: int
    is_cut: bool
    problems: tuple[str, ...] = ()


def save(pieces: Iterable[Piece], directory: Path, limit: int) -> FetchedFiles:
    """Append each piece to its file, up to `limit` bytes in all. Raises OptionError if a file cannot be written."""
    size, names, problems = 0, dict[str, None](), list[str]()
    try:
        for piece in pieces:
            if piece.problem:
                problems.append(f"{piece.name}: {piece.problem}")
                continue
            data = piece.text.encode("utf-8", "replace")
            if size + len(data) > limit:
                return FetchedFiles(tuple(names), size, True, tuple(problems))
            directory.mkdir(parents=True, exist_ok=True)  # not before: a query without lines leaves no directory
            name = _safe_name(piece.name)
            with (directory / name).open("ab" if name in names else "wb") as file:
                file.write(data)
            names[name] = None
            size += len(data)
    except OSError as error:
        raise OptionError(
            f"cannot write {directory}: {error.strerror}", hint="give a directory with free space with -o"
        ) from None
    return FetchedFiles(tuple(names), size, False, tuple(problems))


def _safe_name(name: str) -> str:
    """Return a file name without directories; the end of a long name tells files apart better than its beginning."""
    return re.sub(r"[^A-Za-z0-9._=@+-]+", "-", name).strip("-.")[-MAX_NAME:] or "log"
