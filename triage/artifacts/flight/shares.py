"""Many dumps at once: some of the files are read by copies of this process, which hand back columns as raw bytes and
what they mean as JSON.

Where no copy can be made (threads, no fork) or one dies, its files are read here. The answer is the same.
"""

from __future__ import annotations

import json
import os
import struct
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from io import BufferedWriter
from typing import Any, BinaryIO, TypeVar

from triage.artifacts.flight.model import Frame, Shape
from triage.base import forks
from triage.model.evidence import Warning

WORTH = 24 << 20
"""Bytes of dumps for each process: a copy is ready sooner than that is read."""
_MOST = 8
T = TypeVar("T")


def shares(files: Sequence[T], size: Callable[[T], int]) -> list[list[T]]:
    """About as many bytes for each process, neighbours together; the first share is for this one."""
    total = sum(map(size, files))
    count = max(1, min(_processors(), _MOST, total // WORTH))
    parts: list[list[T]] = [[] for _ in range(count)]
    before = 0
    for file in files:
        parts[min(count - 1, before * count // max(1, total))].append(file)
        before += size(file)
    return [parts[0], *(part for part in parts[1:] if part)]


def _processors() -> int:
    return forks.possible(len(os.sched_getaffinity(0)) if sys.platform == "linux" else 1)


@dataclass(frozen=True, slots=True)
class Handed:
    """What a copy has read: the fields and the columns of each dump, the lists that their indices mean, and what is to
    be said.
    """

    ones: list[tuple[dict[str, Any], dict[str, Any]]]
    lists: dict[str, list[Any]]
    notes: list[tuple[str, str | None, str]]
    warnings: list[Warning]


def hand(handed: Handed, pipe: BufferedWriter) -> None:
    """What a copy does at last."""
    for told, columns in handed.ones:
        _send(pipe, told, columns)
    warnings = [(told.code, told.source, told.message) for told in handed.warnings]
    _send(pipe, {"lists": handed.lists, "notes": handed.notes, "warnings": warnings}, {})


def handed_over(pipe: BinaryIO) -> Handed | None:
    """Waits for it. None when the copy died."""
    try:
        *ones, (last, _) = _received(pipe)
    except EOFError:
        return None
    return Handed(
        ones,
        _typed(last["lists"]),
        [tuple(note) for note in last["notes"]],
        [Warning(*told) for told in last["warnings"]],
    )


def _send(pipe: BinaryIO, told: dict[str, Any], columns: dict[str, Any]) -> None:
    head = json.dumps(
        {"told": told, "columns": [(name, column.dtype.str, len(column)) for name, column in columns.items()]}
    ).encode()
    pipe.write(struct.pack("<Q", len(head)) + head)
    for column in columns.values():
        pipe.write(column.tobytes())


def _received(pipe: BinaryIO) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Everything up to the message without columns, which is the last."""
    import numpy as np

    more = True
    while more:
        head = json.loads(_exactly(pipe, struct.unpack("<Q", _exactly(pipe, 8))[0]))
        columns = {
            name: np.frombuffer(_exactly(pipe, count * np.dtype(form).itemsize), dtype=form)
            for name, form, count in head["columns"]
        }
        yield head["told"], columns
        more = bool(columns)


def _exactly(pipe: BinaryIO, count: int) -> bytes:
    data = pipe.read(count)
    if len(data) < count:
        raise EOFError
    return data


def _typed(lists: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """The lists in the types they had before they were JSON."""
    return {
        **lists,
        "shapes": [Shape(*(tuple(map(tuple, side)) for side in shape)) for shape in lists["shapes"]],
        "stacks": [tuple(Frame(*frame) for frame in stack) for stack in lists["stacks"]],
        "groups": [tuple(group) for group in lists["groups"]],
        "members": [tuple(ranks) for ranks in lists["members"]],
    }
