"""Open what is read at any offset: files of this machine by descriptors, objects of addresses by ranges.

Everything after the discovery that reads a text by its path opens it here, so that both are read by the same code.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Collection, Iterable
from typing import Any, Protocol

from triage.base.addresses import displayed_address, is_address
from triage.model.diagnosis import RemoteCost

_FLAGS = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)


class OpenedFile(Protocol):
    """A file or an object. Reading raises OSError."""

    def read_at(self, length: int, offset: int) -> bytes:
        """Return bytes at `offset`: `length` of them, fewer only at the end."""

    def read_into(self, buffer: memoryview, offset: int) -> int:
        """Fill the start of `buffer` with bytes at `offset`; return how many, 0 only at the end."""

    def known_newlines(self, start: int, stop: int) -> int | None:
        """Return the newlines between two offsets, if they were counted before."""

    def size(self) -> int:
        """Return how many bytes it has now."""

    def forget(self, start: int, stop: int, needed: Callable[[], Collection[int]]) -> None:
        """Say that bytes from `start` to `stop` were scanned, and which cells (of 256 KiB) may be read again."""

    def close(self) -> None:
        """Close it."""


class LocalFile:
    """A file of this machine."""

    __slots__ = ("_fd",)

    def __init__(self, path: str) -> None:
        self._fd = os.open(path, _FLAGS)  # without O_NONBLOCK, opening waits if a pipe has replaced the file

    def read_at(self, length: int, offset: int) -> bytes:
        """Return bytes at `offset`."""
        return os.pread(self._fd, length, offset)

    def read_into(self, buffer: memoryview, offset: int) -> int:
        """Fill the start of `buffer`."""
        return os.preadv(self._fd, [buffer], offset)

    def known_newlines(self, start: int, stop: int) -> int | None:
        """Return None: reading a file again costs little."""
        return None

    def size(self) -> int:
        """Return how many bytes it has now."""
        return os.fstat(self._fd).st_size

    def forget(self, start: int, stop: int, needed: Callable[[], Collection[int]]) -> None:
        """Do nothing: the system caches files."""

    def close(self) -> None:
        """Close the descriptor."""
        os.close(self._fd)


def open_file(path: str, *, is_scanned: bool = False) -> OpenedFile:
    """Open a file by its path, or an object that was listed by its address. Raises OSError.

    `is_scanned`: it will be read from beginning to end.
    """
    if not is_address(path):
        return LocalFile(path)
    from triage.remote.opened_object import OpenedObject
    from triage.remote.session import current_session

    session = current_session()
    return OpenedObject(session, session.object_at(path), is_scanned=is_scanned)


def describe_file(path: str) -> Any:
    """Return what another machine needs to open a file or an object, as JSON can carry it."""
    if not is_address(path):
        return path
    from triage.remote.session import current_session

    return current_session().describe_object(path)


def accept_file(described: Any) -> str:
    """Return the path by which this machine opens what `describe_file` described on another one."""
    if isinstance(described, str):
        return described
    from triage.remote.session import current_session

    return current_session().accept_object(described)


def read_edges(path: str, size: int, first: int, last: int) -> tuple[bytes, bytes]:
    """Return the first and the last bytes of a file that has `size` bytes; they do not overlap. Raises OSError."""
    opened = open_file(path)
    try:
        start = _read(opened, 0, first)
        return start, _read(opened, max(first, size - last), last) if size > first else b""
    finally:
        opened.close()


def _read(opened: OpenedFile, offset: int, length: int) -> bytes:
    parts: list[bytes] = []
    while length > 0 and (part := opened.read_at(length, offset)):
        parts.append(part)
        offset += len(part)
        length -= len(part)
    return b"".join(parts)


def warm(reads: Iterable[tuple[str, int]]) -> None:
    """Read ahead of need what lies at these (path, offset), where that waits for a network."""
    wanted = [read for read in reads if is_address(read[0])]
    if wanted:
        from triage.remote.interface import CELL
        from triage.remote.session import current_session

        current_session().warm((path, offset // CELL) for path, offset in wanted)


def cost_so_far(paths: Iterable[str]) -> RemoteCost | None:
    """Return what reading addresses has cost this process; None if none of the paths is one."""
    if not any(map(is_address, paths)):
        return None
    from triage.remote.session import current_session

    return current_session().cost()


def stop_threads(paths: Iterable[str]) -> None:
    """End the threads that read the addresses among `paths`: processes may be forked until the next one is read."""
    if any(map(is_address, paths)):
        from triage.remote.session import current_session

        current_session().stop_threads()


def find_changed_objects(paths: Iterable[str]) -> dict[str, str]:
    """Return what happened to objects that are not as they were listed, by their addresses as they are shown."""
    addresses = list(filter(is_address, paths))
    if not addresses:
        return {}
    from triage.remote.session import current_session

    changed = current_session().find_changed(addresses)
    return {displayed_address(address): reason for address, reason in changed.items()}


def why_unreadable(path: str, size: int) -> str | None:
    """Return why a file that was scanned at this size cannot be read again, if so; objects are looked at together."""
    if is_address(path):
        return None
    try:
        fd = os.open(path, _FLAGS)
    except OSError as error:
        return error.strerror
    try:
        status = os.fstat(fd)
    finally:
        os.close(fd)
    return None if stat.S_ISREG(status.st_mode) and status.st_size >= size else "it became shorter"
