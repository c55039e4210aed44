"""Stacks as text and back, without loss: what tests compare, and what a bundle may carry.

One header line, one line for each fact of the process, one for each thread and frame; fields are `name=value`, strings
as in JSON.
"""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

from triage.base.errors import TriageError
from triage.base.lazy_re import lazy_re
from triage.stacks.model import Frame, Stacks, Thread

HEADER = "triage stacks 1"
_NUMBERS = frozenset(("offset", "address", "handle", "code", "line", "plus", "tid", "pid"))
_HEXADECIMAL = frozenset(("offset", "address", "handle", "plus"))
_PART = lazy_re(r' ([a-z_]+)=("(?:[^"\\]|\\.)*"|-?[0-9a-fx]+|True)')


class StacksError(TriageError):
    """A text is not one that `write` made."""


def write(stacks: Stacks) -> str:
    """The stacks as text; `read` gives the same stacks again."""
    out = [HEADER, "process" + _written(stacks)]
    for thread in stacks.threads:
        out.append("thread" + _written(thread))
        out.extend(f"  #{level}{_written(frame)}" for level, frame in enumerate(thread.frames))
    return "\n".join(out) + "\n"


def read(text: str) -> Stacks:
    """The stacks in a text that `write` made. Raises StacksError with the line."""
    lines = text.split("\n")
    if lines[:1] != [HEADER] or not lines[1:2] or not lines[1].startswith("process "):
        raise StacksError("not a stacks file of this version", hint=f"the first line must be {HEADER!r}", line=1)
    threads: list[tuple[dict[str, Any], list[Frame]]] = []
    for number, line in enumerate(lines[2:], 3):
        if line.startswith("thread"):
            threads.append((_read(line[6:], number, Thread), []))
        elif line.startswith("  #") and threads:
            threads[-1][1].append(Frame(**_read(line[3:].lstrip("0123456789"), number, Frame)))
        elif line:
            raise StacksError("neither a thread nor a frame", hint="the file is damaged", line=number)
    process = _read(lines[1][7:], 2, Stacks)
    if "form" not in process:
        raise StacksError("the form is missing", hint="the file is damaged", line=2)
    return Stacks(**process, threads=tuple(Thread(**parts, frames=tuple(frames)) for parts, frames in threads))


def _written(part: Frame | Thread | Stacks) -> str:
    out = []
    for field in fields(part):
        value = getattr(part, field.name)
        if field.name in ("frames", "threads") or (value == field.default and field.name != "form"):
            continue
        if isinstance(value, bool):
            text = str(value)
        elif isinstance(value, int):
            text = hex(value) if field.name in _HEXADECIMAL else str(value)
        else:
            text = json.dumps(value)
        out.append(f" {field.name}={text}")
    return "".join(out)


def _read(text: str, number: int, kind: type[Frame | Thread | Stacks]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    known = {field.name for field in fields(kind)} - {"frames", "threads"}
    position = 0
    for match in _PART.finditer(text):
        if match.start() != position or match[1] not in known:
            break
        position = match.end()
        values[match[1]] = _value(match[1], match[2], number)
    if position != len(text.rstrip()):
        raise StacksError(f"cannot read {text[position:][:60]!r}", hint="the file is damaged", line=number)
    return values


def _value(name: str, text: str, number: int) -> Any:
    try:
        if name in _NUMBERS:
            return int(text, 0)
        if name == "crashed":
            return text == "True"
        if not text.startswith('"'):
            raise ValueError(text)
        return json.loads(text)
    except ValueError as error:
        raise StacksError(f"{name} is {text[:40]!r}", hint="the file is damaged", line=number) from error
