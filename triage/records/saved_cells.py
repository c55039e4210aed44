"""Read around the hits of a stream again, from the cells that the scan saved."""

from __future__ import annotations

import bisect
import zlib

from triage.scan.interface import CELL, ScanResult

_CACHED_CELLS = 8


class SavedCells:
    """The saved cells of a stream. Bytes outside them cannot be read: a read ends at the first gap."""

    def __init__(self, scan: ScanResult) -> None:
        self._packed = {cell.offset // CELL: cell.packed for cell in scan.saved_cells}
        self._newlines = scan.newlines
        self._cache: dict[int, bytes] = {}

    def read(self, offset: int, length: int) -> bytes:
        """Return the bytes in [offset, offset + length), up to the first gap."""
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
        """Return the 1-based number of the line at `offset`, from the newlines that the scan counted per cell."""
        index = bisect.bisect_right(self._newlines, (offset, 1 << 62)) - 1
        start, lines = self._newlines[index] if index >= 0 else (0, 0)
        return lines + self.read(start, offset - start).count(b"\n") + 1

    def _cell(self, number: int) -> bytes:
        cell = self._cache.get(number)
        if cell is None:
            packed = self._packed.get(number)
            cell = zlib.decompress(packed) if packed is not None else b""
            if len(self._cache) > _CACHED_CELLS:
                self._cache.pop(next(iter(self._cache)))
            self._cache[number] = cell
        return cell
