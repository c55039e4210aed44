"""triage.store.salvage.btree: pages of real SQLite files, and what contradicts itself in them."""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Callable

import pytest

from triage.store.salvage import btree
from triage.store.salvage.btree import Cell, DamagedPageError

pytestmark = pytest.mark.sqlite_only
SIZE = 4096
ROWS = [(number, f"row {number}", number * 1.5, None, bytes([number])) for number in range(1, 9)]
Damage = Callable[[bytearray], None]


@pytest.fixture(scope="module")
def page() -> bytes:
    """The page of a table with a free block, where a row was deleted."""
    with sqlite3.connect(":memory:") as db:
        db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, text, number, absent, raw)")
        db.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?)", ROWS)
        db.executemany("INSERT INTO t VALUES (?, 'row x', 1.5, NULL, x'00')", [(90,), (91,), (92,)])
        db.execute("DELETE FROM t WHERE id IN (90, 92)")
        return bytes(db.serialize()[SIZE : 2 * SIZE])


def put(page: bytearray, at: int, number: int) -> None:
    """Write a number of two bytes."""
    page[at : at + 2] = struct.pack(">H", number)


def pointer(page: bytearray, index: int) -> int:
    """Return where the cell of a leaf begins."""
    return int(struct.unpack_from(">H", page, 8 + 2 * index)[0])


def test_a_sound_page_gives_its_rows(page: bytes) -> None:
    """Numbers, texts, bytes and nothing come out as they were stored; the row number is no part of the record."""
    parsed = btree.parse_page(page, 2)
    records = {cell.rowid: btree.decode_record(btree.read_payload(cell, lambda _: b"")) for cell in parsed.cells}
    assert [(rowid, *record[1:]) for rowid, record in records.items()][:8] == ROWS
    assert list(records)[8:] == [91]
    assert parsed.children() == ()
    assert btree.is_btree_page(page, 2)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda page: page.__setitem__(0, 7), "no page of a table"),
        (lambda page: put(page, 3, 4000), "cells do not fit"),
        (lambda page: put(page, 5, 9), "cells do not fit"),
        (lambda page: put(page, 8, SIZE - 1), "a cell is outside"),
        (lambda page: put(page, 8, 20), "a cell is outside"),
        (lambda page: put(page, 8, pointer(page, 1)), "two cells overlap"),
        (lambda page: page.__setitem__(7, page[7] + 1), "free space does not add up"),
        (lambda page: put(page, 1, SIZE - 2), "free blocks do not ascend"),
        (lambda page: put(page, int(struct.unpack_from(">H", page, 1)[0]), 40), "free blocks do not ascend"),
        (lambda page: page.__setitem__(pointer(page, 8) + 1, 1), "row numbers do not ascend"),
        (lambda page: page.__setitem__(slice(pointer(page, 0), pointer(page, 0) + 6), b"\xff" * 6), "too large"),
        (lambda page: page.__setitem__(pointer(page, 0), 120), "a record is cut"),
    ],
)
def test_a_page_that_contradicts_itself_is_damaged(page: bytes, damage: Damage, message: str) -> None:
    """Whatever was overwritten, no row comes out that was not stored."""
    damaged = bytearray(page)
    damage(damaged)
    with pytest.raises(DamagedPageError, match=message):
        btree.parse_page(bytes(damaged), 2)
    assert not btree.is_btree_page(bytes(damaged), 2)


def test_an_inner_page_has_a_last_child() -> None:
    """A table of many rows has a page above its leaves."""
    with sqlite3.connect(":memory:") as db:
        db.execute("CREATE TABLE t (text)")
        db.executemany("INSERT INTO t VALUES (?)", [("x" * 900,) for _ in range(40)])
        data = db.serialize()
    parsed = btree.parse_page(data[SIZE : 2 * SIZE], 2)
    assert parsed.kind == btree.INNER_TABLE
    children = parsed.children()
    assert len(children) == len(parsed.cells) + 1
    rows = [
        cell
        for number in children
        for cell in btree.parse_page(data[(number - 1) * SIZE : number * SIZE], number).cells
    ]
    assert [cell.rowid for cell in rows] == list(range(1, 41))


@pytest.mark.parametrize(
    ("pages", "message"),
    [
        ({5: struct.pack(">I", 6) + b"b" * 12, 6: struct.pack(">I", 0) + b"c" * 12}, ""),
        ({5: struct.pack(">I", 6) + b"b" * 12}, "page 6 with the rest of a record is missing"),
        ({5: struct.pack(">I", 0) + b"b" * 12}, "the rest of a record is damaged"),
        ({5: struct.pack(">I", 6) + b"b" * 12, 6: struct.pack(">I", 7) + b"c" * 12}, "the rest of a record is damaged"),
    ],
)
def test_the_rest_of_a_record_is_on_a_chain_of_pages(pages: dict[int, bytes], message: str) -> None:
    """The chain ends exactly where the record does."""
    cell = Cell(1, b"a" * 4, 24, 5, 0)
    if message:
        with pytest.raises(DamagedPageError, match=message):
            btree.read_payload(cell, lambda number: pages.get(number, b""))
    else:
        assert btree.read_payload(cell, lambda number: pages.get(number, b"")) == b"aaaa" + b"b" * 12 + b"c" * 8


@pytest.mark.parametrize(
    ("data", "value"),
    [(b"\x05", 5), (b"\x81\x00", 128), (b"\xff" * 9, (1 << 64) - 1), (b"\x80", None), (b"\xff" * 8, None)],
)
def test_a_number_has_up_to_nine_bytes(data: bytes, value: int | None) -> None:
    """The last of nine bytes has eight bits; a number that is cut is damaged."""
    if value is None:
        with pytest.raises(DamagedPageError, match="a number is cut"):
            btree.read_varint(data, 0)
    else:
        assert btree.read_varint(data, 0) == (value, len(data))


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (b"\x09\x01", "the header of a record is damaged"),
        (b"\x02\x01\x05\x05", "the length of a record is wrong"),
        (b"\x02\x0a", "unknown type"),
        (b"\x02\x06\x00", "a value is cut"),
        (b"\x02\x0f\xff", "not UTF-8"),
    ],
)
def test_a_record_that_contradicts_itself_is_damaged(record: bytes, message: str) -> None:
    """The header says how long the values are."""
    with pytest.raises(DamagedPageError, match=message):
        btree.decode_record(record)


def test_constants_and_floats_are_values() -> None:
    """0 and 1 need no bytes, a number of eight bytes may be a float."""
    assert btree.decode_record(b"\x04\x08\x09\x07" + struct.pack(">d", 2.5)) == [0, 1, 2.5]
