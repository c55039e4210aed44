"""Join lines that a collector cut at 1,024 bytes, each piece behind its own prefix: srun --label, logger and syslog.

srun cuts at SLURM_IO_MAX_MSG_LEN. A line of exactly that length may be whole. The text decides: the next line of the
same writer continues it within a word, behind a comma, or is as long again. srun also writes a newline behind a whole
line of that length, behind a label of its own, so that every such line of srun is continued.

Also the other way round, two writers on one line: where a launcher's prefix in the middle of a line begins another
writer's text.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Sequence

from triage.base.digit_masks import ask_masked
from triage.base.lazy_dataclass import dataclass
from triage.base.lazy_re import lazy_re
from triage.ranks.grammar import Table, start_class
from triage.ranks.layouts import (
    CUT_WIDTHS,
    CUTTING_PREFIXES,
    LABEL_PREFIXES,
    LONGEST_CUT_LINE,
    LONGEST_PREFIX,
    SYSLOG_PREFIXES,
)
from triage.ranks.prefix import ParsedLine, parse_prefix

TORCH_TAG = lazy_re(rb"\[rank\d+\]: ")
# A progress bar ends without a newline; what stands directly behind it is another writer's.
PROGRESS_BAR_END = lazy_re(rb"(?:it/s|s/it)(?:, [^\]\n]{0,100})?\](?=[^\s\]])")
# Behind a blank, a colon, a bracket or a quotation mark a prefix is quoted, or a further layer.
_BEFORE_QUOTED = b"\n\r\0 \t:>])('\"`=,"
# But a progress bar ends with a bracket: `50%|##### | 5/10 [00:01<00:01, 4.9it/s, loss=0.3]`.
_BAR = lazy_re(rb"(?:it/s|s/it|\d[a-zA-Z]*/s)(?:, [^\]\n]*)?\]\Z")
_BAR_BYTES = 200
# Behind a line of a traceback, a prefix with another traceback line is a second writer's, whatever stands before it.
_TRACEBACK_LINE = lazy_re(rb'File "|Traceback \(')
_OPENS_TRACEBACK_LINE = lazy_re(rb' ?(?:Traceback \(most recent| *File ")')
_TWO_TRACEBACKS = lazy_re(rb'(?:File "|Traceback \()[^\n]*?\w\]: ?(?:Traceback \(most recent| *File ")')
_LAUNCHER_PREFIX = lazy_re(rb"\[[A-Za-z_][\w.-]*?:?\d{1,4}\]:|\[\d+,\d+\]<std(?:out|err|diag)>:")
_PREFIX_BEHIND_TEXT = lazy_re(rb"\[(?<=[^\n\r\0 \t:>][\[])(?=[A-Za-z_][\w.-]*:?\d+\]:|\d+,\d+\]<std)")
_VARIABLE_PART = lazy_re(rb"\d+|(?<=\[)[A-Za-z_][\w.-]*(?=:\d)|out|err|diag")
Read = Callable[[int, int], bytes]

# The next piece is searched for in so many bytes. srun and logger write the pieces directly one after the other.
REACH = 1 << 14
SHORTEST = min(CUT_WIDTHS) + 1
_MOST_PIECES = 64
_WORD_CHARACTER = lazy_re(rb"[\w\x80-\xff]")
_OPEN_END = lazy_re(rb"(?:[ ,(\[{/]|\w=)\Z")
_OPEN_START = lazy_re(rb"[,;)\]}]| [^ ]|[.:][\w/]")
_LONG_LINE = lazy_re(rb"(?m)^[^\n]{%d,%d}$" % (SHORTEST, LONGEST_CUT_LINE))


def is_second_writer(data: bytes, at: int, prefix: re.Pattern[bytes]) -> bool:
    """Does `prefix` stand at `at`, in the middle of a line of `data`, and begin another writer's text?"""
    match = prefix.match(data, at)
    return match is not None and _begins_second_writer(data, match, data.rfind(b"\n", 0, at) + 1)


def find_second_writers(line: bytes) -> list[int]:
    """Return where torch's tag, or a launcher prefix like the one at the start, begins another writer's text."""
    tags = TORCH_TAG.finditer(line) if b"]: " in line else ()
    places = [match.start() for match in tags if _begins_second_writer(line, match)]
    first = _LAUNCHER_PREFIX.match(line) if line[:1] == b"[" else None
    if first is not None and line.find(b"[", first.end()) > 0:
        shape = _VARIABLE_PART.sub(b"", first.group())
        places += [
            match.start()
            for match in _LAUNCHER_PREFIX.finditer(line, first.end())
            if _VARIABLE_PART.sub(b"", match.group()) == shape and _begins_second_writer(line, match)
        ]
    return places


@ask_masked
def may_have_second_writer(line: bytes) -> bool:
    """Quick check: does a bracket follow text directly, or a traceback or progress bar run on?"""
    return any(_follows_text(line, match.start()) for match in _PREFIX_BEHIND_TEXT.finditer(line)) or any(
        pattern.search(line) for pattern in (_TWO_TRACEBACKS, PROGRESS_BAR_END)
    )


def _begins_second_writer(data: bytes, prefix: re.Match[bytes], line_start: int = 0) -> bool:
    return _follows_text(data, prefix.start()) or (
        _OPENS_TRACEBACK_LINE.match(data, prefix.end()) is not None
        and _TRACEBACK_LINE.search(data, line_start, prefix.start()) is not None
    )


def _follows_text(data: bytes, at: int) -> bool:
    """Does the prefix at `at` directly follow text, so that it is not quoted by it?"""
    if not at:
        return False
    if data[at - 1] == ord("]"):
        return _BAR.search(data[max(0, at - _BAR_BYTES) : at]) is not None
    return data[at - 1] not in _BEFORE_QUOTED


@dataclass(frozen=True, slots=True)
class Piece:
    """A line whose text, behind `start` bytes of a collector's prefix, is as long as that collector allows."""

    start: int
    prefix: bytes
    writer: str
    width: int
    is_label: bool


def unescape_syslog(data: bytes, year: int, table: Table) -> list[tuple[str, ParsedLine]] | None:
    """Return the lines of a message that rsyslog wrote as one line, each with its parsed prefix; None for others."""
    if b"#012" not in data:
        return None
    first, *others = data.decode("utf-8", "replace").replace("#011", "\t").split("#012")
    entries = (entry for entry in table[start_class(first, 0)] if entry.name in SYSLOG_PREFIXES)
    head = next((match for entry in entries if (match := entry.pattern.match(first))), None)
    if head is None:
        return None
    outer = dataclasses.replace(parse_prefix(head.group() + "x", year, table), text="")
    return [(line, outer) for line in (first[head.end() :], *others)]


def parse_piece(line: bytes, table: Table) -> Piece | None:
    """Return the line as a piece if its length is that of one; whether it is cut depends on the next line."""
    if not SHORTEST <= len(line) <= LONGEST_CUT_LINE:
        return None
    for width in CUT_WIDTHS:
        start = len(line) - width
        parsed = parse_prefix(line[:start].decode("latin-1") + "x", 1970, table) if start > 0 else None
        if parsed is None or parsed.text != "x" or not parsed.layers or parsed.layers[-1] not in CUTTING_PREFIXES:
            continue
        is_label = parsed.layers[-1] in LABEL_PREFIXES
        if is_label and width != CUT_WIDTHS[0]:
            return None
        return Piece(start, line[:start], parsed.writer, width, is_label)
    return None


def text_of_same_writer(line: bytes, piece: Piece, table: Table) -> bytes | None:
    """Return the text of another line if the piece's writer wrote it, else None. Timestamps may differ."""
    if not line.startswith(piece.prefix):
        if line == piece.prefix.rstrip():  # an editor removed the trailing blank
            return b""
        if piece.is_label or len(line) < piece.start or line[piece.start - 1] != piece.prefix[-1]:
            return None
        parsed = parse_prefix(line[: piece.start].decode("latin-1") + "x", 1970, table)
        if parsed.text != "x" or parsed.writer != piece.writer:
            return None
    return line[piece.start :]


def is_continuation(piece: Piece, line: bytes, rest: bytes, table: Table, is_later_piece: bool) -> bool:
    """Does `rest`, the writer's next text, continue `line`? `is_later_piece`: the line continues another one itself."""
    if not rest:
        return piece.is_label
    if parse_prefix(rest[: 2 * LONGEST_PREFIX].decode("latin-1"), 1970, table).layers or rest.startswith(
        (b"Traceback (", b'  File "')
    ):
        return False
    if is_later_piece or len(rest) == piece.width or piece.is_label:
        return True
    if _WORD_CHARACTER.match(line[-1:]) and _WORD_CHARACTER.match(rest):
        return True
    return _OPEN_END.search(line) is not None or _OPEN_START.match(rest) is not None


def find_next_line(data: bytes, at: int, piece: Piece, table: Table) -> tuple[int, int] | None:
    """Return start and end of the next line in `data`, from `at` on, by the piece's writer."""
    limit = min(len(data), at + REACH)
    while at < limit:
        stop = data.find(b"\n", at)
        stop = len(data) if stop < 0 else stop
        if text_of_same_writer(data[at:stop], piece, table) is not None:
            return at, stop
        at = stop + 1
    return None


def open_until(data: bytes, table: Table) -> int:
    """Return the offset from which on no line continues a piece in `data`; 0 where there is no piece."""
    pieces = [match.end() for match in _LONG_LINE.finditer(data) if parse_piece(match.group(), table) is not None]
    return pieces[-1] + 1 + REACH if pieces else 0


class CutLines:
    """The cut lines of one source, at any offset."""

    def __init__(self, read: Read, size: int, table: Table) -> None:
        self._read = read
        self._size = size
        self._table = table
        self._cells: dict[int, list[tuple[int, bytes]]] = {}

    def join_pieces(self, data: bytes, offset: int) -> tuple[bytes, int, int] | None:
        """Return the whole line of the piece `data` at `offset`, where it begins and where it ends.

        None for a line that is not cut.
        """
        begin, first = offset, data
        for _ in range(_MOST_PIECES):
            before = self._piece_before(first, begin)
            if before is None:
                break
            begin, first = before
        text, end, last = first, begin + len(first), first
        for _ in range(_MOST_PIECES):
            after = self._piece_after(last, end - len(last), text is not first)
            if after is None:
                break
            end, last, rest = after
            text += rest
        return None if begin == offset and end == offset + len(data) else (text, begin, end)

    def _piece_before(self, line: bytes, offset: int) -> tuple[int, bytes] | None:
        """Return offset and bytes of the piece that this line continues."""
        for at, data in self._long_lines_before(offset):
            piece = parse_piece(data, self._table)
            if piece is not None and text_of_same_writer(line, piece, self._table) is not None:
                after = self._piece_after(data, at, False) or (
                    self._piece_after(data, at, True) if self._piece_before(data, at) else None
                )
                return (at, data) if after is not None and after[0] - len(after[1]) == offset else None
        return None

    def _piece_after(self, line: bytes, offset: int, is_later_piece: bool) -> tuple[int, bytes, bytes] | None:
        """Return the piece that continues `line`: its end, its bytes, and its text."""
        piece = parse_piece(line, self._table)
        if piece is None:
            return None
        start = offset + len(line) + 1
        data = self._read(start, min(REACH + LONGEST_CUT_LINE, max(0, self._size - start)))
        place = find_next_line(data, 0, piece, self._table)
        if place is None:
            return None
        following = data[place[0] : place[1]]
        rest = following[piece.start :]
        if not is_continuation(piece, line, rest, self._table, is_later_piece):
            return None
        return start + place[1], following, rest

    def _long_lines_before(self, offset: int) -> Iterator[tuple[int, bytes]]:
        """Yield the lines as long as a piece, nearest first. Mostly there are none."""
        for cell in (offset // REACH, offset // REACH - 1):
            yield from ((at, data) for at, data in reversed(self._long_lines_in(cell)) if offset - REACH <= at < offset)

    def _long_lines_in(self, cell: int) -> list[tuple[int, bytes]]:
        lines = self._cells.get(cell) if cell >= 0 else []
        if lines is None:
            start = max(0, cell * REACH - 1)
            data = self._read(start, REACH + LONGEST_CUT_LINE + 1)
            first = data.find(b"\n") + 1 if start else 0
            limit = cell * REACH + REACH - start
            places = (match.span() for match in _LONG_LINE.finditer(data, first) if match.start() < limit)
            lines = [(start + at, data[at:stop]) for at, stop in places]
            if len(self._cells) > _MOST_PIECES:
                self._cells.clear()
            self._cells[cell] = lines
        return lines


def find_joined_lines(data: bytes, table: Table) -> Iterator[tuple[int, int, str, Sequence[str]]]:
    """Yield the cut lines of a whole source: start and end of the first piece, the whole text, and the bytes there."""
    lines = CutLines(lambda offset, length: data[offset : offset + length], len(data), table)
    for match in _LONG_LINE.finditer(data):
        joined = lines.join_pieces(match.group(), match.start())
        if joined is not None and joined[1] == match.start():
            text, begin, end = joined
            yield *match.span(), text.decode("utf-8", "replace"), [data[begin:end].decode("utf-8", "replace")]
