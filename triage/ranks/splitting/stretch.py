"""Splits one stretch of a source into parts: reads it in chunks of whole lines, routes them, and appends each writer's
lines to its part.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, BinaryIO

from triage.model.evidence import Origin
from triage.ranks import cuts
from triage.ranks.identity import JobMap
from triage.ranks.splitting.layout import Layout
from triage.ranks.splitting.opened import Kind, Opened
from triage.ranks.splitting.parts import Parts
from triage.ranks.splitting.route import Key, Routed, Router
from triage.ranks.splitting.spans import Spans, address_of

if TYPE_CHECKING:
    from triage.ranks.splitting.automaton import Ints
    from triage.ranks.splitting.spans import Words

# Lines are looked at in chunks that fit the processor's cache, and written when so many bytes are held: some at once
# for every writer.
CHUNK = 1 << 19
HELD = 8 << 20
_NEWLINE = b"\n"
_FIRST = 1 << 15  # small at first, so that few lines are parsed one by one before their prefixes are known
LONGEST_LINE = 16 << 20


@dataclass
class Tally:
    """What became of a stretch: for each writer its part's path, bytes and lines; lines read; what its lines said of
    ranks,
    and which of them say another one than the prefix they stand behind."""

    keys: list[Key] = field(default_factory=list)
    parts: list[tuple[Key, str, int, int]] = field(default_factory=list)
    lines: int = 0
    bytes: int = 0
    glued: int = 0
    joined: int = 0
    cut: int = 0
    opened: int = 0
    left_out: int = 0
    learned: list[Origin] = field(default_factory=list)
    differing: list[tuple[str, int, int]] = field(default_factory=list)

    def to_json(self) -> dict[str, object]:
        """For another process."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, told: dict[str, Any]) -> Tally:
        """What `to_json` gave."""
        keys = [Key(*key) for key in told["keys"]]
        parts = [(Key(*key), path, size, lines) for key, path, size, lines in told["parts"]]
        learned, differing = (
            [Origin(**origin) for origin in told["learned"]],
            [tuple(found) for found in told["differing"]],
        )
        return cls(**{**told, "keys": keys, "parts": parts, "learned": learned, "differing": differing})


class Stretch:
    """`wanted` says which writers are written; lines of others are counted as left out."""

    def __init__(self, router: Router, parts: Parts, wanted: Callable[[Key], bool]) -> None:
        self._router = router
        self._parts = parts
        self._wanted = wanted
        self._skip: list[bool] = []
        self._long: int | None = None
        self._routed: list[tuple[bytes, Routed]] = []
        self._held = 0
        self._waiting = b""
        self.tally = Tally()

    def feed(self, data: bytes) -> None:
        """Lines in order, whole but for the last one of the stretch. What a launcher cut may go on in the next chunk,
        so that this one waits.
        """
        if self._router.layout.cut:
            data, self._waiting = self._waiting, data
        if data:
            self._take(data, self._waiting)

    def _take(self, data: bytes, ahead: bytes) -> None:
        routed = self._router.route(data, ahead[: cuts.REACH])
        self.tally.bytes += len(data)
        self.tally.lines += routed.lines
        self.tally.glued += len(routed.open)
        self.tally.joined += len(routed.partial)
        self._routed.append((data, routed))
        self._held += len(data)
        if self._held >= HELD:
            self.flush()

    def flush(self) -> None:
        """Write what is held, to each writer its lines in order."""
        if not self._routed:
            return
        import numpy as np

        routed = [_placed(data, routed) for data, routed in self._routed]
        keys, begins, sizes = (np.concatenate(columns) for columns in zip(*routed, strict=True))
        order = np.argsort(keys.astype(np.uint16) if keys.max(initial=0) < 1 << 16 else keys, kind="stable")
        lengths = sizes.take(order)
        spans = Spans(begins.take(order), lengths)
        counts = np.bincount(keys)
        present = np.flatnonzero(counts)
        stops = np.cumsum(counts.take(present))
        bytes_of = np.diff(np.cumsum(lengths).take(stops - 1), prepend=0).tolist()
        lines_of = np.zeros(len(counts), np.intp)
        for _, found in self._routed:
            lines_of += np.bincount(found.keys, minlength=len(counts)) - np.bincount(
                found.keys.take(found.partial), minlength=len(counts)
            )
        at = 0
        for key, stop, size, lines in zip(
            present.tolist(), stops.tolist(), bytes_of, lines_of.take(present).tolist(), strict=True
        ):
            if self._left_out(key):
                self.tally.left_out += lines
            else:
                self._parts.append_spans(key, spans, at, stop, size, lines)
            at = stop
        self._routed.clear()
        self._held = 0

    def _left_out(self, key: int) -> bool:
        while len(self._skip) < len(self._router.keys):
            self._skip.append(not self._wanted(self._router.keys[len(self._skip)]))
        return self._skip[key]

    def feed_long(self, data: bytes, begins: bool) -> None:
        """A piece of a line too long to hold: the first piece says whose it is."""
        self.flush_all()
        if begins:
            routed = self._router.route(data)
            self._long = int(routed.keys[0])
            data = data[int(routed.starts[0]) :]
            self.tally.lines += 1
            self.tally.cut += 1
        key = self._long or 0
        if self._left_out(key):
            self.tally.left_out += begins
        else:
            self._parts.append(key, data, int(begins))

    def flush_all(self) -> None:
        """Write all that came."""
        if self._waiting:
            data, self._waiting = self._waiting, b""
            self._take(data, b"")
        self.flush()

    def finish(self) -> Tally:
        self.flush_all()
        self.tally.keys = list(self._router.keys)
        self.tally.learned = list(dict.fromkeys(self._router.learned))
        self.tally.differing = sorted(self._router.differing)
        self.tally.parts = [
            (self._router.keys[key], str(self._parts.path(key)), size, lines)
            for key, size, lines in self._parts.written()
        ]
        return self.tally


def _placed(data: bytes, routed: Routed) -> tuple[Ints, Words, Words]:
    """Of every piece the writer, its address and its length; a piece that needs a newline is followed by one."""
    import numpy as np

    keys, ends = routed.keys, routed.ends
    if routed.partial:
        ends = ends.copy()
        ends[routed.partial] -= 1
    begins = routed.starts.astype(np.uintp) + np.uintp(address_of(data))
    sizes = (ends - routed.starts).astype(np.uintp)
    if routed.open:
        behind = np.array(routed.open) + 1
        begins = np.insert(begins, behind, address_of(_NEWLINE))
        sizes = np.insert(sizes, behind, 1)
        keys = np.insert(keys, behind, keys.take(routed.open))
    return keys, begins, sizes


def chunks(stream: BinaryIO | Opened, limit: int | None = None) -> Iterator[tuple[bytes, bool, bool]]:
    """Whole lines, about CHUNK bytes at a time, until `limit` bytes. Of a line that is too long: pieces, with (True, is
    the first).
    """
    rest = b""
    left = limit if limit is not None else 1 << 62
    inside = False
    size = _FIRST
    while left > 0 and (data := stream.read(min(size, left))):
        left -= len(data)
        size = min(CHUNK, size * 2)
        if inside:
            stop = data.find(b"\n") + 1
            yield data[: stop or len(data)], True, False
            inside = not stop
            data = data[stop:] if stop else b""
        cut = data.rfind(b"\n") + 1
        if cut:
            yield rest + data[:cut], False, False
            rest = data[cut:]
        else:
            rest += data
        if len(rest) > LONGEST_LINE:
            yield rest, True, True
            rest, inside = b"", True
    if rest:
        yield rest, False, False


@dataclass(frozen=True)
class Plan:
    """How a stretch is to be split; `whole`: all of it is this writer's."""

    layout: Layout
    job: JobMap
    parts: Parts
    keep_prefix: bool
    wanted: Callable[[Key], bool]
    whole: Key | None = None
    opened: Kind = ""


def split(source: str, stream: BinaryIO, limit: int | None, plan: Plan, advance: Callable[[int], None]) -> Tally:
    """Read `stream` (up to `limit` bytes) and write its parts."""
    if plan.whole is not None:
        return _copy(stream, limit, plan, plan.whole, advance)
    router = Router(source, plan.layout, plan.job, plan.keep_prefix)
    stretch = Stretch(router, plan.parts, plan.wanted)
    opened = Opened(stream, plan.opened) if plan.opened else None
    for data, long, begins in chunks(stream, limit) if opened is None else chunks(opened):
        if long:
            stretch.tally.bytes += len(data)
            stretch.feed_long(data, begins)
        else:
            stretch.feed(data)
        advance(len(data))
    tally = stretch.finish()
    if opened is not None:
        tally.lines, tally.opened = opened.lines, opened.given - opened.lines
    return tally


def _copy(stream: BinaryIO, limit: int | None, plan: Plan, key: Key, advance: Callable[[int], None]) -> Tally:
    """A source that one writer alone wrote."""
    tally = Tally(keys=[key])
    left = limit if limit is not None else 1 << 62
    last = b"\n"
    wanted = plan.wanted(key)
    while left > 0 and (data := stream.read(min(CHUNK, left))):
        left -= len(data)
        tally.bytes += len(data)
        lines = data.count(b"\n")
        tally.lines += lines
        if wanted:
            plan.parts.append(0, data, lines)
        last = data[-1:]
        advance(len(data))
    if last != b"\n":
        tally.lines += 1
        if wanted:
            plan.parts.append(0, b"", 1)
    tally.left_out = 0 if wanted else tally.lines
    if wanted and tally.lines:
        tally.parts = [(key, str(plan.parts.path(0)), size, lines) for _, size, lines in plan.parts.written()]
    return tally
