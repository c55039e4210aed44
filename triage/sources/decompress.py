"""Decompress a stream: deliver all bytes that can be recovered, then report the damage."""

from __future__ import annotations

from collections.abc import Callable

from triage.sources.bytestream import PIECE, ByteStream, Damage
from triage.sources.compression_formats import CompressionFormat, Frame

_MAX_OUTPUT = 1 << 20
_TAIL = 64


class DecompressedStream(ByteStream):
    """The decompressed bytes of `parent`. `spend` gets the number of bytes produced and may stop the stream.

    The last bytes of the parent, which hold the checksums, are fed one by one: a decompressor that finds a wrong
    checksum drops what it produced in that call, and the end of a log matters most.
    """

    def __init__(
        self, parent: ByteStream, compression: CompressionFormat, spend: Callable[[int], Damage | None]
    ) -> None:
        super().__init__()
        self._parent = parent
        self._format = compression
        self._spend = spend
        self._input = b""
        self._input_position = 0
        self._parent_ended = False
        self._frame: Frame | None = compression.new_frame()
        self._fed = False
        self._frames = 0
        self.produced = 0

    def unused_input(self) -> bytes:
        """Return bytes taken from the parent that do not belong to the compressed stream."""
        unused = self._frame.unused_data if self._frame and self._frame.eof else b""
        return unused + self._input[self._input_position :]

    def drain(self) -> None:
        """Read to the end, to learn where the compressed data ends."""
        while self.read1():
            pass

    def _read_piece(self) -> bytes:
        while self._frame:
            try:
                out = self._step(self._frame)
            except self._format.errors as error:
                self._end_damaged(error)
                return b""
            if out:
                return self._account(out)
        return b""

    def _account(self, out: bytes) -> bytes:
        self.produced += len(out)
        refused = self._spend(len(out))
        if refused:
            self.damage, self._frame = refused, None
            return out[: refused.deliverable]
        return out

    def _step(self, frame: Frame) -> bytes:
        """Call the decompressor once; set `_frame` to None at the end."""
        if frame.eof:
            self._next_frame(frame)
            return b""
        piece = self._next_input() if frame.needs_input else b""
        if frame.needs_input and not piece:
            self._end_early()
            return b""
        self._fed = self._fed or bool(piece)
        return frame.decompress(piece, _MAX_OUTPUT)

    def _next_frame(self, frame: Frame) -> None:
        """Go on to the next frame, past padding."""
        self._frames += 1
        if not self._format.multiple_frames:
            self._input, self._input_position = self.unused_input(), 0
            self._frame = None
            return
        self._input = frame.unused_data + self._input[self._input_position :]
        self._input_position = 0
        self._frame = None
        while not self._input.strip(b"\0"):
            self._input = self._parent.read1(PIECE)
            if not self._input:
                self.damage = self._parent.damage
                return
        self._input = self._input.lstrip(b"\0")
        self._frame, self._fed = self._format.new_frame(), False

    def _next_input(self) -> bytes:
        """Return the next bytes to feed: many, but one by one near the end of the parent."""
        left = len(self._input) - self._input_position
        while left <= _TAIL and not self._parent_ended:
            more = self._parent.read1(PIECE)
            self._parent_ended = not more
            self._input = self._input[self._input_position :] + more
            self._input_position = 0
            left = len(self._input)
        size = min(self._format.feed_bytes, left - _TAIL) if left > _TAIL else min(1, left)
        piece = self._input[self._input_position : self._input_position + size]
        self._input_position += size
        return piece

    def _end_early(self) -> None:
        """End because the parent ended inside a frame."""
        self._frame = None
        message = f"the {self._format.name} data ends too early, after {self.produced:,} bytes of text"
        self.damage = self._parent.damage or Damage("truncated", message)

    def _end_damaged(self, error: Exception) -> None:
        self._frame = None
        reason = str(error) or type(error).__name__
        after, name = f"after {self.produced:,} bytes of text", self._format.name
        if self._frames:
            message = f"the data {after} is not {name} data and was ignored ({reason})"
        else:
            message = f"the {name} data is damaged {after} ({reason}); the rest was not read"
        self.damage = Damage("corrupt", message)
