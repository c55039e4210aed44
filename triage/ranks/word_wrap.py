"""Pastes that an editor or a mail program broke between words: join the lines again.

The text alone shows it: at each break the next word would have made the line longer than the longest line, and the
next line begins as nothing but the rest of a sentence does. One place that contradicts this, and the paste is left as
it is. Only short sources are checked: a log has lines of all lengths.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from triage.base.lazy_re import lazy_re

Read = Callable[[int, int], bytes]

SMALL = 1 << 13
_NARROWEST, _WIDEST = 68, 120
_MOST_LINES = 60
_FEWEST_BREAKS = 2  # a long line before a short one may be by chance
# A break leaves no more than this free: longer words are addresses and paths, and say nothing of the width.
_LONGEST_WORD = 30
# How another line begins: indented, with a prefix, a program's name, a stamp, a ruler, or as a part of a crash report.
_LINE_START = lazy_re(
    r"\s|[\[#*=>|$+-]|\(\w+ pid=|\d[\d:.T-]*(?:[: \]]|$)\s*(?:\d\d:|\w+[:\[])|\S*:(?:\s|$)|[\w.]+=\S|\w[\w.-]*[:\[(]\d"
    r"|[IWEF]\d{4} |(?:INFO|WARN(?:ING)?|ERROR|DEBUG|Traceback|terminate called|frame #|During handling)\b"
)
_SENTENCE_END = lazy_re(r"[.!?;}\]>]$")
_COLUMNS = lazy_re(r"\S {3,}\S")
_LOWER_CASE = lazy_re(r"[a-z\d\"'`(]")
_NUMBER = lazy_re(r"\d+")


def detect_width(data: bytes) -> int:
    """Return the length of the longest line where lines were broken between words; 0 if they were not."""
    if not data or len(data) > SMALL:
        return 0
    lines = _split(data)
    width = max(map(len, lines))
    if not _NARROWEST <= width <= _WIDEST or len(lines) > _MOST_LINES:
        return 0
    breaks = [index for index in range(len(lines) - 1) if _is_full(lines[index], lines[index + 1], width)]
    if len(breaks) < _FEWEST_BREAKS or not any(_LOWER_CASE.match(lines[index + 1]) for index in breaks):
        return 0
    others = {_first_word(line) for index, line in enumerate(lines) if index - 1 not in breaks}
    return width if all(_is_continued(lines[index], lines[index + 1], others) for index in breaks) else 0


def join_pieces(width: int, offset: int, size: int, read: Read) -> tuple[bytes, int, int] | None:
    """Return the whole line of the piece at `offset`, where it begins and where it ends.

    None for a line that is not broken.
    """
    for begin, end, text, _ in find_joined_lines(width, read(0, size)):
        if begin <= offset < end:
            return text.encode("utf-8", "replace"), begin, end
    return None


def join_lines(width: int, data: bytes) -> bytes:
    """Return the source with its broken lines whole, in order."""
    lines = data.split(b"\n")
    for begin, _, text, pieces in reversed(list(find_joined_lines(width, data))):
        first = data.count(b"\n", 0, begin)
        lines[first : first + len(pieces)] = [text.encode("utf-8", "replace")]
    return b"\n".join(lines)


def find_joined_lines(width: int, data: bytes) -> Iterator[tuple[int, int, str, Sequence[str]]]:
    """Yield the broken lines of a whole source: start, end, the whole text, and the pieces."""
    raw_lines, lines = data.split(b"\n"), _split(data)
    at = begin = 0
    pieces: list[str] = []
    for index, (raw, line) in enumerate(zip(raw_lines, lines, strict=True)):
        begin = begin if pieces else at
        pieces.append(line)
        if index + 1 == len(lines) or not _is_full(line, lines[index + 1], width):
            if len(pieces) > 1:
                yield begin, at + len(raw), " ".join(pieces), pieces
            pieces = []
        at += len(raw) + 1


def _split(data: bytes) -> list[str]:
    return [line.rstrip() for line in data.decode("utf-8", "replace").split("\n")]


def _is_full(line: str, following: str, width: int) -> bool:
    """Would the first word of the next line have made this one longer than the longest?"""
    is_near = len(line) > width - _LONGEST_WORD
    return is_near and bool(following) and len(line) + 1 + len(following.split(" ", 1)[0]) > width


def _is_continued(line: str, following: str, others: set[str]) -> bool:
    """Can the next line be the rest of this one's sentence? Not where other lines begin with the same word."""
    is_row = _COLUMNS.search(line) and _COLUMNS.search(following)
    is_other = _LINE_START.match(following) or _SENTENCE_END.search(line) or _first_word(following) in others
    return not (is_row or is_other)


def _first_word(line: str) -> str:
    """Return the first word of a line without its numbers: prefixes of two writers are alike."""
    return _NUMBER.sub("#", line.split(maxsplit=1)[0]) if line.strip() else ""
