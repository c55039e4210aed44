"""The bytes of one dump → its plain value. Pickle or JSON, whole or ending early; nothing in them is executed."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from triage.artifacts.flight.careful import Machine
from triage.artifacts.flight.opcodes import MAX_CONTAINERS, canonical, check_size, load_canonical, refuse
from triage.artifacts.flight.packed import unpack
from triage.artifacts.interface import ArtifactError


class Loaded(NamedTuple):
    """`whole` is False where the file ends early and the value is what was readable."""

    value: Any
    whole: bool


def load(data: bytes) -> Loaded:
    """The value of a dump. Raises ArtifactError for what is none, or holds more than plain data."""
    if data[:1] == b"\x80":
        return _pickle(data)
    if data.lstrip()[:1] in (b"{", b"["):
        return _json(data)
    raise ArtifactError(
        "neither a pickle nor JSON, so no Flight Recorder dump",
        hint="give the files that TORCH_FR_DUMP_TEMP_FILE names",
    )


def _pickle(data: bytes) -> Loaded:
    check_size(data)
    quick = unpack(data)
    if quick is not None:
        return Loaded(quick, True)
    return load_plain(data)


def load_plain(data: bytes) -> Loaded:
    """A pickle whose entries are not all alike, or that is something else than it should be."""
    if canonical(data):
        try:
            return Loaded(load_canonical(data), True)
        except ArtifactError:
            raise
        except Exception as error:  # the C machine has a dozen ways to say that opcodes do not fit together
            raise ArtifactError(
                f"not a readable pickle ({type(error).__name__})", hint="the file may have been cut or overwritten"
            ) from error
    machine = Machine(data)
    return Loaded(machine.run(), machine.whole)


def _json(data: bytes) -> Loaded:
    if data.count(b"[") + data.count(b"{") > MAX_CONTAINERS:
        refuse(f"a memory bomb, more than {MAX_CONTAINERS:,} containers", 0)
    text = data.decode("utf-8", "replace")
    try:
        return Loaded(json.loads(text), True)
    except RecursionError:
        refuse("deep nesting", 0)
    except ValueError:
        pass
    try:
        return Loaded(_readable(text), False)
    except RecursionError:
        refuse("deep nesting", 0)


def _readable(text: str) -> dict[str, Any]:
    """What can be read of a JSON object that ends early: its keys up to there, and of `entries` those that are
    complete.
    """
    decoder = json.JSONDecoder()
    found: dict[str, Any] = {}
    position = text.find("{") + 1
    try:
        while position > 0:
            key, position = decoder.raw_decode(text, _skip(text, position, ","))
            position = _skip(text, position, ":")
            if key != "entries":
                found[str(key)], position = decoder.raw_decode(text, position)
                continue
            found["entries"] = []
            position += 1
            while text[_skip(text, position, ",")] != "]":
                entry, position = decoder.raw_decode(text, _skip(text, position, ","))
                found["entries"].append(entry)
            position = _skip(text, position, ",") + 1
    except (ValueError, IndexError):
        pass
    return found


def _skip(text: str, position: int, mark: str) -> int:
    while position < len(text) and text[position] in " \t\r\n" + mark:
        position += 1
    return position
