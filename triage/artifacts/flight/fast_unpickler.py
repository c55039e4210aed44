"""The fast way to read a dump: one regular expression matches a whole entry.

The safe unpickler steps through the beginning of the pickle and through every entry with a new text or frame. From the
keys of such an entry and their places in the memo an expression is built that knows the bytes of a whole entry: opcodes
of plain numbers, lists of them, and references to the memo, nothing else. A match builds no objects: numbers become
columns, and each distinct sequence of bytes is looked up once. Every other dump is left to `load_plain`.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from triage.artifacts.flight.safe_unpickler import SafeUnpickler, TruncatedPickle
from triage.artifacts.interface import ArtifactError

NUMBERS = ("record_id", "pg_id", "collective_seq_id", "p2p_seq_id", "time_created_ns")
FLAGS = ("retired", "is_p2p")
KEYS = (
    *NUMBERS,
    *FLAGS,
    "profiling_name",
    "state",
    "process_group",
    "input_sizes",
    "output_sizes",
    "input_dtypes",
    "output_dtypes",
)
"""The keys of an entry that are read, as torch since 2.5 writes them."""

_REF = rb"(?:h.|j....)"
_INT = rb"(?:K.|M..|J....|\x8a\x08.{8})"
_SCALAR = rb"(?:h.|[N\x88\x89]|K.|M..|J....|j....|\x8a\x08.{8}|G.{8})"
_TEXTS = rb"\]\((?:h.|j....)*+e"
_SIZES = rb"\]\((?:\]\((?:K.|M..|J....|\x8a\x08.{8})*+e)*+e"
# The first byte decides every opcode, so there is only one way to read the bytes.
_VALUES = {
    **dict.fromkeys(NUMBERS, _INT),
    **dict.fromkeys(("retired", "is_p2p"), rb"[\x88\x89]"),
    **dict.fromkeys(("profiling_name", "state"), _REF),
    **dict.fromkeys(("input_dtypes", "output_dtypes", "frames"), _TEXTS),
    **dict.fromkeys(("input_sizes", "output_sizes"), _SIZES),
    "process_group": rb"(?:h.|j....)(?:(?:h.|j....)\x86)?+",
    "duration_ms": rb"(?:N|G.{8})",
}
_ORDER = (*KEYS, "frames")
_MAX_TEMPLATES = 4
_MAX_SLOW = 64
"""Entries that may be read step by step before their share decides."""

_TRUE, _FALSE = b"\x88", b"\x89"


class PackedEntries:
    """The entries of one dump.

    `rows` hold the values of KEYS and the frames: as bytes of the pickle, or as PlainValue in an entry that was read
    step by step. `durations` has those of the rows with one.
    """

    def __init__(self, memo: dict[int, Any]) -> None:
        self.rows: list[tuple[Any, ...]] = []
        self.durations: dict[int, Any] = {}
        self._memo = memo

    def __len__(self) -> int:
        return len(self.rows)

    def add(self, entry: Mapping[str, Any]) -> None:
        """Add an entry that was read step by step. Raises KeyError or TypeError for one of an older torch."""
        if "duration_ms" in entry:
            self.durations[len(self.rows)] = PlainValue(entry["duration_ms"])
        self.rows.append(
            (
                *(_long(entry[key]) for key in NUMBERS),
                *(_flag(entry[key]) for key in FLAGS),
                *(PlainValue(entry[key]) for key in KEYS[len(NUMBERS) + len(FLAGS) :]),
                PlainValue(entry.get("frames", [])),
            )
        )

    def columns(self) -> dict[str, Sequence[Any]]:
        """Return the values of all rows, by key."""
        return dict(zip(_ORDER, zip(*self.rows, strict=True) if self.rows else [()] * len(_ORDER), strict=True))

    def milliseconds(self) -> Any:
        """Return how long each call took, 0 where nothing was measured."""
        durations = np.zeros(len(self.rows), dtype=np.float32)
        for row, raw in self.durations.items():
            if isinstance(raw, PlainValue):
                durations[row] = raw.value or 0.0
            elif raw != b"N":
                durations[row] = struct.unpack(">d", raw[1:])[0]
        return durations

    def value(self, raw: Any) -> Any:
        """Return what the bytes mean: a number, a text of the memo, a tuple or a list."""
        if isinstance(raw, PlainValue):
            return raw.value
        # Two references and TUPLE2. A number or one reference may end with the same byte.
        is_pair = raw[-1:] == b"\x86" and len(raw) > {b"h": 2, b"j": 5}.get(raw[:1], len(raw))
        unpickler = SafeUnpickler((b"](" + raw[:-1] + b"e" if is_pair else raw) + b".", self._memo)
        value = unpickler.run()
        if not unpickler.is_complete:
            raise ValueError("a reference to nothing")
        return value


class PlainValue:
    """A value as it is; two are never equal, so that a value without a hash can stand among bytes in a lookup."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


def decode_integers(column: Sequence[bytes]) -> Any:
    """Return the integers that are written as BININT1, BININT2, BININT, or LONG1 of eight bytes."""
    cells = np.array(column, dtype="S10").view(np.uint8).reshape(-1, 10)
    code = cells[:, 0]
    values = np.ascontiguousarray(cells[:, 1:9]).view(np.int64)[:, 0]
    long = code == 0x8A
    if long.any():
        values[long] = np.ascontiguousarray(cells[long, 2:]).view(np.int64)[:, 0]
    negative = (code == ord("J")) & (cells[:, 4] > 127)
    if negative.any():
        values[negative] -= 1 << 32
    return values


def decode_flags(column: Sequence[bytes]) -> Any:
    """Return the booleans that are written as NEWTRUE and NEWFALSE."""
    return np.frombuffer(b"".join(column), dtype=np.uint8) == _TRUE[0]


def distinct_rows(columns: Sequence[Sequence[Any]]) -> tuple[list[list[Any]], Any]:
    """Return the distinct rows of some columns, as columns, and for every row which of them it is."""
    rows = list(zip(*columns, strict=True)) if len(columns) > 1 else columns[0]
    different = {row: number for number, row in enumerate(dict.fromkeys(rows))}
    index = np.array(list(map(different.__getitem__, rows)), dtype=np.intp)
    if len(columns) == 1:
        return [list(different)], index
    return [[row[number] for row in different] for number in range(len(columns))], index


def _long(value: Any) -> bytes:
    if not isinstance(value, int):
        raise TypeError
    return b"\x8a\x08" + value.to_bytes(8, "little", signed=True)


def _flag(value: Any) -> bytes:
    if not isinstance(value, bool):
        raise TypeError
    return _TRUE if value else _FALSE


class _WriteOnceMemo(dict[int, Any]):
    """A memo whose places are written once, so that a later look-up gives what an entry referred to."""

    def __setitem__(self, key: int, value: Any) -> None:
        if key in self:
            raise ValueError
        super().__setitem__(key, value)


class _FastUnpickler(SafeUnpickler):
    """The safe unpickler, but entries that match an expression are not executed."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data, _WriteOnceMemo())
        self.packed = PackedEntries(self._memo)
        # Entries stay alive: the unpickler knows the depth of a value by its identity, which must not be used again.
        self._alive: list[Any] = []
        self._templates: list[tuple[tuple[str, ...], Any, tuple[int, ...], int]] = []

    def run(self) -> Any:
        """The dump with a Packed as its entries. Raises ArtifactError, EarlyEnd or whatever goes wrong with bytes that
        do not fit.
        """
        done = False
        while not done:
            done = self._step()
            if (
                len(self._marks) == 2
                and not self._items
                and self._data[self._position - 1 : self._position] == b"("
                and self._opens_entries()
            ):
                self._entries()
        value = self._items[0]
        if (
            len(self._items) != 1
            or not isinstance(value, dict)
            or value.get("entries") != []
            or self._position != len(self._data)
        ):
            raise ValueError
        return {**value, "entries": self.packed}

    def _opens_entries(self) -> bool:
        """Whether the mark just read opens the list of entries."""
        outer = self._marks[-1]
        return len(outer) % 2 == 0 and outer[-2:-1] == ["entries"] and outer[-1] == []

    def _entries(self) -> None:
        """Read the entries, step by step where no expression matches yet."""
        rows, slow = self.packed.rows, 0
        while self._data[self._position : self._position + 1] != b"e":
            self._match()
            if self._data[self._position : self._position + 1] == b"e":
                break
            slow += 1
            if slow > _MAX_SLOW + len(rows) // 4:
                raise ValueError
            entry = self._next_entry()
            self.packed.add(entry)
            if len(self._templates) < _MAX_TEMPLATES and tuple(entry) not in (
                template[0] for template in self._templates
            ):
                self._learn(tuple(entry))

    def _match(self) -> None:
        """Take all entries from here on that one of the templates matches."""
        rows, durations = self.packed.rows, self.packed.durations
        matched = True
        while matched:
            matched = False
            for _, pattern, order, duration in self._templates:
                scanner = pattern.scanner(self._data, self._position)
                while match := scanner.match():
                    if duration:
                        durations[len(rows)] = match[duration]
                    rows.append(match.group(*order))
                    self._position = match.end()
                    matched = True

    def _next_entry(self) -> dict[str, Any]:
        """Read the next entry step by step."""
        while len(self._marks) > 2 or not self._items or self._data[self._position : self._position + 1] == b"(":
            if self._step():
                raise ValueError  # it stops inside an entry
        (entry,) = self._items
        self._items.clear()
        self._alive.append(entry)
        return entry  # type: ignore[no-any-return]

    def _learn(self, keys: tuple[str, ...]) -> None:
        """Build the expression for entries with these keys."""
        call_sites = {text: index for index, text in self._memo.items() if isinstance(text, str)}
        parts, groups = [rb"\}\("], dict[str, int]()
        for key in keys:
            index = call_sites[key]
            parts.append(re.escape(b"h%c" % index if index < 256 else b"j" + index.to_bytes(4, "little")))
            value = _VALUES.get(key)
            if value is None:
                parts.append(_SCALAR)
            else:
                groups[key] = len(groups) + 1
                parts.append(b"(" + value + b")")
        pattern = re.compile(b"".join(parts) + b"u", re.S)
        self._templates.append((keys, pattern, tuple(groups[key] for key in _ORDER), groups.get("duration_ms", 0)))


def unpickle_fast(data: bytes) -> Any:
    """Return a dump with its entries as PackedEntries; None for bytes that torch does not write so."""
    try:
        return _FastUnpickler(data).run()
    except (
        ArtifactError,
        TruncatedPickle,
        ArithmeticError,
        AttributeError,
        LookupError,
        TypeError,
        ValueError,
        re.error,
    ):
        return None
