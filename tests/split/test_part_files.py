"""triage.split.part_files"""

from __future__ import annotations

import ctypes
import errno
import os
import tempfile
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, strategies as st

from triage.split import part_files
from triage.split.part_files import MemorySpans, address_of


def write_pieces(data: bytes, pieces: list[tuple[int, int]]) -> bytes:
    """Return the content of a file after the pieces [start, stop) of `data` are written to it."""
    begins, ends = (np.array([piece[index] for piece in pieces], np.uintp) for index in (0, 1))
    rows = MemorySpans(begins + np.uintp(address_of(data)), ends - begins)
    with tempfile.TemporaryFile() as file:
        rows.write(file.fileno(), 0, len(pieces), int((ends - begins).sum()))
        file.seek(0)
        return file.read()


PIECES = st.lists(
    st.tuples(st.integers(0, 200), st.integers(0, 200)).map(lambda pair: (min(pair), max(pair))),
    min_size=1,
    max_size=50,
)


@given(PIECES, st.sampled_from([3, 1024]), st.sampled_from(["writev", "partial", "none"]))
def test_pieces_are_written_in_order(pieces: list[tuple[int, int]], most: int, system: str) -> None:
    """For any limit of rows and bytes per system call, and on systems without writev."""
    data = bytes(range(200))
    writev = part_files.load_writev()
    assert writev is not None

    def write_one_byte(fd: int, address: int, rows: int) -> int:
        return (
            os.write(fd, ctypes.string_at(ctypes.c_void_p.from_address(address).value or 0, 1))
            if len(pieces) % 2
            else -1
        )

    function = {"writev": writev, "partial": write_one_byte, "none": None}[system]
    ctypes.set_errno(errno.EINTR)
    pieces_with_bytes = [piece for piece in pieces if piece[0] < piece[1]] or [(0, 1)]
    with (
        mock.patch.object(part_files, "load_writev", return_value=function),
        mock.patch.object(part_files, "_IOV_MAX", most),
    ):
        assert write_pieces(data, pieces_with_bytes) == b"".join(data[begin:end] for begin, end in pieces_with_bytes)


def test_a_full_disk_raises() -> None:
    """It raises OSError, like os.write."""
    rows = MemorySpans(np.array([address_of(b"abc")], np.uintp), np.array([3], np.uintp))
    with open("/dev/full", "wb", buffering=0) as file, pytest.raises(OSError, match="No space"):
        rows.write(file.fileno(), 0, 1, 3)
