"""Dumps are only read as plain data, whatever their bytes contain."""

from __future__ import annotations

import copy
import json
import pickle
import struct
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from tests.artifacts.flight.factories import Call, Job, as_json, as_pickle
from triage.artifacts.flight import safe_unpickler
from triage.artifacts.flight.fast_unpickler import PackedEntries
from triage.artifacts.flight.load import load, load_plain
from triage.artifacts.flight.safe_unpickler import SafeUnpickler
from triage.artifacts.interface import ArtifactError

DUMP = Job({rank: [Call(place=("train.py", line, "step")) for line in range(9)] for rank in range(2)}).dumps()[0]


def plain(value: Any) -> Any:
    """Replace tuples by lists: a reader may return either."""
    return json.loads(json.dumps(value))


def test_dump_of_torch_is_read_fast() -> None:
    """A dump from torch's pickler is canonical and is read by the fast unpickler."""
    data = as_pickle(copy.deepcopy(DUMP))
    assert safe_unpickler.is_canonical(data)
    assert plain(load_plain(data).value) == plain(DUMP)
    assert isinstance(load(data).value["entries"], PackedEntries)
    assert load(data).is_complete


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_pickles_of_python_are_read(protocol: int) -> None:
    """A dump that was loaded and written again with Python is read too."""
    assert plain(load(pickle.dumps(DUMP, protocol)).value) == plain(DUMP)


def test_safe_and_standard_unpickler_agree() -> None:
    """The safe unpickler and Python's give the same value for a canonical dump."""
    data = as_pickle(copy.deepcopy(DUMP))
    assert plain(SafeUnpickler(data).run()) == plain(safe_unpickler.load_canonical(data))


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
    "memory": (b"\x80\x02]" + b"]" * safe_unpickler.MAX_CONTAINERS + b".", "a memory bomb"),
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
    "json-memory": (b'{"pg_config":[' + b"[]," * safe_unpickler.MAX_CONTAINERS, "a memory bomb"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_bytes_are_refused(name: str) -> None:
    """Hostile bytes execute nothing, and the error names what they contain."""
    import os

    data, message = HOSTILE[name]
    if message is None:
        assert load(data).value == []
        return
    with pytest.raises(ArtifactError, match=message):
        load(data)
    assert not os.path.exists("/tmp/triage-was-here")


def test_unpickler_refuses_globals_without_the_check() -> None:
    """The unpickler looks up no name, even for bytes that were not checked."""
    with pytest.raises(ArtifactError, match=r"global posix\.system"):
        safe_unpickler.load_canonical(HOSTILE["system"][0])


@given(st.integers(0, 4000))
@settings(max_examples=60, deadline=None)
def test_truncated_pickle_gives_complete_entries(cut: int) -> None:
    """The beginning of a pickle gives its first entries, marked as incomplete."""
    data = as_pickle(copy.deepcopy(DUMP))
    loaded = load(data[: max(3, min(cut, len(data) - 1))])
    assert not loaded.is_complete
    entries = [entry for entry in (loaded.value or {}).get("entries", []) if "is_p2p" in entry]
    assert plain(entries) == plain(DUMP["entries"][: len(entries)])


@given(st.integers(1, 6000))
@settings(max_examples=60, deadline=None)
def test_truncated_json_gives_complete_entries(cut: int) -> None:
    """The beginning of a JSON dump gives its first entries, marked as incomplete."""
    data = as_json(DUMP)
    loaded = load(data[: min(cut, len(data) - 1)])
    assert not loaded.is_complete
    entries = loaded.value.get("entries", [])
    assert entries == json.loads(data)["entries"][: len(entries)]


@given(st.binary(max_size=200), st.integers(0, 3000))
@settings(max_examples=200, deadline=None)
def test_random_bytes_give_an_error_or_data(noise: bytes, position: int) -> None:
    """Any bytes in a dump give plain data or an ArtifactError."""
    data = as_pickle(copy.deepcopy(DUMP))
    for hostile in (data[:position] + noise + data[position:], b"\x80\x02" + noise, data[:position] + noise):
        try:
            value = load(hostile).value
        except ArtifactError:
            continue
        assert isinstance(value, (dict, list, tuple, str, int, float, bool, type(None)))


@pytest.mark.parametrize(("name", "message"), [("system", r"global posix\.system"), ("persistent", "a persistent id")])
def test_names_are_refused_even_if_the_check_were_wrong(
    name: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pickle that passed the check by mistake looks up no name and no persistent id."""
    from triage.artifacts.flight import load as module

    monkeypatch.setattr(module, "is_canonical", lambda data: True)
    with pytest.raises(ArtifactError, match=message):
        load_plain(HOSTILE[name][0])


def test_containers_without_their_own_byte_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Empty tuples, which the quick look at the bytes does not count, are limited too."""
    monkeypatch.setattr(safe_unpickler, "MAX_CONTAINERS", 1000)
    assert load(b"\x80\x02](" + b")" * 999 + b"e.").value == [[]] * 999
    with pytest.raises(ArtifactError, match="a memory bomb, more than 1,000 containers"):
        load(b"\x80\x02](" + b")" * 1001 + b"e.")


def test_pickle_that_ends_before_its_first_container() -> None:
    """Of a pickle that ends before its first container nothing is read, and it is incomplete."""
    assert load(b"\x80\x02(K\x01K\x02") == (None, False)


@pytest.mark.parametrize(
    ("data", "value"),
    [(b"[1, 2", {}), (b'[{"version": "2.4", "entries": [{"state": ', {"version": "2.4", "entries": []})],
)
def test_truncated_json_list(data: bytes, value: object) -> None:
    """Of a JSON list that ends early, the keys of its first object are read, if it has one."""
    assert load(data) == (value, False)


def test_deep_nesting_behind_damage() -> None:
    """Deep nesting is refused too where the JSON before it is damaged."""
    with pytest.raises(ArtifactError, match="deep nesting"):
        load(b'[1 {"pg_config": ' + b"[" * 300_000)
