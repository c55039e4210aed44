"""One source seen as parsed lines around the hits: pages are read on demand and each line is parsed at most once."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Iterator

from triage.ranks.prefix import Parsed, parse

Read = Callable[[int, int], bytes]

PAGE = 1 << 16
_PAGES = 64
# What is shown and matched of one line; the middle of a longer one is left out.
LONGEST = 1 << 14
_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


class Line:
    """A line, or the part of it between carriage returns (a progress bar redraws itself with them). Parsed on first use."""

    __slots__ = ("_parsed", "end", "offset", "raw", "year")

    def __init__(self, offset: int, end: int, raw: str, year: int) -> None:
        self.offset = offset
        self.end = end
        self.raw = raw
        self.year = year
        self._parsed: Parsed | None = None

    @property
    def parsed(self) -> Parsed:
        if self._parsed is None:
            self._parsed = parse(self.raw, self.year)
        return self._parsed


class Text:
    """Lines of one source by offset. `year` is for stamps that carry none."""

    def __init__(self, name: str, read: Read, size: int, year: int) -> None:
        self.name = name
        self.size = size
        self.year = year
        self._read = read
        self._pages: OrderedDict[int, list[Line]] = OrderedDict()

    def lines_from(self, offset: int, reach: int) -> Iterator[Line]:
        """The lines that start in [offset, offset + reach)."""
        stop = min(self.size, offset + reach)
        for number in range(offset // PAGE, (stop - 1) // PAGE + 1):
            for line in self._page(number):
                if line.offset >= stop:
                    return
                if line.offset >= offset:
                    yield line

    def lines_before(self, offset: int, reach: int) -> Iterator[Line]:
        """The lines that start in [offset - reach, offset), nearest first."""
        start = max(0, offset - reach)
        for number in range(offset // PAGE, start // PAGE - 1, -1):
            for line in reversed(self._page(number)):
                if line.offset < start:
                    return
                if line.offset < offset:
                    yield line

    def at(self, start: int, end: int) -> list[Line]:
        """The parts of the physical line in [start, end)."""
        return split_line(self._read(start, end - start), start, self.year)

    def _page(self, number: int) -> list[Line]:
        page = self._pages.get(number)
        if page is None:
            page = self._pages[number] = self._load(number)
            if len(self._pages) > _PAGES:
                self._pages.popitem(last=False)
        else:
            self._pages.move_to_end(number)
        return page

    def _load(self, number: int) -> list[Line]:
        """Lines that start in the page; the last one is read beyond its end, up to LONGEST."""
        start = number * PAGE
        before = 1 if start else 0
        data = self._read(start - before, PAGE + before + LONGEST)
        position = data.find(b"\n", 0, PAGE + before) + 1 if before else 0
        if before and not position:
            return []
        lines: list[Line] = []
        while position < min(len(data), PAGE + before):
            end = data.find(b"\n", position)
            end = len(data) if end < 0 else end
            lines.extend(split_line(data[position:end], start - before + position, self.year))
            position = end + 1
        return lines


def split_line(data: bytes, offset: int, year: int) -> list[Line]:
    """Decode one physical line (without its newline); carriage returns part it. Invalid UTF-8 becomes U+FFFD, NUL goes."""
    if b"\r" not in data:
        return [Line(offset, offset + len(data), _decode(data), year)]
    lines = []
    position = 0
    for part in data.split(b"\r"):
        if part:
            lines.append(Line(offset + position, offset + position + len(part), _decode(part), year))
        position += len(part) + 1
    return lines or [Line(offset, offset + len(data), "", year)]


def _decode(data: bytes) -> str:
    if len(data) > LONGEST:
        half = LONGEST // 2
        data = data[:half] + b" \xe2\x80\xa6 " + data[-half:]
    text = data.replace(b"\0", b"").decode("utf-8", "replace")
    return _COLOUR.sub("", text) if "\x1b" in text else text
