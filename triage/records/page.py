"""The physical lines of one part of a source, by their offsets, and the lines into which they were split."""

from __future__ import annotations

import bisect
import itertools
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from triage.base.digit_masks import mask_digits
from triage.records.line_cuts import may_have_second_writer

if TYPE_CHECKING:
    from triage.records.text import Line


class Page:
    """The physical lines that start in one page; each is split into parsed lines on first use."""

    __slots__ = ("_may_start_anywhere", "_text", "lines", "masks", "offsets", "parts", "writers")

    def __init__(self, offset: int, data: bytes, is_wrapped: bool) -> None:
        self._text = b"\n" + data
        self.parts = data.removesuffix(b"\n").split(b"\n") if data else []
        self.masks = mask_digits(data).split(b"\n")  # an empty one more behind the last newline
        self.offsets = list(itertools.accumulate((len(part) + 1 for part in self.parts), initial=offset))[:-1]
        self.lines: list[list[Line] | None] = [None] * len(self.parts)
        self.writers: Counter[str] | None = None  # how many lines each wrote, once all are parsed
        self._may_start_anywhere = True if is_wrapped else None

    def may_start(self, index: int, start: bytes) -> bool:
        """Can a line that begins with `start` be in this physical line?"""
        part = self.parts[index]
        return part.startswith(start) or b"\r" in part or self._may_have_second_writer()

    def _may_have_second_writer(self) -> bool:
        if self._may_start_anywhere is None:
            self._may_start_anywhere = any(map(may_have_second_writer.of_mask, set(self.masks)))
        return self._may_start_anywhere

    def starting(self, first: int, start: bytes) -> Iterator[int]:
        """Yield the indices from `first` on of the physical lines in which a line that begins with `start` can be."""
        if not start or first >= len(self.parts):
            yield from range(first, len(self.parts))
            return
        if b"\r" in self._text or self._may_have_second_writer():
            yield from (index for index in range(first, len(self.parts)) if self.may_start(index, start))
            return
        wanted, base = b"\n" + start, self.offsets[0]
        place = self._text.find(wanted, self.offsets[first] - base)
        while place >= 0:
            yield bisect.bisect_left(self.offsets, base + place)
            place = self._text.find(wanted, place + 1)


LinePlace = tuple[int, bytes, Page, int]
"""The offset and the mask of a line, its page and its number there."""
