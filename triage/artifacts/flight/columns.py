"""The entries of one dump → columns. Repeated values are interned for the whole job, so all ranks share them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any, Generic, TypeVar

import numpy as np

from triage.artifacts.flight.fast_unpickler import (
    FLAGS,
    KEYS,
    NUMBERS,
    PackedEntries,
    decode_flags,
    decode_integers,
    distinct_rows,
)
from triage.artifacts.flight.model import COMPLETED, SCHEDULED, STARTED, Frame, Shape

_STATES = {"scheduled": SCHEDULED, "started": STARTED, "completed": COMPLETED}
_HUGE = 1 << 62
_MAX_TENSORS = 4096
"""Tensors of one collective whose sizes are read."""


T = TypeVar("T")


class Interned(Generic[T]):
    """Distinct values in the order in which they first appear."""

    def __init__(self) -> None:
        self.values: list[T] = []
        self._index: dict[Any, int] = {}

    def index_of(self, key: Any, value: Callable[[], T]) -> int:
        """Return the index of a key; `value()` gives its value when it is new."""
        index = self._index.get(key)
        if index is None:
            index = self._index[key] = len(self.values)
            self.values.append(value())
        return index

    def merge(self, values: Sequence[T]) -> Any:
        """Add the values of another list and return the index of each; values have no keys afterwards."""
        index_of = {value: number for number, value in enumerate(self.values)}
        for value in values:
            if index_of.setdefault(value, len(self.values)) == len(self.values):
                self.values.append(value)
        return np.array([index_of[value] for value in values], dtype=np.int32)

    def indices_of(self, keys: Sequence[Any], value: Callable[[int], T]) -> list[int]:
        """Return the index of every key; `value(i)` gives the value of the i-th key when it is new."""
        index = self._index
        try:
            return list(map(index.__getitem__, keys))
        except KeyError:
            for position, key in enumerate(keys):
                if key not in index:
                    index[key] = len(self.values)
                    self.values.append(value(position))
            return list(map(index.__getitem__, keys))


class Tables:
    """The lists that the dumps of one job share."""

    def __init__(self) -> None:
        self.ops: Interned[str] = Interned()
        self.shapes: Interned[Shape] = Interned()
        self.dtypes: Interned[str] = Interned()
        self.stacks: Interned[tuple[Frame, ...]] = Interned()
        self.groups: Interned[tuple[int, str, str]] = Interned()
        self.stacks.index_of((), tuple)  # 0 is no stack
        self._frames: dict[tuple[str, str, int], Frame] = {}

    def read(self, entries: Sequence[Mapping[str, Any]] | PackedEntries) -> dict[str, Any]:
        """Return the columns of one rank's entries, by name.

        `group` holds indices of `groups`: (id, name, description) as this rank names them. Raises TypeError, ValueError
        or OverflowError for values that torch does not write.
        """
        if isinstance(entries, PackedEntries):
            return self._packed(entries)
        try:
            columns = self._columns(zip(*map(itemgetter(*KEYS), entries), strict=True) if entries else [()] * len(KEYS))
        except (KeyError, TypeError, ValueError):  # not as torch since 2.5 writes them: convert one by one
            columns = self._columns(zip(*map(_convert_older, entries), strict=True))
        columns["stack"] = np.array(self._stacks(entries), dtype=np.int32)
        timed = any("duration_ms" in entry for entry in entries)
        durations = [entry.get("duration_ms") or 0.0 for entry in entries] if timed else [0.0] * len(entries)
        columns["duration"] = np.array(durations, dtype=np.float32)
        return columns

    def _columns(self, rows: Iterable[Any]) -> dict[str, Any]:
        by_key = dict(zip(KEYS, rows, strict=True))
        columns: dict[str, Any] = {name: np.array(by_key[name], dtype=np.int64) for name in NUMBERS}
        columns |= {name: np.array(by_key[name], dtype=np.bool_) for name in FLAGS}
        columns["state"] = self._states(by_key["state"])
        columns["op"] = np.array(self._ops(by_key["profiling_name"]), dtype=np.int32)
        columns["shape"] = np.array(self._shapes(by_key["input_sizes"], by_key["output_sizes"]), dtype=np.int32)
        columns["dtype"] = np.array(self._types(by_key["input_dtypes"], by_key["output_dtypes"]), dtype=np.int32)
        columns["group"] = np.array(self._groups(by_key["pg_id"], by_key["process_group"]), dtype=np.int32)
        return columns

    def _packed(self, entries: PackedEntries) -> dict[str, Any]:
        """Look up each distinct sequence of bytes once."""
        by_key = entries.columns()
        columns: dict[str, Any] = {name: decode_integers(by_key[name]) for name in NUMBERS}
        columns |= {name: decode_flags(by_key[name]) for name in FLAGS}
        for name, keys, intern in (
            ("state", ("state",), self._states),
            ("op", ("profiling_name",), self._ops),
            ("shape", ("input_sizes", "output_sizes"), self._shapes),
            ("dtype", ("input_dtypes", "output_dtypes"), self._types),
            ("group", ("pg_id", "process_group"), self._groups),
            ("stack", ("frames",), self._frame_lists),
        ):
            different, index = distinct_rows([by_key[key] for key in keys])
            values = intern(*([entries.value(raw) for raw in column] for column in different))
            columns[name] = np.array(values, dtype=np.int8 if name == "state" else np.int32)[index]
        columns["duration"] = entries.milliseconds()
        return columns

    def _states(self, states: Sequence[str]) -> Any:
        codes = {state: _STATES.get(state, SCHEDULED) for state in set(states)}
        return np.array(list(map(codes.__getitem__, states)), dtype=np.int8)

    def _ops(self, names: Sequence[str]) -> list[int]:
        return self.ops.indices_of(names, lambda i: _text(names[i]))

    def _shapes(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> list[int]:
        keys = list(map(repr, zip(inputs, outputs, strict=True)))
        return self.shapes.indices_of(keys, lambda i: Shape(_sizes(inputs[i]), _sizes(outputs[i])))

    def _types(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> list[int]:
        keys = list(map(repr, zip(inputs, outputs, strict=True)))
        return self.dtypes.indices_of(keys, lambda i: _dtype(inputs[i], outputs[i]))

    def _groups(self, ids: Sequence[int], names: Sequence[Any]) -> list[int]:
        named = list(zip(ids, map(tuple, names), strict=True))
        return self.groups.indices_of(named, lambda i: _group(*named[i]))

    def _frame_lists(self, lists: Sequence[Sequence[Any]]) -> list[int]:
        stacks = [tuple(self._frame(frame) for frame in frames if isinstance(frame, dict)) for frames in lists]
        return self.stacks.indices_of(stacks, lambda i: stacks[i])

    def _stacks(self, entries: Sequence[Mapping[str, Any]]) -> list[int]:
        """The stack of each entry. torch writes each frame once and refers to it, so identities are compared first."""
        stack_of: dict[tuple[int, ...], int] = {(): 0}
        lists = [entry.get("frames") or () for entry in entries]
        keys = [tuple(map(id, frames)) for frames in lists]
        for key, frames in dict(zip(keys, lists, strict=True)).items():
            if key not in stack_of:
                stack = tuple(self._frame(frame) for frame in frames if isinstance(frame, dict))
                stack_of[key] = self.stacks.index_of(stack, lambda stack=stack: stack)  # type: ignore[misc]
        return list(map(stack_of.__getitem__, keys))

    def _frame(self, frame: Mapping[str, Any]) -> Frame:
        line = frame.get("line")
        key = (_text(frame.get("name", "?")), _text(frame.get("filename", "?")), line if isinstance(line, int) else 0)
        return self._frames.setdefault(key, Frame(*key))


def _convert_older(entry: Mapping[str, Any]) -> tuple[Any, ...]:
    """The values of KEYS in an entry of an older torch, which has other names and fewer keys."""
    pg_id, name = _int(entry.get("pg_id", 0)), str(entry.get("profiling_name"))
    values: dict[str, Any] = {
        "record_id": _int(entry.get("record_id", 0)),
        "pg_id": pg_id,
        "collective_seq_id": _int(entry.get("collective_seq_id", entry.get("seq_id", 0))),
        "p2p_seq_id": _int(entry.get("p2p_seq_id", 0)),
        "time_created_ns": _int(entry.get("time_created_ns", _int(entry.get("time_created_us", 0)) * 1000)),
        "retired": bool(entry.get("retired", False)),
        "is_p2p": bool(entry.get("is_p2p", ":send " in name or ":recv " in name)),
        "profiling_name": entry["profiling_name"],
        "state": entry.get("state", "scheduled"),
        "process_group": entry.get("process_group", (str(entry.get("pg_name", pg_id)), "")),
        **{key: entry.get(key, []) for key in ("input_sizes", "output_sizes", "input_dtypes", "output_dtypes")},
    }
    return tuple(values[key] for key in KEYS)


def usable(entry: Any) -> bool:
    """Return whether the value is a complete entry; one that was cut off lacks its later keys."""
    return isinstance(entry, dict) and isinstance(entry.get("profiling_name"), str) and "state" in entry


def _int(value: Any) -> int:
    number = int(value) if isinstance(value, (int, str, float)) and str(value).lstrip("-").isdigit() else 0
    return max(-_HUGE, min(_HUGE, number))


def _text(value: Any) -> str:
    return str(value).encode("utf-8", "replace").decode("utf-8")[:1000]


def _sizes(sizes: Any) -> tuple[tuple[int, ...], ...]:
    """The sizes of each tensor: a list of lists, or a flat list for one tensor (torch before 2.2)."""
    if not isinstance(sizes, (list, tuple)):
        return ()
    if sizes and all(isinstance(size, int) for size in sizes):
        return (tuple(sizes),)
    return tuple(
        tuple(n for n in size if isinstance(n, int)) for size in sizes[:_MAX_TENSORS] if isinstance(size, (list, tuple))
    )


def _dtype(inputs: Any, outputs: Any) -> str:
    sides = [side[:_MAX_TENSORS] for side in (inputs, outputs) if isinstance(side, (list, tuple))]
    names = {name for side in sides for name in side if isinstance(name, str)}
    return ", ".join(sorted(_text(name) for name in names))


def _group(number: int, named: tuple[Any, ...]) -> tuple[int, str, str]:
    name, desc = (*named, "", "")[:2]
    return number, _text(name), _text(desc)
