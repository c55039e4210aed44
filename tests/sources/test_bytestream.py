"""triage.sources.bytestream and stream_views"""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from triage.sources import Limits, discover, streams
from triage.sources.bytestream import LEAST_HOLE, ByteStream, Damage, FileStream, MemoryStream
from triage.sources.stream_views import CappedStream, ChecksummedStream, SliceStream, SparseStream, TranscodedStream


class PieceStream(ByteStream):
    """A stream that returns its bytes in given pieces."""

    def __init__(self, pieces: list[bytes]) -> None:
        super().__init__()
        self._pieces = [piece for piece in pieces if piece]

    def _read_piece(self) -> bytes:
        return self._pieces.pop(0) if self._pieces else b""


PIECES = st.lists(st.binary(max_size=20), max_size=10)


@given(
    PIECES,
    st.lists(st.tuples(st.sampled_from(["read", "read1", "peek", "readinto", "seek", "unread"]), st.integers(0, 30))),
)
def test_any_way_of_reading_gives_the_same_bytes(pieces: list[bytes], calls: list[tuple[str, int]]) -> None:
    """read, read1, peek, readinto, seek and unread agree with slices of the whole, and tell is right."""
    whole, stream, at = b"".join(pieces), PieceStream(pieces), 0
    for call, size in calls:
        if call == "read":
            got = stream.read(size)
            assert got == whole[at : at + size]
            at += len(got)
        elif call == "read1":
            got = stream.read1(size)
            assert whole[at:].startswith(got)
            assert got or not size or at == len(whole)
            at += len(got)
        elif call == "peek":
            assert stream.peek(size) == whole[at : at + size]
        elif call == "readinto":
            space = bytearray(size)
            done = stream.readinto(space)
            assert space[:done] == whole[at : at + size]
            at += done
        elif call == "seek":
            at = stream.seek(at + size)
        else:
            got = stream.read(size)
            stream.unread(got)
        assert stream.tell() == at <= len(whole)
    assert stream.read() == whole[at:]


def test_seeking_back_raises() -> None:
    """A stream that cannot seek back raises an error."""
    stream = PieceStream([b"abc"])
    stream.read(2)
    with pytest.raises(io.UnsupportedOperation):
        stream.seek(0)


def test_a_file_can_be_read_at_any_offset(tmp_path: Path) -> None:
    """Files seek in all three ways, inside the buffer and outside."""
    path = tmp_path / "f"
    path.write_bytes(bytes(range(256)) * 4096)
    stream = FileStream(str(path))
    assert stream.seek(-1, os.SEEK_END) == (1 << 20) - 1
    assert stream.read() == b"\xff"
    assert stream.seek(3) == 3
    assert stream.read(2) == b"\x03\x04"
    assert stream.seek(1, os.SEEK_CUR) == 6
    assert stream.read(1) == b"\x06"
    stream.close()
    stream.close()


def test_an_io_error_ends_a_file_with_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bytes before a disk error are delivered."""
    path = tmp_path / "f"
    path.write_bytes(b"x" * 400_000)
    real = os.pread

    def failing(fd: int, size: int, offset: int) -> bytes:
        if offset:
            raise OSError(5, "Input/output error")
        return real(fd, size, offset)

    monkeypatch.setattr(os, "pread", failing)
    stream = FileStream(str(path))
    assert stream.read() == b"x" * 262_144
    assert stream.damage
    assert stream.damage.code == "unreadable"
    stream.close()


@given(PIECES, st.integers(0, 100))
def test_a_slice_is_the_next_bytes_of_its_parent(pieces: list[bytes], length: int) -> None:
    """A slice has exactly its length, and reports when the parent is too short."""
    whole, parent = b"".join(pieces), PieceStream(pieces)
    part = SliceStream(parent, length)
    assert part.read() == whole[:length]
    assert (part.damage is not None) == (len(whole) < length)
    assert parent.read() == whole[length:]


@given(PIECES, st.integers(0, 100))
def test_a_capped_stream_ends_at_the_cap(pieces: list[bytes], limit: int) -> None:
    """The limit cuts the stream, and is reported only when something was cut."""
    whole, capped = b"".join(pieces), CappedStream(PieceStream(pieces), limit)
    assert capped.read() == whole[:limit]
    assert (capped.damage is not None) == (len(whole) > limit)


def test_holes_are_read_as_nuls() -> None:
    """Runs and holes are in order, up to the size, and every byte is counted."""
    spent: list[int] = []
    sparse = SparseStream(MemoryStream(b"abXY"), [(3, 2), (7, 2)], 12, lambda count: spent.append(count))  # type: ignore[func-returns-value,return-value]
    assert sparse.read() == b"\0\0\0ab\0\0XY\0\0\0"
    assert sum(spent) == 12
    assert sparse.damage is None


@pytest.mark.parametrize("runs", [[(5, 2), (3, 1)], [(0, -1)], [(0, 4), (2, 4)]])
def test_an_invalid_map_of_holes_is_corrupt(runs: list[tuple[int, int]]) -> None:
    """Runs that overlap, go back or are negative end the member without a loop."""
    sparse = SparseStream(MemoryStream(b"abcdef"), runs, 10, lambda _: None)
    sparse.read()
    assert sparse.damage
    assert sparse.damage.code == "corrupt"


def test_holes_stop_at_the_limit() -> None:
    """A member of nothing but holes ends at the limit."""
    sparse = SparseStream(MemoryStream(b""), [], 1 << 50, lambda _: Damage("too-large", "x"))
    assert sparse.read() == b""
    assert sparse.damage


def test_a_wrong_checksum_costs_no_byte() -> None:
    """All bytes are delivered, then the wrong checksum is reported."""
    checked = ChecksummedStream(MemoryStream(b"hello"), 1)
    assert checked.read() == b"hello"
    assert checked.damage
    assert checked.damage.code == "corrupt"


@given(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=200),
    st.sampled_from(["utf-16-le", "utf-16-be", "utf-32-le"]),
    st.integers(1, 7),
)
def test_wide_text_becomes_utf8(text: str, encoding: str, size: int) -> None:
    """Decoding does not depend on how the pieces are cut."""
    data = ("\ufeff" + text).encode(encoding)
    stream = TranscodedStream(PieceStream([data[at : at + size] for at in range(0, len(data), size)]), encoding)
    assert stream.read() == text.encode()


@pytest.mark.parametrize(("hole", "is_skipped"), [(LEAST_HOLE, True), (LEAST_HOLE - 4096, False), (1 << 40, True)])
@pytest.mark.parametrize("tail", [b"2\n", b""])
def test_large_holes_of_a_file_are_skipped(tmp_path: Path, hole: int, is_skipped: bool, tail: bytes) -> None:
    """A hole is read as one NUL, also at the end, so that a file of a terabyte with two lines takes no time."""
    path = tmp_path / "a.log"
    path.write_bytes(b"1\n".rjust(4096, b"x"))
    os.truncate(path, 4096 + hole)
    with path.open("ab") as file:
        file.write(tail)
    file = discover([str(path)]).files[0]
    assert file.is_sparse is is_skipped
    texts = [stream.read() if stream else None for _, stream in streams(file, Limits(), lambda warning: None)]
    assert texts == [b"1\n".rjust(4096, b"x") + b"\0" + tail if is_skipped else None]
