"""Text with a vertical bar on both sides of each line, as the screens of k9s and of other terminal programs have it."""

from __future__ import annotations

import io

import pytest

import triage
from triage.sources.bytestream import ByteStream
from triage.sources.classify import classify
from triage.sources.interface import FRAMED
from triage.sources.line_frames import UnframedStream, has_line_frames

LINES = ["Traceback (most recent call last):", '  File "a.py", line 3, in f', "", "a │ b", "KeyError: 'tokens'"]


def framed(bar: str = "│", width: int = 60) -> bytes:
    return "".join(f"{bar} {line:{width}}{bar}\n" for line in LINES).encode()


class Pieces(ByteStream):
    """Bytes in pieces of a given size."""

    def __init__(self, data: bytes, size: int) -> None:
        super().__init__()
        self._data, self._size = io.BytesIO(data), size

    def _read_piece(self) -> bytes:
        return self._data.read(self._size)


@pytest.mark.parametrize("bar", ["│", "┃", "║"])
@pytest.mark.parametrize("size", [1, 2, 7, 63, 64, 4096])
def test_frames_are_removed(bar: str, size: int) -> None:
    """The lines are those inside the frame, wherever a piece ends."""
    stream, read = UnframedStream(Pieces(framed(bar), size)), b""
    while piece := stream.read1(1 << 16):
        read += piece
    assert read == "".join(f"{line}\n" for line in LINES).encode()


def test_the_last_line_may_be_cut_off() -> None:
    """A line without its end or its right bar keeps its text."""
    stream = UnframedStream(Pieces("│ one │\n│ two".encode(), 4))
    assert stream.read1(1 << 16) + stream.read1(1 << 16) == b"one\ntwo"


def test_frames_are_recognised() -> None:
    """The same bar is on both sides of all lines but blank ones."""
    for text in (framed(), framed("┃"), b"\n" + framed(), "│a│  \n\n│b│\n".encode()):
        assert classify(text) == ("text", FRAMED), text


def test_tables_and_boxes_keep_their_bars() -> None:
    """Rich's boxes have corners, and tables of ASCII have other bars."""
    for text in (
        "╭─ Traceback ─╮\n│ a │\n│ b │\n╰─╯\n",
        "| a | b |\n| c | d |\n",
        "│ a │\nb\n│ c │\n",
        "│ a │\n",
        "│ a\n│ b\n",
    ):
        assert not has_line_frames(text.encode()), text
        assert classify(text.encode()) == ("text", "utf-8"), text


def test_an_exception_in_a_frame_is_found(tmp_path) -> None:  # type: ignore[no-untyped-def]
    """The report has the exception without the frame."""
    (tmp_path / "job.log").write_bytes(framed())
    diagnosis = triage.ingest(tmp_path)
    assert diagnosis.root_cause is not None
    assert "KeyError" in diagnosis.root_cause.title
    assert "│" not in diagnosis.root_cause.title
