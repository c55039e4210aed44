from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.catalog.factories import GLOO
from triage.catalog import read
from triage.catalog.codec import decode_catalog, encode_catalog
from triage.catalog.model import Catalog
from triage.model.evidence import Warning as Note

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["any", "none", "text", "signatures", "version"]), inner, max_size=3)
    ),
    max_leaves=8,
)


def catalog() -> Catalog:
    result, _ = read.parse_signature(GLOO, "f.yaml")
    assert result is not None
    return Catalog("1", (result,), ("abcd",), (Note("c", None, "m"),))


def test_a_catalog_survives_json() -> None:
    """Encoding and decoding a catalog changes nothing."""
    assert decode_catalog(json.loads(json.dumps(encode_catalog(catalog())))) == catalog()


def paths(node: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    return [path, *(result for key, inner in items for result in paths(inner, (*path, key)))]


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_other_shapes_raise_only_valueerror(data: st.DataObject) -> None:
    """Any change of the data gives a catalog of the right types or a ValueError."""
    tree = json.loads(json.dumps({"top": encode_catalog(catalog())}))
    path = data.draw(st.sampled_from([result for result in paths(tree) if result]))
    node = tree
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = data.draw(anything)
    try:
        result = decode_catalog(tree["top"])
    except ValueError:
        return
    assert decode_catalog(encode_catalog(result)) == result


@pytest.mark.parametrize("data", [None, [], 1, "x", {}, {"version": "1"}])
def test_other_data_raises_valueerror(data: Any) -> None:
    """Data that is not a mapping, or lacks keys, is a ValueError."""
    with pytest.raises(ValueError):
        decode_catalog(data)
