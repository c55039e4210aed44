"""Dumps are read as plain data, whatever their bytes ask for."""

from __future__ import annotations

import copy
import json
import pickle
import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.artifacts.flight.making import Call, Job, as_json, as_pickle
from triage.artifacts.flight import opcodes
from triage.artifacts.flight.careful import Machine
from triage.artifacts.flight.load import load, load_plain
from triage.artifacts.flight.packed import Packed
from triage.artifacts.interface import ArtifactError

DUMP = Job({rank: [Call(place=("train.py", line, "step")) for line in range(9)] for rank in range(2)}).dumps()[0]


def plain(value: Any) -> Any:
    """Tuples as lists: a reader may give either."""
    return json.loads(json.dumps(value))


def test_a_dump_of_torch_takes_the_quick_way() -> None:
    """What torch's pickler writes passes the check and is read as it is."""
    data = as_pickle(copy.deepcopy(DUMP))
    assert opcodes.canonical(data)
    assert plain(load_plain(data).value) == plain(DUMP)
    assert isinstance(load(data).value["entries"], Packed)
    assert load(data).whole


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_other_picklers_of_plain_data_are_read_too(protocol: int) -> None:
    """A dump that somebody loaded and wrote again with Python is still a dump."""
    assert plain(load(pickle.dumps(DUMP, protocol)).value) == plain(DUMP)


def test_both_ways_read_the_same() -> None:
    """The careful machine and the quick way agree on what both read."""
    data = as_pickle(copy.deepcopy(DUMP))
    assert plain(Machine(data).run()) == plain(opcodes.load_canonical(data))


class _System:
    def __reduce__(self) -> Any:
        import os

        return os.system, ("touch /tmp/triage-was-here",)


class _Getattr:
    def __reduce__(self) -> Any:
        return getattr, (getattr, "__self__")


class _Persistent(pickle.Pickler):
    def persistent_id(self, obj: Any) -> Any:
        return "key" if obj == "secret" else None


def _persistent() -> bytes:
    import io

    target = io.BytesIO()
    _Persistent(target, 2).dump({"entries": ["secret"]})
    return target.getvalue()


HOSTILE = {
    "system": (pickle.dumps({"pg_config": {}, "entries": [_System()]}, 2), "global posix.system"),
    "system-4": (pickle.dumps({"pg_config": {}, "entries": [_System()]}, 4), "global posix.system"),
    "getattr": (pickle.dumps({"pg_config": {}, "entries": [_Getattr()]}, 2), "global (__builtin__|builtins).getattr"),
    "instance": (b"\x80\x02(ios\nsystem\n.", "global os.system"),
    "persistent": (_persistent(), "a persistent id"),
    "persistent-0": (b"\x80\x02Pkey\n.", "a persistent id"),
    "extension": (b"\x80\x02\x82\x07.", "extension registry code 7"),
    "extension-4": (b"\x80\x02\x84\x07\x01\x00\x00.", "extension registry code 263"),
    "reduce": (b"\x80\x02X\x01\x00\x00\x00a)R.", "opcode REDUCE"),
    "build": (b"\x80\x02}}b.", "opcode BUILD"),
    "newobj": (b"\x80\x02})\x81.", "opcode NEWOBJ"),
    "memory": (b"\x80\x02]" + b"]" * opcodes.MAX_CONTAINERS + b".", "a memory bomb"),
    "string": (b"\x80\x02X" + struct.pack("<I", 0xFFFFFFF0) + b"abc", "a memory bomb, a string of 4,294,967,280 bytes"),
    "depth": (b"\x80\x02" + b"]" * 5000 + b"a" * 4999 + b".", "deep nesting"),
    "marks": (b"\x80\x02" + b"](" * 5000 + b"e" * 5000 + b".", "deep nesting"),
    "tuples": (b"\x80\x02" + b"N" + b"\x85" * 100_000 + b".", "deep nesting"),
    "tuples-as-key": (
        b"\x80\x02}" + b"X\x01\x00\x00\x00aX\x01\x00\x00\x00b\x86" + b"N\x86" * 200_000 + b"Ns.",
        "deep nesting",
    ),
    "unhashable": (b"\x80\x02}(]Nu.", "neither text nor number|not a readable pickle"),
    "duplicate": (b"\x80\x02]2.", "opcode DUP"),
    "text": (b"\x80\x02S'a'\n.", "opcode STRING"),
    "bytearray": (b"\x80\x05\x96\x01\x00\x00\x00\x00\x00\x00\x00a.", "opcode BYTEARRAY8"),
    "memo": (b"\x80\x02]r\xff\xff\xff\xff.", None),
    "json-depth": (b'{"pg_config":' + b"[" * 300_000, "deep nesting"),
    "json-memory": (b'{"pg_config":[' + b"[]," * opcodes.MAX_CONTAINERS, "a memory bomb"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_bytes_are_refused_by_name(name: str) -> None:
    """Nothing is run or unfolded; the error names what was asked for."""
    import os

    data, words = HOSTILE[name]
    if words is None:
        assert load(data).value == []
        return
    with pytest.raises(ArtifactError, match=words):
        load(data)
    assert not os.path.exists("/tmp/triage-was-here")


def test_the_second_fence_holds_without_the_first() -> None:
    """Even bytes that never passed the check look up no name."""
    with pytest.raises(ArtifactError, match=r"global posix\.system"):
        opcodes.load_canonical(HOSTILE["system"][0])


@given(st.integers(0, 4000))
@settings(max_examples=60, deadline=None)
def test_a_cut_pickle_gives_what_was_complete(cut: int) -> None:
    """Any beginning of a dump gives a beginning of its entries, and says that it is not whole."""
    data = as_pickle(copy.deepcopy(DUMP))
    loaded = load(data[: max(3, min(cut, len(data) - 1))])
    assert not loaded.whole
    entries = [entry for entry in (loaded.value or {}).get("entries", []) if "is_p2p" in entry]
    assert plain(entries) == plain(DUMP["entries"][: len(entries)])


@given(st.integers(1, 6000))
@settings(max_examples=60, deadline=None)
def test_a_cut_json_gives_what_was_complete(cut: int) -> None:
    """The same for JSON."""
    data = as_json(DUMP)
    loaded = load(data[: min(cut, len(data) - 1)])
    assert not loaded.whole
    entries = loaded.value.get("entries", [])
    assert entries == json.loads(data)["entries"][: len(entries)]


@given(st.binary(max_size=200), st.integers(0, 3000))
@settings(max_examples=200, deadline=None)
def test_random_bytes_end_in_an_error_or_in_data(noise: bytes, at: int) -> None:
    """Whatever bytes are put into a dump, reading ends, with plain data or with an ArtifactError."""
    data = as_pickle(copy.deepcopy(DUMP))
    for hostile in (data[:at] + noise + data[at:], b"\x80\x02" + noise, data[:at] + noise):
        try:
            value = load(hostile).value
        except ArtifactError:
            continue
        assert isinstance(value, (dict, list, tuple, str, int, float, bool, type(None)))
