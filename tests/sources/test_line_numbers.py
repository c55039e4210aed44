"""Texts with a number before each line, as `cat -n` writes them."""

from __future__ import annotations

import io

import pytest

import triage
from triage.sources.bytestream import ByteStream
from triage.sources.classify import classify
from triage.sources.interface import NUMBERED
from triage.sources.line_numbers import UnnumberedStream, has_line_numbers

LINES = ["Traceback (most recent call last):", '  File "a.py", line 3, in f', "", "\t12\tkept", "KeyError: 'tokens'"]


def numbered(first: int = 1) -> bytes:
    return "".join(f"{number:6d}\t{line}\n" for number, line in enumerate(LINES, first)).encode()


class Pieces(ByteStream):
    """Bytes in pieces of a given size."""

    def __init__(self, data: bytes, size: int) -> None:
        super().__init__()
        self._data, self._size = io.BytesIO(data), size

    def _read_piece(self) -> bytes:
        return self._data.read(self._size)


@pytest.mark.parametrize("first", [1, 999_998])
@pytest.mark.parametrize("size", [1, 2, 7, 19, 20, 21, 4096])
def test_numbers_are_removed(first: int, size: int) -> None:
    """The lines are those without numbers, wherever a piece ends."""
    stream, read = UnnumberedStream(Pieces(numbered(first), size)), b""
    while piece := stream.read1(1 << 16):
        read += piece
    assert read == "".join(f"{line}\n" for line in LINES).encode()


def test_numbers_are_recognised() -> None:
    """Consecutive numbers in six columns, from any line on, also of one line; blank lines need none."""
    for text in (numbered(), numbered(500), b"     1\tone\n", b"     7\ta\n       \n     8\tb\n"):
        assert classify(text) == ("text", NUMBERED), text


def test_tables_keep_their_numbers() -> None:
    """Numbers that are not consecutive, not aligned, or not before all lines, belong to the text."""
    for text in (
        b"     1\ta\n     3\tb\n",
        b"1\ta\n2\tb\n",
        b"     1\ta\nb\n",
        b"     7\tone\n",
        b"      1\ta\n      2\tb\n",
    ):
        assert not has_line_numbers(text), text
        assert classify(text) == ("text", "utf-8"), text


def test_an_exception_in_numbered_lines_is_found(tmp_path) -> None:  # type: ignore[no-untyped-def]
    """The report has the number of the line, and the exception without numbers."""
    (tmp_path / "job.log").write_bytes(numbered())
    diagnosis = triage.ingest(tmp_path)
    assert diagnosis.root_cause is not None
    assert "KeyError" in diagnosis.root_cause.title
    assert diagnosis.root_cause.evidence[0].line in (1, 5)


def test_an_environment_is_recognised_in_another_encoding() -> None:
    """The output of `env` with line numbers, or from PowerShell, is no log."""
    lines = ["PATH=/usr/bin:/bin", "HOME=/root", "NCCL_DEBUG=INFO", "RANK=3", "WORLD_SIZE=8", "HOSTNAME=n1"]
    rows = "".join(f"{number:6d}\t{line}\n" for number, line in enumerate(lines, 1)).encode()
    assert classify(rows) == ("environment", NUMBERED)
    wide = b"\xff\xfe" + "\r\n".join(lines).encode("utf-16-le")
    assert classify(wide) == ("environment", "utf-16-le")
    assert classify(b"\xff\xfe" + "step 3 loss=1\r\nstep 4 loss=2\r\n".encode("utf-16-le")) == ("text", "utf-16-le")
