"""Reading around hits again: plain files at any offset, streams from the packed windows that the scan kept."""

from __future__ import annotations

import bisect
import zlib
from collections.abc import Callable

from triage.scan.interface import CELL, Scanned

Read = Callable[[int, int], bytes]


class Windows:
    """The remembered cells of a stream; bytes that were not kept read as nothing, cut at the first gap."""

    def __init__(self, scanned: Scanned) -> None:
        self._packed = {window.offset // CELL: window.packed for window in scanned.windows}
        self._newlines = scanned.newlines
        self._cache: dict[int, bytes] = {}

    def read(self, offset: int, length: int) -> bytes:
        parts: list[bytes] = []
        position, stop = offset, offset + length
        while position < stop:
            cell = self._cell(position // CELL)
            start = position % CELL
            part = cell[start : start + stop - position]
            if not part:
                break
            parts.append(part)
            position += len(part)
        return b"".join(parts)

    def line_number(self, offset: int) -> int:
        """1-based; newlines were counted cell by cell while the stream went by."""
        index = bisect.bisect_right(self._newlines, (offset, 1 << 62)) - 1
        start, lines = self._newlines[index] if index >= 0 else (0, 0)
        return lines + self.read(start, offset - start).count(b"\n") + 1

    def _cell(self, number: int) -> bytes:
        cell = self._cache.get(number)
        if cell is None:
            packed = self._packed.get(number)
            cell = zlib.decompress(packed) if packed is not None else b""
            if len(self._cache) > 8:
                self._cache.pop(next(iter(self._cache)))
            self._cache[number] = cell
        return cell
