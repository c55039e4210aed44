"""Many dumps at once: forked copies of this process read some of the files and send columns and lists back.

Columns are sent as raw bytes, everything else as JSON. Where no copy can be made (threads, no fork) or one dies, its
files are read here, with the same result.
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

BYTES_PER_PROCESS = 24 << 20
"""Bytes of dumps for each process: reading them takes longer than making a copy."""
_MAX_PROCESSES = 8
T = TypeVar("T")


def split_by_size(files: Sequence[T], size: Callable[[T], int]) -> list[list[T]]:
    """Return one part for each process with about as many bytes, neighbours together; the first is for this process."""
    total = sum(map(size, files))
    count = max(1, min(_processors(), _MAX_PROCESSES, total // BYTES_PER_PROCESS))
    parts: list[list[T]] = [[] for _ in range(count)]
    before = 0
    for file in files:
        parts[min(count - 1, before * count // max(1, total))].append(file)
        before += size(file)
    return [parts[0], *(part for part in parts[1:] if part)]


def _processors() -> int:
    return forks.usable_processes(len(os.sched_getaffinity(0)) if sys.platform == "linux" else 1)


@dataclass(frozen=True, slots=True)
class PartialRecording:
    """What one process has read: fields and columns of each dump, the lists that indices point into, and messages."""

    dumps: list[tuple[dict[str, Any], dict[str, Any]]]
    lists: dict[str, list[Any]]
    notes: list[tuple[str, str | None, str]]
    warnings: list[Warning]


def send_partial(part: PartialRecording, pipe: BufferedWriter) -> None:
    """Send what a copy has read; nothing may follow."""
    for fields, columns in part.dumps:
        _send(pipe, fields, columns)
    warnings = [(warning.code, warning.source, warning.message) for warning in part.warnings]
    _send(pipe, {"lists": part.lists, "notes": part.notes, "warnings": warnings}, {})


def receive_partial(pipe: BinaryIO) -> PartialRecording | None:
    """Wait for what a copy has read, None when it died."""
    try:
        *dumps, (rest, _) = _received(pipe)
    except EOFError:
        return None
    return PartialRecording(
        dumps,
        _typed(rest["lists"]),
        [tuple(note) for note in rest["notes"]],
        [Warning(*warning) for warning in rest["warnings"]],
    )


def _send(pipe: BinaryIO, fields: dict[str, Any], columns: dict[str, Any]) -> None:
    layout = [(name, column.dtype.str, len(column)) for name, column in columns.items()]
    head = json.dumps({"fields": fields, "columns": layout}).encode()
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
        yield head["fields"], columns
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
