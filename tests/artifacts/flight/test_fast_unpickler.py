"""The fast unpickler reads dumps as the safe one does, or returns None."""

from __future__ import annotations

import copy
import pickle
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from tests.artifacts.flight.factories import Call, Job, as_pickle
from triage.artifacts.flight.columns import Tables
from triage.artifacts.flight.fast_unpickler import PackedEntries, decode_integers, unpickle_fast
from triage.artifacts.flight.load import load_plain
from triage.artifacts.interface import ArtifactError

SAMPLES = sorted((Path(__file__).resolve().parents[3] / "samples" / "flight").glob("*/fr_rank_?"))
_SHARED = {"op": "ops", "shape": "shapes", "dtype": "dtypes", "stack": "stacks", "group": "groups"}


def column_values(entries: Any) -> dict[str, list[Any]]:
    """Return the columns, with values in place of indices."""
    tables = Tables()
    columns = tables.read(entries)
    return {
        name: [getattr(tables, _SHARED[name]).values[i] for i in column] if name in _SHARED else column.tolist()
        for name, column in columns.items()
    }


def is_read_fast(data: bytes) -> bool:
    """Return whether the fast unpickler reads the dump, after a check that the safe one gives the same."""
    fast = unpickle_fast(data)
    if fast is None:
        return False
    safe = load_plain(data).value
    assert {**fast, "entries": None} == {**safe, "entries": None}
    assert column_values(fast["entries"]) == column_values(safe["entries"])
    return True


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_recorded_dumps_are_read_fast(path: Path) -> None:
    """The fast unpickler reads every dump of torch 2.13, with the same columns."""
    assert is_read_fast(path.read_bytes())


CALLS = st.builds(
    Call,
    op=st.sampled_from(["all_reduce", "broadcast", "all_gather"]),
    size=st.lists(st.sampled_from([0, 1, 255, 256, 65535, 65536, 1 << 31, 1 << 40]), max_size=3).map(tuple),
    dtype=st.sampled_from(["Float", "Int"]),
    place=st.sampled_from([None, ("a.py", 1, "f"), ("b.py", 70000, "g")]),
    ms=st.sampled_from([None, 0.0, 1.5]),
)


@given(st.lists(CALLS, min_size=2, max_size=40), st.integers(1, 3))
@settings(max_examples=60, deadline=None)
def test_simulated_dumps_are_read_fast(calls: list[Call], times: int) -> None:
    """Dumps with any sizes, types, places and durations are read fast, with small and large memos."""
    dump = Job({0: calls * times, 1: calls * times}, window=2).dumps()[0]
    assert is_read_fast(as_pickle(copy.deepcopy(dump)))


def test_repeated_entries_are_matched() -> None:
    """Of two thousand equal calls all but the first few are matched as a whole."""
    data = as_pickle(Job({0: [Call()] * 2000, 1: [Call()] * 2000}).dumps()[0])
    entries = unpickle_fast(data)["entries"]
    assert isinstance(entries, PackedEntries)
    assert sum(isinstance(row[0], bytes) and isinstance(row[-1], bytes) for row in entries.rows) > 1990


@pytest.mark.parametrize("number", [133, 134, 135])
def test_byte_of_a_pair_at_the_end_of_a_number(number: int) -> None:
    """The 134th group, whose number is the opcode of a pair, is read as any other."""
    groups = {f"g{index}": [0, 1] for index in range(number)}
    dump = Job({rank: [Call(group=f"g{number - 1}")] * 20 for rank in range(2)}, groups).dumps()[0]
    assert dump["entries"][0]["pg_id"] == number
    assert is_read_fast(as_pickle(copy.deepcopy(dump)))


@pytest.mark.parametrize("raw", [b"K\x86", b"h\x86", b"h\x01h\x02\x86"])
def test_pair_is_known_by_its_length(raw: bytes) -> None:
    """A number or a reference of 134 is no pair, and two references with the opcode are one."""
    memo = {1: "a", 2: "b", 0x86: "c"}
    assert PackedEntries(memo).value(raw) in (134, "c", ["a", "b"])


@given(st.binary(min_size=1, max_size=12), st.data())
@settings(max_examples=150, deadline=None)
def test_changed_dump_is_read_equally_or_not_at_all(noise: bytes, data: st.DataObject) -> None:
    """The fast unpickler reads no changed dump differently, and none that the safe one refuses as hostile."""
    original = as_pickle(copy.deepcopy(Job({rank: [Call(), Call(op="barrier")] * 6 for rank in range(2)}).dumps()[0]))
    position = data.draw(st.integers(0, len(original)))
    for changed in (
        original[:position] + noise + original[position:],
        original[:position] + noise + original[position + len(noise) :],
    ):
        fast = unpickle_fast(changed)
        if fast is None:
            continue
        try:
            columns, safe = column_values(fast["entries"]), load_plain(changed)
        except ArtifactError as error:  # broken, not hostile: a missing reference or an unknown protocol
            if re.search("global|opcode [A-Z]|persistent|extension|bomb|deep", error.message):
                pytest.fail(error.message)
        except (TypeError, ValueError, OverflowError, KeyError, AttributeError):
            continue  # the recording turns these into an ArtifactError
        else:
            assert safe.is_complete
            assert columns == column_values(safe.value["entries"])


def test_second_value_before_the_stop() -> None:
    """A pickle whose value is not the dump, but what was put on the stack after it, is left to the safe unpickler."""
    original = as_pickle(Job({rank: [Call(), Call(op="barrier")] * 6 for rank in range(2)}).dumps()[0])
    assert unpickle_fast(original) is not None
    assert unpickle_fast(original[:-1] + b"].") is None


def test_stop_inside_an_entry() -> None:
    """A STOP inside an entry is left to the safe unpickler, which gives the entries before it."""
    original = as_pickle(Job({rank: [Call(), Call(op="barrier")] * 6 for rank in range(2)}).dumps()[0])
    position = original.rindex(b"ueu")
    stopped = original[:position] + b"." + original[position:]
    assert unpickle_fast(stopped) is None
    loaded = load_plain(stopped)
    assert not loaded.is_complete
    assert len(loaded.value["entries"]) >= 11


@pytest.mark.parametrize("value", [0, 1, 255, 256, 65535, 65536, 2**31 - 1, -1, -(2**31), 2**31, 2**62, -(2**62)])
def test_integers_of_every_width(value: int) -> None:
    """Integers of every pickle opcode are decoded."""
    written = pickle.dumps(value, 2)[2:-1]
    if written[:1] == b"\x8a":
        written = b"\x8a\x08" + value.to_bytes(8, "little", signed=True)
    assert decode_integers([written, b"K\x07"]).tolist() == [value, 7]


def test_entries_without_a_duration() -> None:
    """Calls that were not timed have the duration 0 beside those that were."""
    dump = Job({rank: [Call(ms=1.5)] * 20 for rank in range(2)}).dumps()[0]
    for entry in dump["entries"][5::2]:
        entry["duration_ms"] = None
    data = as_pickle(copy.deepcopy(dump))
    assert is_read_fast(data)
    assert column_values(unpickle_fast(data)["entries"])["duration"] == [1.5] * 5 + [0.0, 1.5] * 7 + [0.0]


def test_flag_that_is_a_number() -> None:
    """A dump whose flags are numbers is left to the safe unpickler, which gives the same columns."""
    dump = Job({rank: [Call()] * 4 for rank in range(2)}).dumps()[0]
    expected = column_values(dump["entries"])
    for entry in dump["entries"]:
        entry["retired"] = int(entry["retired"])
    data = as_pickle(dump)
    assert unpickle_fast(data) is None
    assert column_values(load_plain(data).value["entries"]) == expected


@pytest.mark.parametrize(("names", "is_fast"), [(60, True), (120, False)])
def test_entries_that_match_no_expression(names: int, is_fast: bool) -> None:
    """A dump in which nearly every entry has a new name is left to the safe unpickler, with all its entries."""
    calls = [Call(f"all_reduce_{number}") for number in range(names)]
    data = as_pickle(Job({0: calls, 1: calls}).dumps()[0])
    assert (unpickle_fast(data) is not None) == is_fast
    assert len(set(column_values(load_plain(data).value["entries"])["op"])) == names
