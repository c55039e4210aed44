"""Parse a page of a B-tree and the records in it, strictly: a page with any contradiction is damaged.

SQLite stores no checksums. What it does store twice is compared as its own integrity check does: cells, free blocks
and fragments must fill a page exactly, without an overlap, and row numbers must ascend. The format is that of
https://sqlite.org/fileformat2.html (sections 1.6 and 2.1).
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Callable
from dataclasses import dataclass

from triage.store.salvage.page_file import HEADER_BYTES

INNER_INDEX, INNER_TABLE, LEAF_INDEX, LEAF_TABLE = 2, 5, 10, 13
_KINDS = (INNER_INDEX, INNER_TABLE, LEAF_INDEX, LEAF_TABLE)
_INTEGER_BYTES = (0, 1, 2, 3, 4, 6, 8)
MAX_RECORD_BYTES = 1 << 30  # SQLite's own limit is near it
Value = int | float | str | bytes | None


class DamagedPageError(ValueError):
    """A page or a record contradicts itself."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell. `rowid` is None in an index, `child` and `overflow` are page numbers or 0.

    `payload` is the part on this page of a record of `size` bytes; both are empty on an inner page of a table.
    """

    rowid: int | None
    payload: bytes
    size: int
    overflow: int
    child: int


@dataclass(frozen=True, slots=True)
class BtreePage:
    """A page of a B-tree. `last_child` is the rightmost page below it, 0 for a leaf."""

    kind: int
    cells: tuple[Cell, ...]
    last_child: int

    def children(self) -> tuple[int, ...]:
        """Return the pages below this page, in order."""
        return (*(cell.child for cell in self.cells), self.last_child) if self.last_child else ()


def is_btree_page(page: bytes, number: int) -> bool:
    """Return whether this is a sound page of a B-tree."""
    try:
        parse_page(page, number)
    except DamagedPageError:
        return False
    return True


def parse_page(page: bytes, number: int) -> BtreePage:
    """Parse a page. Raises DamagedPageError."""
    start = HEADER_BYTES if number == 1 else 0
    if len(page) < start + 12 or page[start] not in _KINDS:
        raise DamagedPageError("it is no page of a table or an index")
    kind, free_block, count, content, fragments = struct.unpack_from(">BHHHB", page, start)
    content = content or 65536
    array = start + (12 if kind in (INNER_INDEX, INNER_TABLE) else 8)
    if not array + 2 * count <= content <= len(page):
        raise DamagedPageError("its cells do not fit")
    pointers = struct.unpack_from(f">{count}H", page, array)
    spans, cells = [], []
    for pointer in pointers:
        if not content <= pointer <= len(page) - 4:
            raise DamagedPageError("a cell is outside of it")
        cell, end = _parse_cell(page, pointer, kind)
        spans.append((pointer, max(end, pointer + 4)))
        cells.append(cell)
    _check_space(page, [*spans, *_free_blocks(page, free_block)], content, fragments)
    rowids = [cell.rowid for cell in cells if cell.rowid is not None]
    if any(one >= two for one, two in itertools.pairwise(rowids)):
        raise DamagedPageError("its row numbers do not ascend")
    last = int.from_bytes(page[start + 8 : start + 12], "big") if array - start == 12 else 0
    return BtreePage(kind, tuple(cells), last)


def _free_blocks(page: bytes, pointer: int) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    while pointer:
        if pointer > len(page) - 4 or (spans and pointer < spans[-1][1]):
            raise DamagedPageError("its free blocks do not ascend")
        following, size = struct.unpack_from(">HH", page, pointer)
        spans.append((pointer, pointer + size))
        pointer = following
    return spans


def _check_space(page: bytes, spans: list[tuple[int, int]], content: int, fragments: int) -> None:
    """Raise DamagedPageError unless the spans and `fragments` single bytes fill the page from `content` on."""
    end, gaps = content, 0
    for first, last in sorted(spans):
        if first < end or last > len(page):
            raise DamagedPageError("two cells overlap")
        gaps += first - end
        end = last
    if spans and gaps + len(page) - end != fragments:
        raise DamagedPageError("its free space does not add up")


def _parse_cell(page: bytes, start: int, kind: int) -> tuple[Cell, int]:
    """Return the cell at an offset, and the offset of its end."""
    child, at, size, rowid = 0, start, 0, None
    if kind in (INNER_INDEX, INNER_TABLE):
        child, at = int.from_bytes(page[at : at + 4], "big"), at + 4
    if kind != INNER_TABLE:
        size, at = read_varint(page, at)
    if kind in (INNER_TABLE, LEAF_TABLE):
        unsigned, at = read_varint(page, at)
        rowid = unsigned - (1 << 64) if unsigned >> 63 else unsigned
    if size > MAX_RECORD_BYTES:
        raise DamagedPageError("a record is too large")
    local = _local_bytes(size, len(page), kind == LEAF_TABLE)
    end = at + local + (4 if local < size else 0)
    if end > len(page):
        raise DamagedPageError("a record is cut")
    overflow = int.from_bytes(page[at + local : end], "big")
    return Cell(rowid, page[at : at + local], size, overflow, child), end


def _local_bytes(size: int, usable: int, is_table: bool) -> int:
    """Return how many bytes of a record are on its page; the rest is on overflow pages (section 1.6)."""
    largest = usable - 35 if is_table else (usable - 12) * 64 // 255 - 23
    if size <= largest:
        return size
    smallest = (usable - 12) * 32 // 255 - 23
    local = smallest + (size - smallest) % (usable - 4)
    return local if local <= largest else smallest


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a number of one to nine bytes, and the offset after it. Raises DamagedPageError."""
    value = 0
    for length in range(9):
        if at + length >= len(data):
            raise DamagedPageError("a number is cut")
        byte = data[at + length]
        if length == 8:
            return value << 8 | byte, at + 9
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + length + 1
    raise AssertionError


def read_payload(cell: Cell, read_page: Callable[[int], bytes]) -> bytes:
    """Return a whole record with what is on overflow pages. Raises DamagedPageError."""
    parts, missing, number = [cell.payload], cell.size - len(cell.payload), cell.overflow
    while missing > 0:
        page = read_page(number)
        if not page:
            raise DamagedPageError(f"page {number} with the rest of a record is missing")
        parts.append(page[4 : 4 + missing])
        missing -= len(page) - 4
        number = int.from_bytes(page[:4], "big")
        if (number == 0) != (missing <= 0):
            raise DamagedPageError("the rest of a record is damaged")
    return b"".join(parts)


def decode_record(data: bytes) -> list[Value]:
    """Return the values of a record (section 2.1). Raises DamagedPageError."""
    header, at = read_varint(data, 0)
    if not at <= header <= len(data):
        raise DamagedPageError("the header of a record is damaged")
    kinds = []
    while at < header:
        kind, at = read_varint(data, at)
        kinds.append(kind)
    values: list[Value] = []
    for kind in kinds:
        value, at = _decode_value(data, at, kind)
        values.append(value)
    if at != len(data):
        raise DamagedPageError("the length of a record is wrong")
    return values


def _decode_value(data: bytes, at: int, kind: int) -> tuple[Value, int]:
    """Return the value of a serial type at an offset, and the offset after it."""
    if kind in (10, 11):
        raise DamagedPageError("a value has an unknown type")
    size = 8 if kind == 7 else 0 if kind in (8, 9) else (kind - 12) // 2 if kind >= 12 else _INTEGER_BYTES[kind]
    raw = data[at : at + size]
    if len(raw) < size:
        raise DamagedPageError("a value is cut")
    if kind == 0:
        return None, at
    if kind == 7:
        return float(struct.unpack(">d", raw)[0]), at + size
    if kind < 12:
        return (kind - 8 if kind in (8, 9) else int.from_bytes(raw, "big", signed=True)), at + size
    try:
        return (raw if kind % 2 == 0 else raw.decode("utf-8")), at + size
    except UnicodeDecodeError:
        raise DamagedPageError("a text is not UTF-8") from None
