"""Files at addresses: list and classify them, many at a time, and read them as streams."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import islice

from triage.base.addresses import displayed_address
from triage.remote.interface import CELL, RemoteObject
from triage.remote.opened_object import ObjectRuns
from triage.remote.session import current_session
from triage.sources.bytestream import ByteStream, Damage
from triage.sources.classify import HEAD, SNIFF, classify, classify_padded, needs_more
from triage.sources.interface import File, printable_name

_WHOLE_CELLS = 4
"""An object of so many cells is read with its first bytes: one request instead of two."""


def list_files(address: str, most: int, names: Collection[str]) -> Iterator[tuple[File, OSError | None]]:
    """Yield the objects below an address, each classified by its first bytes, or with the error that prevented it.

    At most `most` of them; none gets a name in `names`, or one twice: addresses may differ only in what is not shown.
    Raises AddressError when the address cannot be listed.
    """
    used = set(names)
    session = current_session()
    for file, error in session.map(_classify, islice(session.list_objects(address), max(0, most))):
        name, number = file.name, 1
        while file.name in used:
            number += 1
            file = File(f"{name}#{number}", file.path, file.kind, file.size, file.mtime, file.encoding)
        used.add(file.name)
        yield file, error


def _classify(item: RemoteObject) -> tuple[File, OSError | None]:
    name = printable_name(displayed_address(item.address))
    if not item.size:
        return File(name, item.address, "empty", 0, item.mtime), None
    session = current_session()
    try:
        count = _WHOLE_CELLS if item.size <= _WHOLE_CELLS * CELL else 1
        run = session.read_run(item, 0, count)
        head = run[:SNIFF]
        if len(head) == SNIFF and needs_more(head):
            head = run[:HEAD]
        kind, encoding = classify(head)
        if kind == "binary" and not head.strip(b"\0"):
            last = session.read_run(item, (item.size - 1) // CELL)
            kind, encoding = classify_padded(last[-SNIFF:])
    except OSError as error:
        return File(name, item.address, "binary", item.size, item.mtime), error
    return File(name, item.address, kind, item.size, item.mtime, encoding), None


class ObjectStream(ByteStream):
    """An object at an address, with seeking to any offset. An error ends it with `damage`."""

    def __init__(self, address: str) -> None:
        super().__init__()
        self._session = current_session()
        self._item = self._session.object_at(address)
        self._runs: ObjectRuns | None = None
        self._offset = 0

    def _read_piece(self) -> bytes:
        try:
            if self._runs is None:
                self._runs = ObjectRuns(self._session, self._item, self._offset)
            piece = self._runs.next_run()
        except OSError as error:
            reason = error.strerror or error
            self.damage = Damage("unreadable", f"reading failed after {self._offset:,} bytes: {reason}")
            return b""
        self._offset += len(piece)
        return piece

    def seek(self, offset: int, whence: int = 0, /) -> int:
        """Go to `offset`, counted from the start, from here or from the end, without reading."""
        offset += {0: 0, 1: self.tell(), 2: self._item.size}[whence]
        if offset < 0:
            raise OSError(22, "negative offset")
        if self._base <= offset <= self._base + len(self._buffer):
            self._position = offset - self._base
        else:
            self._close_runs()
            self._base = self._offset = offset
            self._buffer, self._position = b"", 0
        self._is_over = False
        return self.tell()

    def seekable(self) -> bool:
        """Return True: any offset can be reached."""
        return True

    def close(self) -> None:
        """Give up what was requested ahead."""
        self._close_runs()
        super().close()

    def _close_runs(self) -> None:
        runs, self._runs = getattr(self, "_runs", None), None
        if runs is not None:
            runs.close()
