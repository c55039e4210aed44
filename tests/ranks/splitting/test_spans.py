"""triage.ranks.splitting.spans"""

from __future__ import annotations

import ctypes
import errno
import os
import tempfile
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from triage.ranks.splitting import spans
from triage.ranks.splitting.spans import Spans, address_of


def written(data: bytes, pieces: list[tuple[int, int]]) -> bytes:
    """What arrives in a file of the pieces [start, stop) of `data`."""
    begins, ends = (np.array([piece[index] for piece in pieces], np.uintp) for index in (0, 1))
    rows = Spans(begins + np.uintp(address_of(data)), ends - begins)
    with tempfile.TemporaryFile() as file:
        rows.write(file.fileno(), 0, len(pieces), int((ends - begins).sum()))
        file.seek(0)
        return file.read()


PIECES = st.lists(
    st.tuples(st.integers(0, 200), st.integers(0, 200)).map(lambda pair: (min(pair), max(pair))),
    min_size=1,
    max_size=50,
)


@given(PIECES, st.sampled_from([3, 1024]), st.sampled_from(["writev", "less at once", "none"]))
def test_pieces_arrive_in_their_order(pieces: list[tuple[int, int]], most: int, system: str) -> None:
    """However many rows the system takes at once, however few bytes, and where it has no such call."""
    data = bytes(range(200))
    call = spans.writev()
    assert call is not None

    def less(fd: int, address: int, rows: int) -> int:
        return (
            os.write(fd, ctypes.string_at(ctypes.c_void_p.from_address(address).value or 0, 1))
            if len(pieces) % 2
            else -1
        )

    given = {"writev": call, "less at once": less, "none": None}[system]
    ctypes.set_errno(errno.EINTR)
    starting = [piece for piece in pieces if piece[0] < piece[1]] or [(0, 1)]
    with mock.patch.object(spans, "writev", return_value=given), mock.patch.object(spans, "_MOST", most):
        assert written(data, starting) == b"".join(data[begin:end] for begin, end in starting)


def test_a_full_disk_is_an_error() -> None:
    """As with os.write."""
    rows = Spans(np.array([address_of(b"abc")], np.uintp), np.array([3], np.uintp))
    with open("/dev/full", "wb", buffering=0) as file, pytest.raises(OSError, match="No space"):
        rows.write(file.fileno(), 0, 1, 3)
