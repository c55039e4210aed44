"""A class of hostile input: how to write it, and what `triage` must do with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MIB = 1 << 20
PIECE = 1 << 20


@dataclass(frozen=True, slots=True)
class Job:
    """The directory of a job to write hostile files into.

    `good` is the log whose diagnosis must come out, for archives that hold it. `is_full` asks for the real size; tests
    use a reduced one.
    """

    path: Path
    good: bytes
    is_full: bool = False

    def size(self, reduced: int, full: int) -> int:
        """Return the size to write."""
        return full if self.is_full else reduced

    def write(self, name: str, data: bytes | Iterable[bytes]) -> Path:
        """Write a file of the job from its bytes, or from pieces of them."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            for piece in (data,) if isinstance(data, bytes) else data:
                file.write(piece)
        return path


@dataclass(frozen=True, slots=True)
class HostileCase:
    """One class of hostile input.

    `warning` is a pattern for "code: message" of a warning that must come. Where none may come because the input is
    read in full, it is "" and `silent` says why. `holds_good`: the good log is inside of the hostile file, else it
    stands beside it. `seconds` and `memory` (MiB that the process may grow by) are the bounds at either size.
    """

    name: str
    write: Callable[[Job], Any]
    warning: str
    silent: str = ""
    holds_good: bool = False
    seconds: float = 120.0
    memory: int = 400

    def __post_init__(self) -> None:
        assert bool(self.warning) is not bool(self.silent), f"{self.name}: a warning, or why there is none"


def repeat(piece: bytes, size: int) -> Iterable[bytes]:
    """Yield `piece` again and again until there are `size` bytes."""
    block = piece * max(1, PIECE // len(piece))
    while size > 0:
        yield block[:size]
        size -= len(block)
