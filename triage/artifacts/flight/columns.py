"""The entries of one dump → columns. What repeats is interned for the whole job, so that a thousand ranks share one
list of stacks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any, Generic, TypeVar

import numpy as np

from triage.artifacts.flight.model import COMPLETED, SCHEDULED, STARTED, Frame, Shape
from triage.artifacts.flight.packed import FLAGS, KEYS, NUMBERS, Packed, distinct, flags, numbers

_STATES = {"scheduled": SCHEDULED, "started": STARTED, "completed": COMPLETED}
_HUGE = 1 << 62
_TENSORS = 4096
"""Tensors of one collective whose sizes are kept."""


T = TypeVar("T")


class Interned(Generic[T]):
    """Values in the order of first sight, each once."""

    def __init__(self) -> None:
        self.values: list[T] = []
        self._index: dict[Any, int] = {}

    def index(self, key: Any, value: Callable[[], T]) -> int:
        found = self._index.get(key)
        if found is None:
            found = self._index[key] = len(self.values)
            self.values.append(value())
        return found

    def join(self, values: Sequence[T]) -> Any:
        """Take the values of another list in; gives for each of its indices the one here. Nothing can be looked up
        afterwards by its key.
        """
        known = {value: number for number, value in enumerate(self.values)}
        for value in values:
            if known.setdefault(value, len(self.values)) == len(self.values):
                self.values.append(value)
        return np.array([known[value] for value in values], dtype=np.int32)

    def column(self, keys: Sequence[Any], value: Callable[[int], T]) -> list[int]:
        """The index of every key; `value(i)` gives what the i-th stands for when it is new."""
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
        self.stacks.index((), tuple)  # 0 is no stack
        self._frames: dict[tuple[str, str, int], Frame] = {}

    def read(self, entries: Sequence[Mapping[str, Any]] | Packed) -> dict[str, Any]:
        """Columns of the entries of one rank by name; raises TypeError, ValueError or OverflowError for what are none.

        `group` holds indices of `groups`: (id, name, description) as this rank calls them.
        """
        if isinstance(entries, Packed):
            return self._packed(entries)
        try:
            columns = self._columns(zip(*map(itemgetter(*KEYS), entries), strict=True) if entries else [()] * len(KEYS))
        except (
            KeyError,
            TypeError,
            ValueError,
        ):  # not as torch since 2.5 writes them: one by one, with a look at each value
            columns = self._columns(zip(*map(_older, entries), strict=True))
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

    def _packed(self, entries: Packed) -> dict[str, Any]:
        """What repeats is looked up once for each different sequence of bytes."""
        by_key = entries.columns()
        columns: dict[str, Any] = {name: numbers(by_key[name]) for name in NUMBERS}
        columns |= {name: flags(by_key[name]) for name in FLAGS}
        for name, keys, meant in (
            ("state", ("state",), self._states),
            ("op", ("profiling_name",), self._ops),
            ("shape", ("input_sizes", "output_sizes"), self._shapes),
            ("dtype", ("input_dtypes", "output_dtypes"), self._types),
            ("group", ("pg_id", "process_group"), self._groups),
            ("stack", ("frames",), self._frames_of),
        ):
            different, index = distinct([by_key[key] for key in keys])
            values = meant(*([entries.value(raw) for raw in column] for column in different))
            columns[name] = np.array(values, dtype=np.int8 if name == "state" else np.int32)[index]
        columns["duration"] = entries.milliseconds()
        return columns

    def _states(self, states: Sequence[str]) -> Any:
        known = {state: _STATES.get(state, SCHEDULED) for state in set(states)}
        return np.array(list(map(known.__getitem__, states)), dtype=np.int8)

    def _ops(self, names: Sequence[str]) -> list[int]:
        return self.ops.column(names, lambda i: _text(names[i]))

    def _shapes(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> list[int]:
        keys = list(map(repr, zip(inputs, outputs, strict=True)))
        return self.shapes.column(keys, lambda i: Shape(_sizes(inputs[i]), _sizes(outputs[i])))

    def _types(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> list[int]:
        keys = list(map(repr, zip(inputs, outputs, strict=True)))
        return self.dtypes.column(keys, lambda i: _dtype(inputs[i], outputs[i]))

    def _groups(self, ids: Sequence[int], names: Sequence[Any]) -> list[int]:
        named = list(zip(ids, map(tuple, names), strict=True))
        return self.groups.column(named, lambda i: _group(*named[i]))

    def _frames_of(self, lists: Sequence[Sequence[Any]]) -> list[int]:
        stacks = [tuple(self._frame(frame) for frame in frames if isinstance(frame, dict)) for frames in lists]
        return self.stacks.column(stacks, lambda i: stacks[i])

    def _stacks(self, entries: Sequence[Mapping[str, Any]]) -> list[int]:
        """torch writes each frame once and refers to it afterwards, so that frames are told apart by their identity
        first.
        """
        seen: dict[tuple[int, ...], int] = {(): 0}
        lists = [entry.get("frames") or () for entry in entries]
        keys = [tuple(map(id, frames)) for frames in lists]
        for key, frames in dict(zip(keys, lists, strict=True)).items():
            if key not in seen:
                stack = tuple(self._frame(frame) for frame in frames if isinstance(frame, dict))
                seen[key] = self.stacks.index(stack, lambda stack=stack: stack)  # type: ignore[misc]
        return list(map(seen.__getitem__, keys))

    def _frame(self, frame: Mapping[str, Any]) -> Frame:
        line = frame.get("line")
        key = (_text(frame.get("name", "?")), _text(frame.get("filename", "?")), line if isinstance(line, int) else 0)
        return self._frames.setdefault(key, Frame(*key))


def _older(entry: Mapping[str, Any]) -> tuple[Any, ...]:
    """An entry of an older torch: other names, fewer keys."""
    pg_id = _int(entry.get("pg_id", 0))
    values: dict[str, Any] = {
        "record_id": _int(entry.get("record_id", 0)),
        "pg_id": pg_id,
        "collective_seq_id": _int(entry.get("collective_seq_id", entry.get("seq_id", 0))),
        "p2p_seq_id": _int(entry.get("p2p_seq_id", 0)),
        "time_created_ns": _int(entry.get("time_created_ns", _int(entry.get("time_created_us", 0)) * 1000)),
        "timeout_ms": _int(entry.get("timeout_ms", 0)),
        "retired": bool(entry.get("retired", False)),
        "is_p2p": bool(
            entry.get(
                "is_p2p", ":send " in str(entry.get("profiling_name")) or ":recv " in str(entry.get("profiling_name"))
            )
        ),
        "profiling_name": entry["profiling_name"],
        "state": entry.get("state", "scheduled"),
        "process_group": entry.get("process_group", (str(entry.get("pg_name", pg_id)), "")),
        **{key: entry.get(key, []) for key in ("input_sizes", "output_sizes", "input_dtypes", "output_dtypes")},
    }
    return tuple(values[key] for key in KEYS)


def usable(entry: Any) -> bool:
    """Is it an entry at all? One that was cut off lacks its later keys."""
    return isinstance(entry, dict) and isinstance(entry.get("profiling_name"), str) and "state" in entry


def _int(value: Any) -> int:
    number = int(value) if isinstance(value, (int, str, float)) and str(value).lstrip("-").isdigit() else 0
    return max(-_HUGE, min(_HUGE, number))


def _text(value: Any) -> str:
    return str(value).encode("utf-8", "replace").decode("utf-8")[:1000]


def _sizes(sizes: Any) -> tuple[tuple[int, ...], ...]:
    """Sizes are a list of lists; a flat list is one tensor (torch before 2.2)."""
    if not isinstance(sizes, (list, tuple)):
        return ()
    if sizes and all(isinstance(size, int) for size in sizes):
        return (tuple(sizes),)
    return tuple(
        tuple(n for n in size if isinstance(n, int)) for size in sizes[:_TENSORS] if isinstance(size, (list, tuple))
    )


def _dtype(inputs: Any, outputs: Any) -> str:
    sides = [side[:_TENSORS] for side in (inputs, outputs) if isinstance(side, (list, tuple))]
    names = {name for side in sides for name in side if isinstance(name, str)}
    return ", ".join(sorted(_text(name) for name in names))


def _group(number: int, named: tuple[Any, ...]) -> tuple[int, str, str]:
    name, desc = (*named, "", "")[:2]
    return number, _text(name), _text(desc)
