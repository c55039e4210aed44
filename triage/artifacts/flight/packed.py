"""The quick way to read a dump: what torch repeats for every entry is recognised once, then each entry is one match of
an expression.

The careful machine steps through the beginning of the pickle and through every entry that brings a new text or frame.
From the keys of
such an entry and their places in the memo an expression is made that knows the bytes of a whole entry: opcodes of plain
numbers, lists of
them, and references to the memo, nothing else. No object is built for what it matches; numbers become columns, and what
repeats is looked
up once for each different sequence of bytes. Whatever does not fit leads back to the careful way.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from triage.artifacts.flight.careful import EarlyEnd, Machine
from triage.artifacts.interface import ArtifactError

NUMBERS = ("record_id", "pg_id", "collective_seq_id", "p2p_seq_id", "time_created_ns", "timeout_ms")
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
"""The keys of an entry, as torch since 2.5 writes them."""

_REF = rb"(?:h.|j....)"
_INT = rb"(?:K.|M..|J....|\x8a\x08.{8})"
_SCALAR = rb"(?:h.|[N\x88\x89]|K.|M..|J....|j....|\x8a\x08.{8}|G.{8})"
_TEXTS = rb"\]\((?:h.|j....)*+e"
_SIZES = rb"\]\((?:\]\((?:K.|M..|J....|\x8a\x08.{8})*+e)*+e"
# Every opcode is told by its first byte, so that there is one way only to read the bytes.
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
_TEMPLATES = 4
_SLOW = 64
"""Entries that may be read step by step without asking whether this is worth it."""

_TRUE, _FALSE = b"\x88", b"\x89"


class Packed:
    """The entries of one dump: in `rows` the values of KEYS and the frames, as bytes of the pickle or, of an entry that
    was read step by
    step, as they are. `durations` of those rows that have one."""

    def __init__(self, memo: dict[int, Any]) -> None:
        self.rows: list[tuple[Any, ...]] = []
        self.durations: dict[int, Any] = {}
        self._memo = memo

    def __len__(self) -> int:
        return len(self.rows)

    def add(self, entry: Mapping[str, Any]) -> None:
        """One that was read step by step. Raises KeyError or TypeError where it is not as torch since 2.5 writes it."""
        if "duration_ms" in entry:
            self.durations[len(self.rows)] = Plain(entry["duration_ms"])
        self.rows.append(
            (
                *(_long(entry[key]) for key in NUMBERS),
                *(_flag(entry[key]) for key in FLAGS),
                *(Plain(entry[key]) for key in KEYS[len(NUMBERS) + len(FLAGS) :]),
                Plain(entry.get("frames", [])),
            )
        )

    def columns(self) -> dict[str, Sequence[Any]]:
        """What stands in the rows, by key."""
        return dict(zip(_ORDER, zip(*self.rows, strict=True) if self.rows else [()] * len(_ORDER), strict=True))

    def milliseconds(self) -> Any:
        """How long each call took; 0 where nothing was measured."""
        found = np.zeros(len(self.rows), dtype=np.float32)
        for row, raw in self.durations.items():
            found[row] = (
                raw.value or 0.0 if isinstance(raw, Plain) else struct.unpack(">d", raw[1:])[0] if raw != b"N" else 0.0
            )
        return found

    def value(self, raw: Any) -> Any:
        """What the bytes stand for: a number, a text of the memo, a tuple or a list."""
        if isinstance(raw, Plain):
            return raw.value
        machine = Machine((b"](" + raw[:-1] + b"e" if raw[-1:] == b"\x86" else raw) + b".", self._memo)
        value = machine.run()
        if not machine.whole:
            raise ValueError("a reference to nothing")
        return value


class Plain:
    """A value as it is. Two of them are never equal, so that what cannot be hashed can be looked up among bytes."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


def numbers(column: Sequence[bytes]) -> Any:
    """The integers that are written as BININT1, BININT2, BININT, or LONG1 of eight bytes."""
    cells = np.array(column, dtype="S10").view(np.uint8).reshape(-1, 10)
    code = cells[:, 0]
    found = np.ascontiguousarray(cells[:, 1:9]).view(np.int64)[:, 0]
    long = code == 0x8A
    if long.any():
        found[long] = np.ascontiguousarray(cells[long, 2:]).view(np.int64)[:, 0]
    negative = (code == ord("J")) & (cells[:, 4] > 127)
    if negative.any():
        found[negative] -= 1 << 32
    return found


def flags(column: Sequence[bytes]) -> Any:
    return np.frombuffer(b"".join(column), dtype=np.uint8) == _TRUE[0]


def distinct(columns: Sequence[Sequence[Any]]) -> tuple[list[list[Any]], Any]:
    """The different rows of some columns, as columns, and for every row which of them it is."""
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


class _Once(dict[int, Any]):
    """A memo where each place is written once: what is looked up at the end is what stood there when the entry was
    passed.
    """

    def __setitem__(self, key: int, value: Any) -> None:
        if key in self:
            raise ValueError
        super().__setitem__(key, value)


class _Quick(Machine):
    """The careful machine, with the entries taken out of its hands as far as they fit."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data, _Once())
        self.packed = Packed(self._memo)
        self._kept: list[
            Any
        ] = []  # the machine knows the depth of what it made by its identity, which must not be used again
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
                and self._data[self._at - 1 : self._at] == b"("
                and self._opened()
            ):
                self._entries()
        value = self._items[0]
        if not isinstance(value, dict) or value.get("entries") != [] or self._at != len(self._data):
            raise ValueError
        return {**value, "entries": self.packed}

    def _opened(self) -> bool:
        outer = self._marks[-1]
        return len(outer) % 2 == 0 and outer[-2:-1] == ["entries"] and outer[-1] == []

    def _entries(self) -> None:
        rows, slow = self.packed.rows, 0
        while self._data[self._at : self._at + 1] != b"e":
            self._match()
            if self._data[self._at : self._at + 1] == b"e":
                break
            slow += 1
            if slow > _SLOW + len(rows) // 4:
                raise ValueError
            entry = self._one()
            self.packed.add(entry)
            if len(self._templates) < _TEMPLATES and tuple(entry) not in (template[0] for template in self._templates):
                self._learn(tuple(entry))

    def _match(self) -> None:
        """All entries from here on that one of the templates knows."""
        rows, durations = self.packed.rows, self.packed.durations
        found = True
        while found:
            found = False
            for _, pattern, order, duration in self._templates:
                scanner = pattern.scanner(self._data, self._at)
                while match := scanner.match():
                    if duration:
                        durations[len(rows)] = match[duration]
                    rows.append(match.group(*order))
                    self._at = match.end()
                    found = True

    def _one(self) -> dict[str, Any]:
        """The next entry, step by step."""
        while len(self._marks) > 2 or not self._items or self._data[self._at : self._at + 1] == b"(":
            if self._step():
                raise ValueError  # it stops inside an entry
        (entry,) = self._items
        self._items.clear()
        self._kept.append(entry)
        return entry  # type: ignore[no-any-return]

    def _learn(self, keys: tuple[str, ...]) -> None:
        """The expression for entries with these keys."""
        places = {text: index for index, text in self._memo.items() if isinstance(text, str)}
        parts, groups = [rb"\}\("], dict[str, int]()
        for key in keys:
            index = places[key]
            parts.append(re.escape(b"h%c" % index if index < 256 else b"j" + index.to_bytes(4, "little")))
            value = _VALUES.get(key)
            if value is None:
                parts.append(_SCALAR)
            else:
                groups[key] = len(groups) + 1
                parts.append(b"(" + value + b")")
        pattern = re.compile(b"".join(parts) + b"u", re.S)
        self._templates.append((keys, pattern, tuple(groups[key] for key in _ORDER), groups.get("duration_ms", 0)))


def unpack(data: bytes) -> Any:
    """The value of a whole dump as torch writes it, its entries as a Packed; None where anything is otherwise."""
    try:
        return _Quick(data).run()
    except (ArtifactError, EarlyEnd, ArithmeticError, AttributeError, LookupError, TypeError, ValueError, re.error):
        return None
