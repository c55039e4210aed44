"""The quick way reads what the careful way reads, or steps aside."""

from __future__ import annotations

import copy
import pickle
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.artifacts.flight.making import Call, Job, as_pickle
from triage.artifacts.flight.columns import Tables
from triage.artifacts.flight.load import load_plain
from triage.artifacts.flight.packed import Packed, numbers, unpack
from triage.artifacts.interface import ArtifactError

SAMPLES = sorted((Path(__file__).resolve().parents[3] / "samples" / "flight").glob("*/fr_rank_?"))
_SHARED = {"op": "ops", "shape": "shapes", "dtype": "dtypes", "stack": "stacks", "group": "groups"}


def told(entries: Any) -> dict[str, list[Any]]:
    """The columns with what their indices stand for."""
    tables = Tables()
    columns = tables.read(entries)
    return {
        name: [getattr(tables, _SHARED[name]).values[i] for i in column] if name in _SHARED else column.tolist()
        for name, column in columns.items()
    }


def same(data: bytes) -> bool:
    """Do both ways give the same? False where the quick way steps aside."""
    quick = unpack(data)
    if quick is None:
        return False
    careful = load_plain(data).value
    assert {**quick, "entries": None} == {**careful, "entries": None}
    assert told(quick["entries"]) == told(careful["entries"])
    return True


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_recorded_dumps_are_read_alike(path: Path) -> None:
    """All that torch 2.13 wrote takes the quick way, and gives the same columns."""
    assert same(path.read_bytes())


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
def test_made_dumps_are_read_alike(calls: list[Call], times: int) -> None:
    """Any mixture of sizes, types, places and durations, with the memo on both sides of 256."""
    dump = Job({0: calls * times, 1: calls * times}, window=2).dumps()[0]
    assert same(as_pickle(copy.deepcopy(dump)))


def test_most_entries_are_one_match() -> None:
    """Of two thousand equal calls only the first ones are read step by step."""
    data = as_pickle(Job({0: [Call()] * 2000, 1: [Call()] * 2000}).dumps()[0])
    entries = unpack(data)["entries"]
    assert isinstance(entries, Packed)
    assert sum(isinstance(row[0], bytes) and isinstance(row[-1], bytes) for row in entries.rows) > 1990


@given(st.binary(min_size=1, max_size=12), st.data())
@settings(max_examples=150, deadline=None)
def test_a_changed_dump_is_read_alike_or_given_up(noise: bytes, data: st.DataObject) -> None:
    """Whatever bytes are put into the dump: nothing is read otherwise, and nothing that the careful way refuses by
    name.
    """
    whole = as_pickle(copy.deepcopy(Job({rank: [Call(), Call(op="barrier")] * 6 for rank in range(2)}).dumps()[0]))
    at = data.draw(st.integers(0, len(whole)))
    for changed in (whole[:at] + noise + whole[at:], whole[:at] + noise + whole[at + len(noise) :]):
        quick = unpack(changed)
        if quick is None:
            continue
        try:
            columns, careful = told(quick["entries"]), load_plain(changed)
        except ArtifactError as error:  # a reference to nothing, or a protocol that is none: broken, not hostile
            if re.search("global|opcode [A-Z]|persistent|extension|bomb|deep", error.message):
                pytest.fail(error.message)
        except (TypeError, ValueError, OverflowError, KeyError, AttributeError):
            continue  # what the reader of columns refuses, it refuses in words
        else:
            assert careful.whole
            assert columns == told(careful.value["entries"])


def test_a_stop_inside_an_entry_ends_the_dump_there() -> None:
    """The quick way steps aside, and the careful way gives the entries before as a dump that is not whole."""
    whole = as_pickle(Job({rank: [Call(), Call(op="barrier")] * 6 for rank in range(2)}).dumps()[0])
    at = whole.rindex(b"ueu")
    stopped = whole[:at] + b"." + whole[at:]
    assert unpack(stopped) is None
    loaded = load_plain(stopped)
    assert not loaded.whole
    assert len(loaded.value["entries"]) >= 11


@pytest.mark.parametrize("value", [0, 1, 255, 256, 65535, 65536, 2**31 - 1, -1, -(2**31), 2**31, 2**62, -(2**62)])
def test_numbers_of_every_width(value: int) -> None:
    """As Python's pickle writes them, filled up where torch writes eight bytes."""
    written = pickle.dumps(value, 2)[2:-1]
    if written[:1] == b"\x8a":
        written = b"\x8a\x08" + value.to_bytes(8, "little", signed=True)
    assert numbers([written, b"K\x07"]).tolist() == [value, 7]
