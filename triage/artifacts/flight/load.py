"""The bytes of one dump → its plain value; pickle or JSON, complete or not, and nothing in it is executed."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from triage.artifacts.flight.fast_unpickler import unpickle_fast
from triage.artifacts.flight.safe_unpickler import (
    MAX_CONTAINERS,
    SafeUnpickler,
    check_size,
    is_canonical,
    load_canonical,
    refuse,
)
from triage.artifacts.interface import ArtifactError


class Loaded(NamedTuple):
    """The value of a dump; with `is_complete` False, the part of it before the early end."""

    value: Any
    is_complete: bool


def load(data: bytes) -> Loaded:
    """Return the value of a dump. Raises ArtifactError for other files, and for dumps with more than plain data."""
    if data[:1] == b"\x80":
        return _pickle(data)
    if data.lstrip()[:1] in (b"{", b"["):
        return _json(data)
    raise ArtifactError(
        "not a Flight Recorder dump: neither a pickle nor JSON",
        hint="give the files that TORCH_FR_DUMP_TEMP_FILE names",
    )


def _pickle(data: bytes) -> Loaded:
    check_size(data)
    value = unpickle_fast(data)
    return load_plain(data) if value is None else Loaded(value, True)


def load_plain(data: bytes) -> Loaded:
    """Load a pickle that `unpickle_fast` does not take: its entries differ, or it is not as torch writes it."""
    if is_canonical(data):
        try:
            return Loaded(load_canonical(data), True)
        except ArtifactError:
            raise
        except Exception as error:  # the C unpickler raises a dozen types for opcodes that do not match
            raise ArtifactError(
                f"not a readable pickle ({type(error).__name__})", hint="the file may have been cut or overwritten"
            ) from error
    unpickler = SafeUnpickler(data)
    return Loaded(unpickler.run(), unpickler.is_complete)


def _json(data: bytes) -> Loaded:
    if data.count(b"[") + data.count(b"{") > MAX_CONTAINERS:
        refuse(f"a memory bomb, more than {MAX_CONTAINERS:,} containers", 0)
    text = data.decode("utf-8", "replace")
    try:
        return Loaded(json.loads(text), True)
    except RecursionError:
        refuse("deep nesting", 0)
    except ValueError:
        pass  # cut short or damaged: what is complete is still read, and the result says that it is not whole
    try:
        return Loaded(_readable(text), False)
    except RecursionError:
        refuse("deep nesting", 0)


def _readable(text: str) -> dict[str, Any]:
    """The complete keys of a JSON object that ends early, and the complete items of its `entries`."""
    decoder = json.JSONDecoder()
    value: dict[str, Any] = {}
    position = text.find("{") + 1
    try:
        while position > 0:
            key, position = decoder.raw_decode(text, _skip(text, position, ","))
            position = _skip(text, position, ":")
            if key != "entries":
                value[str(key)], position = decoder.raw_decode(text, position)
                continue
            value["entries"] = []
            position += 1
            while text[_skip(text, position, ",")] != "]":
                entry, position = decoder.raw_decode(text, _skip(text, position, ","))
                value["entries"].append(entry)
            position = _skip(text, position, ",") + 1
    except (ValueError, IndexError):
        pass  # here the object ends
    return value


def _skip(text: str, position: int, separator: str) -> int:
    while position < len(text) and text[position] in " \t\r\n" + separator:
        position += 1
    return position
