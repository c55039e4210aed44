"""Lines that a collector cut at 1,024 bytes, each piece behind its own prefix: srun --label (SLURM_IO_MAX_MSG_LEN),
logger and syslog.

A line of just that length may be whole. The text decides: what follows by the same writer goes on within a word or
behind a comma, or is as
long again. srun also puts a newline behind a whole line of that length, behind a label of its own, so that there
nothing is open.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from triage.base.lazy_re import lazy_re
from triage.ranks.grammars import Table, start_class
from triage.ranks.prefix import Parsed, parse

Read = Callable[[int, int], bytes]

# What follows of a line is looked for in so many bytes. srun and logger write the pieces one right after the other.
REACH = 1 << 14
# util-linux and srun cut at 1,024; BusyBox and BSD read 1,023 at a time.
_WIDTHS = (1024, 1023)
_PREFIX = 160
SHORTEST, LONGEST = min(_WIDTHS) + 1, max(_WIDTHS) + _PREFIX
_MOST_PIECES = 64
_ASKED = 12  # of the sampled lines, whether a collector stands before them
_LABELS = frozenset({"srun --label", "srun --label on every line", "srun --label of het jobs"})
_SYSLOG = frozenset({"syslog", "journal with ISO stamps"})
CUTTING = _LABELS | _SYSLOG | {"PALS --label"}
_WORD = lazy_re(rb"[\w\x80-\xff]")
_OPEN_END = lazy_re(rb"(?:[ ,(\[{/]|\w=)\Z")
_OPEN_START = lazy_re(rb"[,;)\]}]| [^ ]|[.:][\w/]")
_LONG = lazy_re(rb"(?m)^[^\n]{%d,%d}$" % (SHORTEST, LONGEST))


@dataclass(frozen=True, slots=True)
class Piece:
    """A line whose text, behind `start` bytes of a collector's prefix, is as long as that collector lets it be."""

    start: int
    prefix: bytes
    writer: str
    width: int
    label: bool


def told(lines: Sequence[str], table: Table, longest: int) -> tuple[bool, bool]:
    """What stands before most of the sampled lines of a source: a collector that cuts, where none is longer than it
    lets them be;
    and syslog, so that `#012` in the others is a newline, as rsyslog writes it."""
    layers = [parse(line, 1970, table).layers for line in lines[:: len(lines) // _ASKED or 1]]
    cutting, escaping = (
        2 * sum(not names.isdisjoint(found) for found in layers) >= len(layers) > 0 for names in (CUTTING, _SYSLOG)
    )
    return cutting and longest <= LONGEST, escaping


def unescaped(data: bytes, year: int, table: Table) -> list[tuple[str, Parsed]] | None:
    """The lines of a record that rsyslog wrote into one, each with what its prefix says; None for any other line."""
    if b"#012" not in data:
        return None
    first, *others = data.decode("utf-8", "replace").replace("#011", "\t").split("#012")
    entries = (entry for entry in table[start_class(first, 0)] if entry.name in _SYSLOG)
    head = next((match for entry in entries if (match := entry.pattern.match(first))), None)
    if head is None:
        return None
    carried = dataclasses.replace(parse(head.group() + "x", year, table), text="")
    return [(line, carried) for line in (first[head.end() :], *others)]


def piece_of(line: bytes, table: Table) -> Piece | None:
    """The line as a piece of a longer one, if its length is right; whether that goes on, what follows it says."""
    if not SHORTEST <= len(line) <= LONGEST:
        return None
    for width in _WIDTHS:
        start = len(line) - width
        found = parse(line[:start].decode("latin-1") + "x", 1970, table) if start > 0 else None
        if found is not None and found.text == "x" and found.layers[-1:] and found.layers[-1] in CUTTING:
            label = found.layers[-1] in _LABELS
            return Piece(start, line[:start], found.writer, width, label) if width == _WIDTHS[0] or not label else None
    return None


def rest_of(line: bytes, piece: Piece, table: Table) -> bytes | None:
    """What the same writer wrote on another line; None where it is another's. Stamps in the prefix may differ."""
    if not line.startswith(piece.prefix):
        if line == piece.prefix.rstrip():  # an editor took the blank
            return b""
        if piece.label or len(line) < piece.start or line[piece.start - 1] != piece.prefix[-1]:
            return None
        found = parse(line[: piece.start].decode("latin-1") + "x", 1970, table)
        if found.text != "x" or found.writer != piece.writer:
            return None
    return line[piece.start :]


def goes_on(piece: Piece, line: bytes, rest: bytes, table: Table, later: bool) -> bool:
    """Does `rest`, the next that the writer of `line` wrote, belong to it? `later`: the line goes on with another one
    itself.
    """
    if not rest:
        return piece.label
    found = parse(rest[: 2 * _PREFIX].decode("latin-1"), 1970, table)
    if found.layers or rest.startswith((b"Traceback (", b'  File "')):
        return False
    if later or len(rest) == piece.width or piece.label:
        return True
    if _WORD.match(line[-1:]) and _WORD.match(rest):
        return True
    return _OPEN_END.search(line) is not None or _OPEN_START.match(rest) is not None


def following(data: bytes, at: int, piece: Piece, table: Table) -> tuple[int, int] | None:
    """Where in `data`, from `at` on, the next line by the writer of a piece lies."""
    limit = min(len(data), at + REACH)
    while at < limit:
        stop = data.find(b"\n", at)
        stop = len(data) if stop < 0 else stop
        if rest_of(data[at:stop], piece, table) is not None:
            return at, stop
        at = stop + 1
    return None


def quiet_from(data: bytes, table: Table) -> int:
    """From where on behind `data` no line goes on with a piece that stands in it, as an offset in it; 0 where there is
    none.
    """
    pieces = [match.end() for match in _LONG.finditer(data) if piece_of(match.group(), table) is not None]
    return pieces[-1] + 1 + REACH if pieces else 0


class Cuts:
    """The cut lines of one source that is read at any offset."""

    def __init__(self, read: Read, size: int, table: Table) -> None:
        self._read = read
        self._size = size
        self._table = table
        self._cells: dict[int, list[tuple[int, bytes]]] = {}

    def joined(self, data: bytes, offset: int) -> tuple[bytes, int, int] | None:
        """The line that the piece `data` at `offset` belongs to, as if it were whole, where it begins and where it
        ends; None for a whole one.
        """
        begin, first = offset, data
        for _ in range(_MOST_PIECES):
            before = self._before(first, begin)
            if before is None:
                break
            begin, first = before
        text, end, last = first, begin + len(first), first
        for _ in range(_MOST_PIECES):
            after = self._after(last, end - len(last), text is not first)
            if after is None:
                break
            end, last, rest = after
            text += rest
        return None if begin == offset and end == offset + len(data) else (text, begin, end)

    def _before(self, line: bytes, offset: int) -> tuple[int, bytes] | None:
        """The piece that goes on with this line."""
        for at, data in self._long_before(offset):
            piece = piece_of(data, self._table)
            if piece is not None and rest_of(line, piece, self._table) is not None:
                after = self._after(data, at, False) or (
                    self._after(data, at, True) if self._before(data, at) else None
                )
                return (at, data) if after is not None and after[0] - len(after[1]) == offset else None
        return None

    def _after(self, line: bytes, offset: int, later: bool) -> tuple[int, bytes, bytes] | None:
        """Where the piece that `line` goes on with ends, that piece, and its text."""
        piece = piece_of(line, self._table)
        if piece is None:
            return None
        start = offset + len(line) + 1
        data = self._read(start, min(REACH + LONGEST, max(0, self._size - start)))
        place = following(data, 0, piece, self._table)
        if place is None:
            return None
        found = data[place[0] : place[1]]
        rest = found[piece.start :]
        return (start + place[1], found, rest) if goes_on(piece, line, rest, self._table, later) else None

    def _long_before(self, offset: int) -> Iterator[tuple[int, bytes]]:
        """Lines as long as pieces are, nearest first. There are none nearly everywhere."""
        for cell in (offset // REACH, offset // REACH - 1):
            yield from ((at, data) for at, data in reversed(self._cell(cell)) if offset - REACH <= at < offset)

    def _cell(self, number: int) -> list[tuple[int, bytes]]:
        found = self._cells.get(number) if number >= 0 else []
        if found is None:
            start = max(0, number * REACH - 1)
            data = self._read(start, REACH + LONGEST + 1)
            cut = data.find(b"\n") + 1 if start else 0
            limit = number * REACH + REACH - start
            places = (match.span() for match in _LONG.finditer(data, cut) if match.start() < limit)
            found = [(start + at, data[at:stop]) for at, stop in places]
            if len(self._cells) > _MOST_PIECES:
                self._cells.clear()
            self._cells[number] = found
        return found


def lines_of(data: bytes, table: Table) -> Iterator[tuple[int, int, str, Sequence[str]]]:
    """The cut lines of a source that is held whole: where their first pieces begin and end, their text, and what stands
    there of it.
    """
    cuts = Cuts(lambda offset, length: data[offset : offset + length], len(data), table)
    for match in _LONG.finditer(data):
        found = cuts.joined(match.group(), match.start())
        if found is not None and found[1] == match.start():
            yield (
                match.start(),
                match.end(),
                found[0].decode("utf-8", "replace"),
                [data[found[1] : found[2]].decode("utf-8", "replace")],
            )
