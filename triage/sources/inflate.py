"""The decompressing stream: every byte that can be had is delivered, then the damage is told."""

from __future__ import annotations

from collections.abc import Callable

from triage.sources.bytestream import PIECE, ByteStream, Damage
from triage.sources.engines import Engine, Frame

_MOST = 1 << 20
_TAIL = 64


class Inflated(ByteStream):
    """The decompressed bytes of `parent`. `spend` is told of every byte made and may refuse to go on.

    The last bytes of the parent, where the checksums lie, are fed one by one: a decompressor that finds a checksum
    wrong
    throws away what it made in that call, and the end of a log is what we came for.
    """

    def __init__(self, parent: ByteStream, engine: Engine, spend: Callable[[int], Damage | None]) -> None:
        super().__init__()
        self._parent = parent
        self._engine = engine
        self._spend = spend
        self._ahead = b""
        self._next_at = 0
        self._dry = False
        self._frame: Frame | None = engine.frame()
        self._fed = False
        self._frames = 0
        self.made = 0

    def rest(self) -> bytes:
        """Bytes taken from the parent that do not belong to the compressed stream."""
        unused = self._frame.unused_data if self._frame and self._frame.eof else b""
        return unused + self._ahead[self._next_at :]

    def drain(self) -> None:
        """Read to the end, to learn where it is."""
        while self.read1():
            pass

    def _pull(self) -> bytes:
        while self._frame:
            try:
                out = self._step(self._frame)
            except self._engine.errors as error:
                self._fail(error)
                return b""
            if out:
                return self._account(out)
        return b""

    def _account(self, out: bytes) -> bytes:
        self.made += len(out)
        refused = self._spend(len(out))
        if refused:
            self.damage, self._frame = refused, None
            return out[: refused.keep]
        return out

    def _step(self, frame: Frame) -> bytes:
        """One call of the decompressor. Sets `_frame` to None at the end."""
        if frame.eof:
            self._turn(frame)
            return b""
        piece = self._piece() if frame.needs_input else b""
        if frame.needs_input and not piece:
            self._end()
            return b""
        self._fed = self._fed or bool(piece)
        return frame.decompress(piece, _MOST)

    def _turn(self, frame: Frame) -> None:
        """A frame is complete: go on to the next, past any padding."""
        self._frames += 1
        if not self._engine.several:
            self._ahead, self._next_at = self.rest(), 0
            self._frame = None
            return
        self._ahead = frame.unused_data + self._ahead[self._next_at :]
        self._next_at = 0
        self._frame = None
        while not self._ahead.strip(b"\0"):
            self._ahead = self._parent.read1(PIECE)
            if not self._ahead:
                self.damage = self._parent.damage
                return
        self._ahead = self._ahead.lstrip(b"\0")
        self._frame, self._fed = self._engine.frame(), False

    def _piece(self) -> bytes:
        """The next bytes to feed: many, but one by one near the end of the parent."""
        left = len(self._ahead) - self._next_at
        while left <= _TAIL and not self._dry:
            more = self._parent.read1(PIECE)
            self._dry = not more
            self._ahead = self._ahead[self._next_at :] + more
            self._next_at = 0
            left = len(self._ahead)
        size = min(self._engine.feed, left - _TAIL) if left > _TAIL else min(1, left)
        piece = self._ahead[self._next_at : self._next_at + size]
        self._next_at += size
        return piece

    def _end(self) -> None:
        """The parent ended inside a frame."""
        self._frame = None
        message = f"the {self._engine.name} data ends too early, after {self.made:,} bytes of text"
        self.damage = self._parent.damage or Damage("truncated", message)

    def _fail(self, error: Exception) -> None:
        self._frame = None
        told = str(error) or type(error).__name__
        if self._frames:
            message = (
                f"what follows the first {self.made:,} bytes of text is not {self._engine.name} data, ignored ({told})"
            )
        else:
            message = f"the {self._engine.name} data is damaged after {self.made:,} bytes of text ({told}); what lies behind was not read"
        self.damage = Damage("corrupt", message)
