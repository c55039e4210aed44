"""Read the pages of a store without SQLite: the file, and over it the committed pages of its write-ahead log.

The formats are those of https://sqlite.org/fileformat2.html (sections 1.3, 1.5 and 4).
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType

from triage.base.errors import StoreError

MAGIC = b"SQLite format 3\0"
HEADER_BYTES = 100
PAGE_SIZES = (4096, 512, 1024, 2048, 8192, 16384, 32768, 65536)  # SQLite's default first
SAMPLED_PAGES = 64
_WAL_HEADER, _FRAME_HEADER = struct.Struct(">8I"), struct.Struct(">6I")
_WAL_MAGIC = {0x377F0682: "<", 0x377F0683: ">"}  # the byte order of its checksums


class PageFile:
    """The pages of a store, from 1 on. A page that the disk does not give back is missing, like one after the end."""

    def __init__(self, path: Path, is_btree_page: Callable[[bytes, int], bool]) -> None:
        try:
            self._file = os.open(path, os.O_RDONLY)
        except OSError as error:
            hint = "name the store's file with --store"
            raise StoreError(f"the store cannot be read: {error.strerror}", hint=hint, path=str(path)) from None
        self._bytes = os.fstat(self._file).st_size
        header = self._read(0, HEADER_BYTES)
        self.has_header = header[:16] == MAGIC
        self.page_size = _find_page_size(header if self.has_header else b"", self._read, self._bytes, is_btree_page)
        self._log = read_log(Path(f"{path}-wal"), self.page_size)
        self.count = max(-(-self._bytes // self.page_size), max(self._log, default=0))
        self.has_header = self.page(1)[:16] == MAGIC

    def __enter__(self) -> PageFile:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        os.close(self._file)

    def page(self, number: int) -> bytes:
        """Return a page, and no bytes if it is missing or cut."""
        if number in self._log:
            return self._log[number]
        content = self._read((number - 1) * self.page_size, self.page_size) if 0 < number <= self.count else b""
        return content if len(content) == self.page_size else b""

    def user_version(self) -> int | None:
        """Return the version of the tables, or None without a header."""
        return int.from_bytes(self.page(1)[60:64], "big") if self.has_header else None

    def free_pages(self) -> set[int] | None:
        """Return the numbers of all unused pages; None if their list is damaged."""
        if not self.has_header:
            return None
        trunk, total = struct.unpack_from(">II", self.page(1), 32)
        free: set[int] = set()
        while trunk:
            page = self.page(trunk)
            count = int.from_bytes(page[4:8], "big") if page else self.page_size
            if trunk in free or count > self.page_size // 4 - 2:
                return None
            free.update((trunk, *struct.unpack_from(f">{count}I", page, 8)))
            trunk = int.from_bytes(page[:4], "big")
        return free if len(free) == total and all(2 <= number <= self.count for number in free) else None

    def _read(self, offset: int, count: int) -> bytes:
        try:
            return os.pread(self._file, count, offset)
        except OSError:  # a bad sector
            return b""


def _find_page_size(
    header: bytes, read: Callable[[int, int], bytes], total: int, is_btree_page: Callable[[bytes, int], bool]
) -> int:
    """Return the page size: the header's if pages of this size make sense, else the size that fits most pages."""

    def fitting_pages(size: int) -> int:
        count = total // size
        step = max(1, count // SAMPLED_PAGES)
        return sum(size for page in range(2, count + 1, step) if is_btree_page(read((page - 1) * size, size), page))

    stated = int.from_bytes(header[16:18], "big")
    stated = 65536 if stated == 1 else stated
    if stated in PAGE_SIZES and (total < 2 * stated or fitting_pages(stated)):
        return stated
    return max(PAGE_SIZES, key=fitting_pages)


def read_log(path: Path, page_size: int) -> dict[int, bytes]:
    """Return the pages of all complete transactions in a write-ahead log, each in its last version."""
    try:
        log = path.read_bytes()
    except OSError:
        return {}
    committed: dict[int, bytes] = {}
    open_transaction: dict[int, bytes] = {}
    for number, pages_after_commit, page in _frames(log, page_size):
        open_transaction[number] = page
        if pages_after_commit:
            committed.update(open_transaction)
            open_transaction.clear()
    return committed


def _frames(log: bytes, page_size: int) -> Iterator[tuple[int, int, bytes]]:
    """Yield (page number, pages of the store after a commit or 0, page) until a checksum is wrong."""
    if len(log) < _WAL_HEADER.size:
        return
    magic, _, size, _, *salts, one, two = _WAL_HEADER.unpack_from(log)
    order = _WAL_MAGIC.get(magic)
    if order is None or size != page_size or _checksum(log[:24], order, (0, 0)) != (one, two):
        return
    sums = (one, two)
    for start in range(_WAL_HEADER.size, len(log) - _FRAME_HEADER.size - size + 1, _FRAME_HEADER.size + size):
        number, after, *frame_salts, one, two = _FRAME_HEADER.unpack_from(log, start)
        page = log[start + _FRAME_HEADER.size : start + _FRAME_HEADER.size + size]
        sums = _checksum(log[start : start + 8] + page, order, sums)
        if frame_salts != salts or sums != (one, two):
            return
        yield number, after, page


def _checksum(data: bytes, order: str, start: tuple[int, int]) -> tuple[int, int]:
    one, two = start
    numbers = struct.unpack(f"{order}{len(data) // 4}I", data)
    for index in range(0, len(numbers), 2):
        one = (one + numbers[index] + two) & 0xFFFFFFFF
        two = (two + numbers[index + 1] + one) & 0xFFFFFFFF
    return one, two
