"""Text with a number before each line, as `cat -n` and `nl` write it: read without the numbers."""

from __future__ import annotations

from triage.base.lazy_re import lazy_re
from triage.sources.bytestream import PIECE, ByteStream

# Right-aligned in six columns, then a tab.
_NUMBER = lazy_re(rb"(?m)^(?=[ \d]{5}\d) {0,5}(\d{1,12})\t")
_BLANK = lazy_re(rb" {0,7}\r?")
_FEWEST = 2  # numbered lines, unless the first has number 1
_LONGEST = 20  # bytes of a number with its columns


def has_line_numbers(head: bytes) -> bool:
    """Whether all lines in the start of a text have consecutive numbers; blank lines may have none."""
    if _NUMBER.match(head) is None:
        return False
    numbers = []
    for line in head.split(b"\n")[:-1]:
        match = _NUMBER.match(line)
        if match is not None:
            numbers.append(int(match[1]))
        elif not _BLANK.fullmatch(line):
            return False
    is_enough = len(numbers) >= _FEWEST or numbers == [1]
    return is_enough and numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def remove_line_numbers(text: bytes) -> bytes:
    """Return whole lines without their numbers."""
    return _NUMBER.sub(b"", text)


class UnnumberedStream(ByteStream):
    """A parent's lines without their numbers."""

    def __init__(self, parent: ByteStream) -> None:
        super().__init__()
        self._parent = parent
        self._begin = b""  # of a line, as far as it is known
        self._is_line_start = True

    def _read_piece(self) -> bytes:
        while True:
            piece = self._parent.read1(PIECE)
            data = self._begin + piece
            if not data:
                self.damage = self._parent.damage
                return b""
            start = data.rfind(b"\n") + 1
            # The last line stays where its number may not be whole yet.
            can_wait = bool(piece) and (start > 0 or self._is_line_start) and len(data) - start < _LONGEST
            end = start if can_wait else len(data)
            ready, self._begin = data[:end], data[end:]
            if ready:
                return self._without_numbers(ready)

    def _without_numbers(self, data: bytes) -> bytes:
        first, rest = (b"", data) if self._is_line_start else _cut_line(data)
        self._is_line_start = data.endswith(b"\n")
        return first + remove_line_numbers(rest)


def _cut_line(data: bytes) -> tuple[bytes, bytes]:
    """Return what belongs to a line that has begun before, and the lines behind it."""
    end = data.find(b"\n") + 1 or len(data)
    return data[:end], data[end:]
