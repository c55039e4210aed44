"""Results that one process sends to another."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, strategies as st

from triage.base.packed_results import pack_result, unpack_result

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


@given(VALUES)
def test_a_result_comes_back(value: Any) -> None:
    """Nested values of all kinds are equal afterwards, infinities included."""
    assert unpack_result(pack_result(value)) == value


@pytest.mark.parametrize("value", [2**64 - 1, 2**64, -(2**63), -(2**63) - 1, "\ud800", [{"a": "\udfff"}], math.inf])
def test_what_msgpack_cannot_hold_comes_back(value: Any) -> None:
    """Integers on both sides of 64 bits, and surrogates without their partner."""
    assert unpack_result(pack_result([value])) == [value]


def test_not_a_number_comes_back() -> None:
    """A loss of `nan` stays one."""
    assert math.isnan(unpack_result(pack_result([math.nan]))[0])
