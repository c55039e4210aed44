"""One source seen as parsed lines around the hits: pages are read on demand and each line is parsed at most once."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Iterator

from triage.ranks.prefix import Parsed, parse

Read = Callable[[int, int], bytes]

PAGE = 1 << 12
_PAGES = 1024
# What is shown and matched of one line; the middle of a longer one is left out.
LONGEST = 1 << 14
# A prefix that follows text without a blank or colon before it belongs to another writer (an error glued to a progress bar).
_PARTS = re.compile(rb"(?<=\r)|(?<=[^\s\0:>])(?=\[rank\d+\]: )")
_TAG = re.compile(rb"\[rank\d+\]: ")
_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


class Line:
    """A line, or the part of it between carriage returns (a progress bar redraws itself with them). Decoded and parsed on first use."""

    __slots__ = ("_parsed", "_raw", "data", "offset", "year")

    def __init__(self, offset: int, data: bytes, year: int) -> None:
        self.offset = offset
        self.data = data
        self.year = year
        self._raw: str | None = None
        self._parsed: Parsed | None = None

    @property
    def end(self) -> int:
        return self.offset + len(self.data)

    @property
    def raw(self) -> str:
        """The decoded line. Invalid UTF-8 becomes U+FFFD; NUL and colours go; of a very long line the middle goes."""
        if self._raw is None:
            self._raw = _decode(self.data)
        return self._raw

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
        data = self._read(start - before, PAGE + before)
        position = data.find(b"\n") + 1 if before else 0
        if (before and not position) or position >= len(data):
            return []
        if not data.endswith(b"\n"):
            more = self._read(start - before + len(data), LONGEST)
            data += more[: more.find(b"\n") + 1 or len(more)]
        glued = _is_glued(data)
        lines: list[Line] = []
        offset = start - before + position
        for part in data[position:].removesuffix(b"\n").split(b"\n"):
            if glued or b"\r" in part:
                lines.extend(split_line(part, offset, self.year))
            else:
                lines.append(Line(offset, part, self.year))
            offset += len(part) + 1
        return lines


def split_line(data: bytes, offset: int, year: int) -> list[Line]:
    """One physical line (without its newline) in its parts: carriage returns part it, and so does a second writer glued to the first."""
    if b"\r" not in data and not _is_glued(data):
        return [Line(offset, data, year)]
    lines = []
    position = 0
    for part in _PARTS.split(data):
        if part.strip(b"\r"):
            lines.append(Line(offset + position, part.strip(b"\r"), year))
        position += len(part)
    return lines or [Line(offset, b"", year)]


def _is_glued(data: bytes) -> bool:
    """Does a `[rank3]: ` stand right behind text that is no prefix?"""
    return any(match.start() and data[match.start() - 1] not in b" \t\n\r\0:>" for match in _TAG.finditer(data))


def _decode(data: bytes) -> str:
    if len(data) > LONGEST:
        half = LONGEST // 2
        data = data[:half] + b" \xe2\x80\xa6 " + data[-half:]
    text = data.replace(b"\0", b"").decode("utf-8", "replace")
    return _COLOUR.sub("", text) if "\x1b" in text else text
