"""Several logs in one text, each below a heading with its name, as `tail -n +1 *.log` and `head` write them.

Each becomes a source of its own, as the member of an archive: its name may be that of a host or a rank, and its last
lines are where its writer ended.
"""

from __future__ import annotations

from collections.abc import Iterator

from triage.sources.bytestream import PIECE, ByteStream
from triage.sources.expand import Expansion
from triage.sources.file_headings import HEADING
from triage.sources.interface import FileKind, OpenedSource, ReaderInput, member_name

_LONGEST = 512  # bytes of a heading with a prefix


class JoinedReader:
    """Yields a source for each log below a heading."""

    kinds: frozenset[FileKind] = frozenset({"joined"})

    def read(self, item: ReaderInput, expansion: Expansion) -> Iterator[OpenedSource]:
        """Yield the sources in the order of the headings."""
        sections = _Sections(item.stream)
        while (name := sections.next_name()) is not None and expansion.count_member(item):
            stream = _SectionStream(sections)
            inner = expansion.input_for(
                item, stream, name=expansion.name_member(item, name), size=None, archives=item.archives + 1
            )
            yield from expansion.expand(inner)
            while stream.read1(PIECE):
                pass


class _Sections:
    """The text from its first heading on, read piece by piece."""

    def __init__(self, parent: ByteStream) -> None:
        self._parent = parent
        self._data = b""
        self._is_over = False

    def next_name(self) -> str | None:
        """Return the name in the next heading, which is consumed; None at the end."""
        while self._fill():
            match = HEADING.search(self._data)
            if match is not None and match.start() == 0:
                self._data = self._data[match.end() + 1 :]
                return member_name(match["name"].decode("utf-8", "replace"))
            if not self.read():
                return None
        return None

    def read(self) -> bytes:
        """Return the next bytes before a heading; nothing where one begins, and at the end."""
        if not self._fill():
            return b""
        match = HEADING.search(self._data)
        # Without a heading, the last line stays, as it may be the begin of one.
        end = match.start() if match is not None else len(self._data) if self._is_over else self._last_line()
        piece, self._data = self._data[:end], self._data[end:]
        return piece

    def _last_line(self) -> int:
        start = self._data.rfind(b"\n") + 1
        return start if start and len(self._data) - start < _LONGEST else max(1, len(self._data) - 1)

    def _fill(self) -> bool:
        """Read on until a whole line is there; return whether anything is."""
        while not self._is_over and b"\n" not in self._data[1:] and len(self._data) < PIECE:
            piece = self._parent.read1(PIECE)
            self._is_over = not piece
            self._data += piece
        self._data = self._data.removeprefix(b"\xef\xbb\xbf")
        return bool(self._data)


class _SectionStream(ByteStream):
    """The lines below one heading, up to the next."""

    def __init__(self, sections: _Sections) -> None:
        super().__init__()
        self._sections = sections

    def _read_piece(self) -> bytes:
        return self._sections.read()
