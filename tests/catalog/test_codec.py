from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.catalog.helpers import GLOO
from triage.catalog import read
from triage.catalog.codec import catalog_data, catalog_from
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
    found, _ = read.parse(GLOO, "f.yaml")
    assert found is not None
    return Catalog("1", (found,), ("abcd",), (Note("c", None, "m"),))


def test_there_and_back() -> None:
    """A catalog survives JSON unchanged."""
    assert catalog_from(json.loads(json.dumps(catalog_data(catalog())))) == catalog()


def paths(node: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    return [path, *(found for key, inner in items for found in paths(inner, (*path, key)))]


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_other_shapes_raise_only_valueerror(data: st.DataObject) -> None:
    """Whatever stands at whatever place, the result is a catalog of the right types or a ValueError."""
    tree = json.loads(json.dumps({"top": catalog_data(catalog())}))
    path = data.draw(st.sampled_from([found for found in paths(tree) if found]))
    node = tree
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = data.draw(anything)
    try:
        found = catalog_from(tree["top"])
    except ValueError:
        return
    assert catalog_from(catalog_data(found)) == found


@pytest.mark.parametrize("data", [None, [], 1, "x", {}, {"version": "1"}])
def test_no_catalog_at_all(data: Any) -> None:
    """What is not even a mapping is a ValueError."""
    with pytest.raises(ValueError):
        catalog_from(data)
