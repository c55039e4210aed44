"""One source seen as parsed lines around the hits: pages are read on demand and each line is parsed at most once."""

from __future__ import annotations

import bisect
import itertools
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence

from triage.base.lazy_re import lazy_re
from triage.ranks import shuffled, wrapped
from triage.ranks.cuts import Cuts, unescaped
from triage.ranks.envelopes import Opened, joined, unwrap
from triage.ranks.glue import BAR_END, RUN_ON, TAG, begins, runs_on
from triage.ranks.grammars import BY_START, Table
from triage.ranks.layouts import PLAIN, Layout
from triage.ranks.prefix import Parsed, parse

Read = Callable[[int, int], bytes]

PAGE = 1 << 12
_PAGES = 1024
# What is shown and matched of one line; the middle of a longer one is left out.
LONGEST = 1 << 14
# A rank's prefix right behind text belongs to another writer (an error glued to a progress bar). So does a launcher's,
# where one of the
# same shape opens the line.
_RETURN = lazy_re(rb"\r")
_LAUNCHED = lazy_re(rb"\[[A-Za-z_][\w.-]*?:?\d{1,4}\]:|\[\d+,\d+\]<std(?:out|err|diag)>:")
_BEHIND_TEXT = lazy_re(rb"\[(?<=[^\n\r\0 \t:>][\[])(?=[A-Za-z_][\w.-]*:?\d+\]:|\d+,\d+\]<std)")
_SHAPE = lazy_re(rb"\d+|(?<=\[)[A-Za-z_][\w.-]*(?=:\d)|out|err|diag")
_LEFT_OUT = " … ".encode()
_START, _AROUND = 1 << 8, 1 << 11
_COLOUR = lazy_re(r"\x1b\[[0-9;]*[A-Za-z]")


class Line:
    """A line, or the part of it between carriage returns (a progress bar redraws itself with them). Decoded and parsed
    on first use.
    """

    __slots__ = ("_parsed", "_raw", "carried", "data", "offset", "stop", "table", "year")

    def __init__(
        self, offset: int, data: bytes, year: int, table: Table = BY_START, carried: Parsed | None = None
    ) -> None:
        self.offset = offset
        self.data = data
        self.year = year
        self.table = table
        self.carried = carried  # what the envelope says that the line lay in
        self.stop: int | None = None  # where a line ends that was put together from pieces
        self._raw: str | None = None
        self._parsed: Parsed | None = None

    @property
    def end(self) -> int:
        return self.offset + len(self.data) if self.stop is None else self.stop

    @property
    def raw(self) -> str:
        """The decoded line. Invalid UTF-8 becomes U+FFFD; NUL and colours go; of a very long line the middle goes."""
        if self._raw is None:
            self._raw = _decode(self.data)
        return self._raw

    def showing(self, literals: Sequence[str]) -> Line | None:
        """The line when it holds one of `literals`; a very long one is cut so that its start and what lies around them
        is left.
        """
        if len(self.data) <= LONGEST or any(literal in self.raw for literal in literals):
            return self if any(literal in self.raw for literal in literals) else None
        places = [place for place in (self.data.find(literal.encode()) for literal in literals) if place >= 0]
        if not places:
            return None
        line = Line(self.offset, self.data, self.year, self.table, self.carried)
        around = [self.data[max(_START, place - _AROUND) : place + _AROUND] for place in places[:3]]
        line._raw = _decode(_LEFT_OUT.join([self.data[:_START], *around]))
        return line

    @property
    def parsed(self) -> Parsed:
        if self._parsed is None:
            self._parsed = parse(self.raw, self.year, self.table, self.carried)
        return self._parsed


class _Page:
    """The physical lines that start in one page: their bytes, and the parsed lines where somebody asked for them."""

    __slots__ = ("glued", "lines", "offsets", "parts", "split", "wrapped")

    def __init__(self, offset: int, data: bytes, split: Callable[[bytes, int], list[Line]], wrapped: bool) -> None:
        self.parts = data.removesuffix(b"\n").split(b"\n") if data else []
        self.offsets = list(itertools.accumulate((len(part) + 1 for part in self.parts), initial=offset))[:-1]
        self.lines: list[list[Line] | None] = [None] * len(self.parts)
        self.glued = _is_glued(data)
        self.split = split
        self.wrapped = wrapped

    def may_start(self, index: int, start: bytes) -> bool:
        """Can a line that starts with `start` be in this physical line?"""
        part = self.parts[index]
        return part.startswith(start) or self.glued or self.wrapped or b"\r" in part

    def at(self, index: int) -> list[Line]:
        found = self.lines[index]
        if found is None:
            found = self.lines[index] = self.split(self.parts[index], self.offsets[index])
        return found


class Text:
    """Lines of one source by offset. `year` is for stamps that carry none."""

    def __init__(self, name: str, read: Read, size: int, year: int, layout: Layout = PLAIN) -> None:
        self.name = name
        self.size = size
        self.year = year
        self.layout = layout
        self._read = read
        self._cuts = Cuts(read, size, layout.table) if layout.cut else None
        self._pages: OrderedDict[int, _Page] = OrderedDict()

    def lines_from(self, offset: int, reach: int, start: bytes = b"", gap: int = 1 << 30) -> Iterator[Line]:
        """The lines that start in [offset, offset + reach) and with `start`, until `gap` lines that do not follow each
        other.
        """
        stop = min(self.size, offset + reach)
        others = 0
        for number in range(offset // PAGE, (stop - 1) // PAGE + 1):
            page = self._page(number)
            for index in range(
                bisect.bisect_left(page.offsets, offset - LONGEST) if number == offset // PAGE else 0, len(page.parts)
            ):
                if not page.may_start(index, start):
                    others += page.offsets[index] >= offset
                    if others > gap:
                        return
                    continue
                others = 0
                for line in page.at(index):
                    if line.offset >= stop:
                        return
                    if line.offset >= offset:
                        yield line

    def lines_before(self, offset: int, reach: int, start: bytes = b"") -> Iterator[Line]:
        """The lines that start in [offset - reach, offset) and with `start`, nearest first."""
        least = max(0, offset - reach)
        for number in range(offset // PAGE, least // PAGE - 1, -1):
            page = self._page(number)
            for index in range(bisect.bisect_left(page.offsets, offset) - 1, -1, -1):
                if page.offsets[index] < least - LONGEST:
                    return
                if page.may_start(index, start):
                    yield from (line for line in reversed(page.at(index)) if least <= line.offset < offset)

    def at(self, start: int, end: int) -> list[Line]:
        """The parts of the physical line in [start, end)."""
        return self.whole(self._read(start, end - start), start)

    def whole(self, data: bytes, offset: int) -> list[Line]:
        """The parts of the physical line `data` at `offset`; of one in pieces the whole, wherever its first piece lies."""
        return self._split(data, offset, whole=True)

    def _split(self, data: bytes, offset: int, *, whole: bool = False) -> list[Line]:
        """One physical line in its parts. `whole`: of a line in pieces all, though `offset` be that of a later one; it
        is the first one's else.
        """
        kind, table = self.layout.envelope, self.layout.table
        width = self.layout.width
        if not (kind or width or self._cuts or self.layout.escaped):
            return split_line(data, offset, self.year, table)
        if self._cuts:
            pieces = self._cuts.joined(data, offset)
        elif width:
            pieces = wrapped.joined(width, data, offset, self.size, self._read)
        else:
            pieces = joined(kind, data, offset, self.size, self._read) if kind in ("cri", "json") else None
        if pieces is None:
            begin, stop = offset, None
        else:
            data, begin, stop = pieces
            if begin != offset and not whole:
                return []
        if self.layout.escaped:
            opened: Sequence[Opened] | None = unescaped(data, self.year, table)
        else:
            opened = unwrap(kind, data, begin, self.year, table, self._read)
        lines = (
            split_line(data, begin, self.year, table)
            if opened is None
            else _unwrapped(opened, data, begin, self.year, table)
        )
        if lines:
            lines[-1].stop = stop
        return lines

    def _page(self, number: int) -> _Page:
        page = self._pages.get(number)
        if page is None:
            page = self._pages[number] = self._load(number)
            if len(self._pages) > _PAGES:
                self._pages.popitem(last=False)
        else:
            self._pages.move_to_end(number)
        return page

    def _load(self, number: int) -> _Page:
        """Lines that start in the page; the last one is read beyond its end, up to LONGEST."""
        start = number * PAGE
        before = 1 if start else 0
        data = self._read(start - before, PAGE + before)
        position = data.find(b"\n") + 1 if before else 0
        if (before and not position) or position >= len(data):
            return _Page(start, b"", self._split, bool(self.layout.envelope or self.layout.width))
        if not data.endswith(b"\n"):
            more = self._read(start - before + len(data), LONGEST)
            data += more[: more.find(b"\n") + 1 or len(more)]
        return _Page(
            start - before + position, data[position:], self._split, bool(self.layout.envelope or self.layout.width)
        )


def _unwrapped(opened: Sequence[Opened], data: bytes, offset: int, year: int, table: Table) -> list[Line]:
    """The lines in the messages of one physical line. They stand in it one byte after the other, so that each has a
    place of its own.
    """
    parts = [
        (part.data, carried)
        for text, carried in opened
        for part in split_line(text.encode("utf-8", "replace"), 0, year)
    ]
    lines = []
    for index, (part, carried) in enumerate(parts):
        line = Line(
            offset + index, data[index : index + 1] if index + 1 < len(parts) else data[index:], year, table, carried
        )
        line._raw = _decode(part)
        lines.append(line)
    return lines


def split_line(data: bytes, offset: int, year: int, table: Table = BY_START) -> list[Line]:
    """One physical line (without its newline) in its parts: carriage returns part it, and so does a second writer glued
    to the first.
    """
    glued = [*_glued(data), *_behind_bars(data, year, table)]
    if b"\r" not in data and not glued:
        line = Line(offset, data, year, table)
        return _of_several(line) if shuffled.may_be(data) else [line]
    lines = []
    cuts = sorted({0, *glued, *(match.end() for match in _RETURN.finditer(data)), len(data)})
    for begin, end in itertools.pairwise(cuts):
        part = data[begin:end]
        if part.strip(b"\r"):
            lines.append(Line(offset + begin, part.strip(b"\r"), year, table))
    if glued and len(lines) == 2 and (told := _same_text(*lines)):
        return told
    return lines or [Line(offset, b"", year, table)]


def _of_several(line: Line) -> list[Line]:
    """A line without a prefix that several wrote, word by word, as often as they did. Each has a place of its own, as
    the bytes of one line go.
    """
    text, writers = shuffled.unshuffled(line.raw)
    if not writers or line.parsed.layers:
        return [line]
    last = writers - 1
    parts = [line.data[index : index + 1] if index < last else line.data[last:] for index in range(writers)]
    lines = [Line(line.offset + index, part, line.year, line.table) for index, part in enumerate(parts)]
    for one in lines:
        one._raw = text
    return lines


def _same_text(one: Line, other: Line) -> list[Line]:
    """Two writers' prefixes on a line, and their one text cut into each other: `[rank0]: Trace[rank1]: Traceback (most
    …back (most …`.
    """
    begun = one.parsed.text
    text, writers = shuffled.unshuffled(begun + other.parsed.text)
    if writers != 2 or not text.startswith(begun) or one.parsed.layers != other.parsed.layers:
        return []
    for line, own in ((one, begun), (other, other.parsed.text)):
        line._raw = line.raw[: len(line.raw) - len(own)] + text
        line._parsed = None
    return [one, other]


def _glued(data: bytes) -> list[int]:
    """Where another writer's prefix stands right behind text, see glue.py."""
    tags = TAG.finditer(data) if b"]: " in data else ()
    found = [
        match.start() for match in tags if begins(data, match.start()) or runs_on(data, match.start(), match.end())
    ]
    first = _LAUNCHED.match(data) if data[:1] == b"[" else None
    if first is not None and data.find(b"[", first.end()) > 0:
        shape = _SHAPE.sub(b"", first.group())
        others = (match for match in _LAUNCHED.finditer(data, first.end()) if _SHAPE.sub(b"", match.group()) == shape)
        found += [
            match.start()
            for match in others
            if begins(data, match.start()) or runs_on(data, match.start(), match.end())
        ]
    return found


def _behind_bars(data: bytes, year: int, table: Table) -> list[int]:
    """Where something stands right behind a progress bar. Behind a prefix, line and bar are one writer's."""
    if b"it/s" not in data and b"s/it" not in data:
        return []
    found = [match.end() for match in BAR_END.finditer(data)]
    return found if found and not Line(0, data, year, table).parsed.layers else []


def _is_glued(data: bytes) -> bool:
    """May a line of a page hold a second writer? A quick look over all of it: a bracket right behind text."""
    return any(begins(data, match.start()) for match in _BEHIND_TEXT.finditer(data)) or any(
        pattern.search(data) for pattern in (RUN_ON, BAR_END)
    )


def _decode(data: bytes) -> str:
    if len(data) > LONGEST:
        half = LONGEST // 2
        data = data[:half] + _LEFT_OUT + data[-half:]
    text = data.replace(b"\0", b"").decode("utf-8", "replace")
    return _COLOUR.sub("", text) if "\x1b" in text else text
