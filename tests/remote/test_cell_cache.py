"""triage.remote.cell_cache and newline_counts: what is known of the cells of objects that were received."""

from __future__ import annotations

import os
import random
import tempfile
from pathlib import Path

import pytest

from triage.remote import cell_cache
from triage.remote.cell_cache import CellCache, CellKey
from triage.remote.interface import CELL, RemoteObject
from triage.remote.newline_counts import NewlineCounts


def key(number: int) -> CellKey:
    return "s3://bucket/a.log", "1", number


@pytest.mark.parametrize(("scanned", "limit", "cells"), [(4, 100, 5), (100, 8, 5), (100, 100, 51)])
def test_pages_are_used_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scanned: int, limit: int, cells: int
) -> None:
    """Cells make room from SCANNED_BYTES or half of the limit on: the file has one cell more, however many come."""
    monkeypatch.setattr(cell_cache, "SCANNED_BYTES", scanned * CELL)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    cache = CellCache(limit * CELL)
    for number in range(60):
        cache.store(key(number), bytes([number]) * CELL)
        if cache.is_filling():
            cache.forget([key(number)])
    assert cache._fd is not None
    assert os.fstat(cache._fd).st_size == min(60, cells) * CELL
    assert cache.read(key(0)) == bytes(CELL)
    assert (cache.read(key(59)) is None) == (cells < 60)
    cache.close()


@pytest.mark.parametrize("size", [3 * CELL, 3 * CELL + 100])
def test_newlines_of_whole_cells_are_known(size: int) -> None:
    """Each whole cell that was received has its count; others, and those of another version, are not known."""
    numbers = random.Random(7)
    text = bytes(numbers.choice(b"\nabc") for _ in range(size))
    item = RemoteObject("s3://bucket/a.log", "s3://bucket/", "bucket/a.log", size, "1")
    counts = NewlineCounts()
    assert counts.find(item, 1) is None
    counts.add(item, 1, text[CELL:])
    assert counts.find(item, 0) is None
    assert [counts.find(item, cell) for cell in (1, 2)] == [
        text[cell * CELL : (cell + 1) * CELL].count(b"\n") for cell in (1, 2)
    ]
    assert counts.find(item, 3) is None
    changed = RemoteObject(item.address, item.root, item.place, size, "2")
    assert counts.find(changed, 1) is None
