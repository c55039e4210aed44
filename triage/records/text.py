"""One source as parsed lines: pages are read on demand, and each line is parsed at most once."""

from __future__ import annotations

import bisect
import functools
import itertools
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence

from triage.base.digit_masks import ask_masked, mask_digits
from triage.base.lazy_re import lazy_re
from triage.ranks import log_wrappers, terminal_wrap, word_wrap
from triage.ranks.file_names import parse_file_name
from triage.ranks.grammar import Table
from triage.ranks.grammars import BY_START
from triage.ranks.layouts import PLAIN, Layout, remove_repeated_labels, strip_colours
from triage.ranks.log_wrappers import Message
from triage.ranks.prefix import ParsedLine, may_have_time, parse_prefix
from triage.records import deinterleave
from triage.records.line_cuts import (
    PROGRESS_BAR_END,
    CutLines,
    find_second_writers,
    unescape_syslog,
)
from triage.records.page import LinePlace, Page

Read = Callable[[int, int], bytes]

PAGE = 1 << 12
_PAGES = 1024
_MOST_LINES = 1 << 12  # physical lines that are kept parsed, beside those of the pages
# The most bytes of a line that are shown and matched; of a longer line the middle is left out.
LONGEST = 1 << 14
# How far the lines that belong together may reach, in bytes of the file, with the lines of other writers.
REACH = 1 << 19
STAMP_REACH = 1 << 12
"""So many bytes before a line are searched."""
_NEAR_STAMPS = 8
_LONGEST_KEPT = 1 << 11  # bytes of a line whose mask is remembered
# Bytes of a line that is decoded to another text: NUL, and the colours of a terminal or a paste.
_CHANGED_BY_DECODING = (b"\0", b"\x1b", b"[0m", b"[39m")
_RETURN = lazy_re(rb"\r")
_COLOURS = lazy_re(rb"(?:\x1b\[[0-9;]*m)+")
_STRAIGHT = str.maketrans("“”", '""')
_LEFT_OUT = " … ".encode()
_START_BYTES, _AROUND_BYTES = 1 << 8, 1 << 11


class Line:
    """A line, or the part of it between carriage returns (a progress bar redraws itself with them).

    It is decoded and parsed on first use. `outer` is what the log wrapper around the line says. `joined_end` is where a
    line ends that was joined from pieces.
    """

    __slots__ = ("_mask", "_parsed", "_raw", "data", "joined_end", "offset", "outer", "table", "year")

    def __init__(
        self,
        offset: int,
        data: bytes,
        year: int,
        table: Table = BY_START,
        outer: ParsedLine | None = None,
        mask: bytes | None = None,
    ) -> None:
        """`mask` is that of `data`, if it is known."""
        self.offset = offset
        self.data = data
        self.year = year
        self.table = table
        self.outer = outer
        self.joined_end: int | None = None
        self._mask = mask
        self._raw: str | None = None
        self._parsed: ParsedLine | None = None

    @property
    def end(self) -> int:
        """The offset of the line's end in the source."""
        return self.offset + len(self.data) if self.joined_end is None else self.joined_end

    @property
    def raw(self) -> str:
        """The decoded line, without NUL bytes and colours; invalid UTF-8 becomes U+FFFD."""
        if self._raw is None:
            self._raw = _decode(self.data)
        return self._raw

    @property
    def mask(self) -> bytes:
        """The mask of the decoded line; of its bytes where it is not decoded."""
        if self._raw is None:
            return mask_digits(self.data) if self._mask is None else self._mask
        mask = self._mask_of_raw(self._raw)
        return mask_digits(self._raw.encode("utf-8", "surrogatepass")) if mask is None else mask

    def _mask_of_raw(self, raw: str) -> bytes | None:
        """Return the known mask if decoding changed nothing: only then is the text ASCII, and as long as the bytes."""
        return self._mask if len(raw) == len(self.data) and raw.isascii() else None

    def start_of(self, writer: str) -> bytes:
        """Return the bytes that the lines of a writer begin with, colours included; empty where they may differ."""
        colour = _COLOURS.match(self.data)
        start = (colour.group() if colour else b"") + writer.encode()
        return start if writer and self.data.startswith(start) else b""

    def showing(self, literals: Sequence[str]) -> Line | None:
        """Return the line if it holds one of `literals`, else None.

        A very long line is cut to its start and the text around the literals.
        """
        if len(self.data) <= LONGEST or any(literal in self.raw for literal in literals):
            return self if any(literal in self.raw for literal in literals) else None
        places = [place for place in (self.data.find(literal.encode()) for literal in literals) if place >= 0]
        if not places:
            return None
        line = Line(self.offset, self.data, self.year, self.table, self.outer)
        around = [self.data[max(_START_BYTES, place - _AROUND_BYTES) : place + _AROUND_BYTES] for place in places[:3]]
        line._raw = _decode(_LEFT_OUT.join([self.data[:_START_BYTES], *around]))
        return line

    @property
    def parsed(self) -> ParsedLine:
        """The line without its prefix, and what the prefix says."""
        if self._parsed is None:
            raw = self.raw
            self._parsed = parse_prefix(raw, self.year, self.table, self.outer, self._mask_of_raw(raw))
        return self._parsed


class Text:
    """The lines of one source by offset. `year` is for timestamps without one."""

    def __init__(self, name: str, read: Read, size: int, year: int, layout: Layout = PLAIN) -> None:
        self.name = name
        self.size = size
        self.year = year
        self.layout = layout
        self._has_whole_lines = layout.has_whole_lines
        self._read = read
        self._cut_lines = CutLines(read, size, layout.table) if layout.cuts_lines else None
        self._pages: OrderedDict[int, Page] = OrderedDict()
        self._lines: dict[tuple[int, int], list[Line]] = {}

    def lines_from(self, offset: int, reach: int, start: bytes = b"", gap: int = 1 << 30) -> Iterator[Line]:
        """Yield the lines in [offset, offset + reach) that begin with `start`, until `gap` others in a row."""
        stop = min(self.size, offset + reach)
        others = 0
        for number in range(offset // PAGE, (stop - 1) // PAGE + 1):
            page = self._page(number)
            is_first = number == offset // PAGE
            next_index = bisect.bisect_left(page.offsets, offset) if is_first else 0
            for index in page.starting(self._first_index(page, offset) if is_first else 0, start):
                others += max(0, index - next_index)
                if others > gap:
                    return
                others, next_index = 0, max(next_index, index + 1)
                for line in self._lines_at(page, index):
                    if line.offset >= stop:
                        return
                    if line.offset >= offset:
                        yield line
            others += max(0, len(page.parts) - next_index)
            if others > gap:
                return

    def lines_of(self, writer: str, offset: int, reach: int, gap: int) -> Iterator[Line]:
        """Yield the lines in [offset, offset + reach) by one writer, until `gap` lines of others in a row."""
        stop = min(self.size, offset + reach)
        others = 0
        for number in range(offset // PAGE, (stop - 1) // PAGE + 1):
            page = self._page(number)
            first = self._first_index(page, offset) if number == offset // PAGE else 0
            if first == 0 and page.writers is not None and writer not in page.writers:
                others += page.writers.total()
            else:
                for line in self._count_writers(page, first):
                    if line.offset >= stop:
                        return
                    if line.parsed.writer == writer:
                        others = 0
                        if line.offset >= offset:
                            yield line
                    elif line.offset >= offset:
                        others += 1
                    if others > gap:
                        return
            if others > gap:
                return

    def _count_writers(self, page: Page, first: int) -> Iterator[Line]:
        """Yield the lines of a page from a physical one on. After all of them it is known who wrote in it."""
        writers: Counter[str] = Counter()
        for index in range(first, len(page.parts)):
            for line in self._lines_at(page, index):
                writers[line.parsed.writer] += 1
                yield line
        if first == 0:
            page.writers = writers

    def _first_index(self, page: Page, offset: int) -> int:
        """Return the first physical line of a page that may have lines from `offset` on.

        One that begins before it may have lines behind it; a joined one may begin far before.
        """
        if self._has_whole_lines:
            return max(0, bisect.bisect_left(page.offsets, offset) - 1)
        return bisect.bisect_left(page.offsets, offset - LONGEST)

    def places_from(self, offset: int, reach: int) -> list[LinePlace] | None:
        """Return where the lines in [offset, offset + reach) stand, without parsing them; None if some may be several.

        `line_at` returns the line.
        """
        if not self._has_whole_lines:
            return None
        stop = min(self.size, offset + reach)
        places: list[LinePlace] = []
        for number in range(offset // PAGE, (stop - 1) // PAGE + 1):
            page = self._page(number)
            part = slice(bisect.bisect_left(page.offsets, offset), bisect.bisect_left(page.offsets, stop))
            # The physical line that begins before `offset` may have lines behind it.
            if not all(is_one_line.of_masks(list(set(page.masks[max(0, part.start - 1) : part.stop])))):
                return None
            numbers = range(part.start, part.stop)
            places += zip(page.offsets[part], page.masks[part], itertools.repeat(page), numbers, strict=False)
        return places

    def line_at(self, place: LinePlace) -> Line:
        """Return the line at a place that `places_from` gave."""
        _, _, page, index = place
        return self._lines_at(page, index)[0]

    def lines_before(self, offset: int, reach: int, start: bytes = b"") -> Iterator[Line]:
        """Yield the lines in [offset - reach, offset) that begin with `start`, nearest first."""
        least = max(0, offset - reach)
        for number in range(offset // PAGE, least // PAGE - 1, -1):
            page = self._page(number)
            for index in range(bisect.bisect_left(page.offsets, offset) - 1, -1, -1):
                if page.offsets[index] < least - LONGEST:
                    return
                if page.may_start(index, start):
                    yield from (line for line in reversed(self._lines_at(page, index)) if least <= line.offset < offset)

    def lines_at(self, start: int, end: int) -> list[Line]:
        """Return the lines of the physical line in [start, end)."""
        return self.parse_line(self._read(start, end - start), start)

    def parse_line(self, data: bytes, offset: int) -> list[Line]:
        """Return the lines of the physical line `data` at `offset`; a cut line whole, wherever its first piece is."""
        return self._parse_line(data, offset, from_any_piece=True)

    def _parse_line(self, data: bytes, offset: int, *, from_any_piece: bool = False) -> list[Line]:
        """Return the lines of a physical line.

        A line in several pieces belongs to its first piece, and later pieces give nothing; with `from_any_piece` every
        piece gives the whole line.
        """
        table = self.layout.table
        if self._has_whole_lines:
            return self._split_once(data, offset)
        joined = self._join_pieces(data, offset)
        begin, end = offset, None
        if joined is not None:
            data, begin, end = joined
            if begin != offset and not from_any_piece:
                return []
        messages: Sequence[Message] | None
        if self.layout.escapes_newlines:
            messages = unescape_syslog(data, self.year, table)
        else:
            messages = log_wrappers.unwrap_line(self.layout.wrapper, data, begin, self.year, table, self._read)
        if messages is None:
            lines = split_line(data, begin, self.year, table)
        else:
            lines = _split_messages(messages, data, begin, self.year, table)
        if lines:
            lines[-1].joined_end = end
        return lines

    def _lines_at(self, page: Page, index: int) -> list[Line]:
        """Return the lines of a physical line of a page."""
        lines = page.lines[index]
        if lines is None:
            data, offset = page.parts[index], page.offsets[index]
            if self._has_whole_lines:
                lines = self._split_once(data, offset, page.masks[index])
            else:
                lines = self._parse_line(data, offset)
            page.lines[index] = lines
        return lines

    def _split_once(self, data: bytes, offset: int, mask: bytes | None = None) -> list[Line]:
        """Split a physical line; several rooms read the same lines. `mask` is its mask, if it is known."""
        lines = self._lines.get((offset, len(data)))
        if lines is None:
            mask = mask_digits(data) if mask is None else mask
            if len(self._lines) >= _MOST_LINES:
                self._lines.clear()
            if is_one_line.of_mask(mask):
                lines = [Line(offset, data, self.year, self.layout.table, None, mask)]
            else:
                lines = split_line(data, offset, self.year, self.layout.table)
            self._lines[offset, len(data)] = lines
        return lines

    def _join_pieces(self, data: bytes, offset: int) -> tuple[bytes, int, int] | None:
        """Return the whole line of a piece, where it begins and where it ends; None for a line that is not cut."""
        if self._cut_lines:
            return self._cut_lines.join_pieces(data, offset)
        if self.layout.width:
            return terminal_wrap.join_pieces(self.layout.width, data, offset, self.size, self._read)
        if self.layout.word_width:
            return word_wrap.join_pieces(self.layout.word_width, offset, self.size, self._read)
        if self.layout.wrapper in ("cri", "json"):
            return log_wrappers.join_pieces(self.layout.wrapper, data, offset, self.size, self._read)
        return None

    def _page(self, number: int) -> Page:
        page = self._pages.get(number)
        if page is None:
            page = self._pages[number] = self._load(number)
            if len(self._pages) > _PAGES:
                self._pages.popitem(last=False)
        else:
            self._pages.move_to_end(number)
        return page

    def _load(self, number: int) -> Page:
        """Read the lines that start in the page; the last one is read up to LONGEST bytes beyond its end."""
        start = number * PAGE
        before = 1 if start else 0
        data = self._read(start - before, PAGE + before)
        position = data.find(b"\n") + 1 if before else 0
        is_wrapped = bool(self.layout.wrapper or self.layout.is_joined)
        if (before and not position) or position >= len(data):
            return Page(start, b"", is_wrapped)
        if not data.endswith(b"\n"):
            more = self._read(start - before + len(data), LONGEST)
            data += more[: more.find(b"\n") + 1 or len(more)]
        return Page(start - before + position, data[position:], is_wrapped)


def _split_messages(messages: Sequence[Message], data: bytes, offset: int, year: int, table: Table) -> list[Line]:
    """Return the lines in the messages of one physical line.

    Each gets an offset of its own: one byte of the physical line, the last one the rest of it.
    """
    parts = [
        (part.data, outer) for text, outer in messages for part in split_line(text.encode("utf-8", "replace"), 0, year)
    ]
    lines = []
    for index, (part, outer) in enumerate(parts):
        end = index + 1 if index + 1 < len(parts) else len(data)
        line = Line(offset + index, data[index:end], year, table, outer)
        line._raw = _decode(part)
        lines.append(line)
    return lines


def split_line(data: bytes, offset: int, year: int, table: Table = BY_START) -> list[Line]:
    """Split one physical line (without its newline) at carriage returns and where a second writer begins."""
    if is_one_line(data):
        return [Line(offset, data, year, table)]
    second = [*find_second_writers(data), *_behind_progress_bars(data, year, table)]
    if b"\r" not in data and not second:
        line = Line(offset, data, year, table)
        return _deinterleave(line) if deinterleave.may_be_interleaved(data) else [line]
    lines = []
    cuts = sorted({0, *second, *(match.end() for match in _RETURN.finditer(data)), len(data)})
    for begin, end in itertools.pairwise(cuts):
        part = data[begin:end]
        if part.strip(b"\r"):
            lines.append(Line(offset + begin, part.strip(b"\r"), year, table))
    if second and len(lines) == 2:
        _deinterleave_pair(*lines)
    return lines or [Line(offset, b"", year, table)]


@ask_masked
def is_one_line(data: bytes) -> bool:
    """Quick check of a physical line: is it certainly one line of one writer?"""
    may_have_more = b"\r" in data or b"it/s" in data or b"s/it" in data
    return not (may_have_more or find_second_writers(data) or deinterleave.may_be_interleaved(data))


def _deinterleave(line: Line) -> list[Line]:
    """Return a line that several writers wrote into each other as one line per writer, each at an offset of its own."""
    text, writers = deinterleave.deinterleave_text(line.raw)
    if not writers or line.parsed.layers:
        return [line]
    last = writers - 1
    parts = [line.data[index : index + 1] if index < last else line.data[last:] for index in range(writers)]
    lines = [Line(line.offset + index, part, line.year, line.table) for index, part in enumerate(parts)]
    for one in lines:
        one._raw = text
    return lines


def _deinterleave_pair(first: Line, second: Line) -> None:
    """Separate two prefixes with one text written into each other, if the lines are such a pair.

    Example: `[rank0]: Trace[rank1]: Traceback (most …back (most …`.
    """
    begun = first.parsed.text
    text, writers = deinterleave.deinterleave_text(begun + second.parsed.text)
    if writers != 2 or not text.startswith(begun) or first.parsed.layers != second.parsed.layers:
        return
    for line, own in ((first, begun), (second, second.parsed.text)):
        line._raw = line.raw[: len(line.raw) - len(own)] + text
        line._parsed = None


def _behind_progress_bars(data: bytes, year: int, table: Table) -> list[int]:
    """Return where text stands directly behind a progress bar. Behind a prefix, line and bar are one writer's."""
    if b"it/s" not in data and b"s/it" not in data:
        return []
    places = [match.end() for match in PROGRESS_BAR_END.finditer(data)]
    return places if places and not Line(0, data, year, table).parsed.layers else []


def _decode(data: bytes) -> str:
    if len(data) > LONGEST:
        half = LONGEST // 2
        data = data[:half] + _LEFT_OUT + data[-half:]
    text = data.replace(b"\0", b"").decode("utf-8", "replace")
    text = text.translate(_STRAIGHT) if "File “" in text else text  # a word processor's quotes in a pasted traceback
    text = strip_colours(text)
    return remove_repeated_labels(text) if text.endswith("] ") else text


def find_time_before(text: Text, line: Line) -> float | None:
    """Return the timestamp of the nearest line before it by the same writer or rank: the block is not older."""
    own = line.parsed
    outermost = own.writer[: own.writer.find("]:") + 2] if "]:" in own.writer else own.writer
    rank = own.origin.rank
    for before in _lines_with_time(text, line, line.start_of(outermost)):
        other = before.parsed
        if other.origin.time is not None and (
            other.writer == own.writer or (rank is not None and other.origin.rank == rank)
        ):
            return other.origin.time
    # The program's logger may write another prefix than `[rank3]: `.
    ranks = {rank, None} if rank is not None and parse_file_name(text.name).rank == rank else {rank}
    near = itertools.islice(text.lines_before(line.offset, STAMP_REACH), _NEAR_STAMPS) if rank is not None else ()
    for before in near:
        if before.parsed.origin.time is not None and before.parsed.origin.rank in ranks:
            return before.parsed.origin.time
    return None


def _lines_with_time(text: Text, line: Line, start: bytes) -> Iterable[Line]:
    """Return the lines near before one that begin with `start` and may have a time, nearest first.

    Where it has no writer, those of writers do not count.
    """
    least = max(0, line.offset - STAMP_REACH)
    places = text.places_from(least, line.offset - least) if not start else None
    if places is None:
        return text.lines_before(line.offset, STAMP_REACH, start)
    is_of_writer = bool(line.parsed.writer) or line.parsed.origin.rank is not None
    table = text.layout.table
    may_count = {
        mask: len(mask) > _LONGEST_KEPT or _may_have_time(mask, table, is_of_writer)
        for mask in {place[1] for place in places}
    }
    return map(text.line_at, [place for place in reversed(places) if may_count[place[1]]])


@functools.lru_cache(1 << 12)
def _may_have_time(mask: bytes, table: Table, is_of_writer: bool) -> bool:
    if not mask.isascii() or any(sign in mask for sign in _CHANGED_BY_DECODING):
        return True
    has_stamp, has_writer = may_have_time(mask, table)
    return has_stamp and (is_of_writer or not has_writer)
