from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from tests.catalog.factories import GLOO, parse_signature
from triage.catalog import cache
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
    result, _ = parse_signature(GLOO, "f.yaml")
    assert result is not None
    return Catalog("1", (result,), ("abcd",), (Note("c", None, "m"),))


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the path of a cache file with `catalog()` under the key `k`."""
    path = tmp_path_factory.mktemp("cache") / "catalog.json"
    cache.write_cache(path, "k", catalog())
    return path


def test_a_catalog_survives_the_cache(path: Path) -> None:
    """Writing and reading a catalog changes nothing; another key reads nothing."""
    assert cache.read_cache(path, "k", Catalog) == catalog()
    assert cache.read_cache(path, "other", Catalog) is None


def paths(node: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    return [path, *(result for key, inner in items for result in paths(inner, (*path, key)))]


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_a_changed_cache_gives_a_catalog_or_nothing(path: Path, data: st.DataObject) -> None:
    """Any change of the file gives a catalog of the right types, which is written again unchanged, or none."""
    tree = json.loads(path.read_bytes())
    place = data.draw(st.sampled_from([result for result in paths(tree) if result]))
    node = tree
    for key in place[:-1]:
        node = node[key]
    node[place[-1]] = data.draw(anything)
    changed = path.with_name("changed.json")
    changed.write_text(json.dumps(tree))
    changed.chmod(0o600)
    result = cache.read_cache(changed, "k", Catalog)
    if result is not None:
        cache.write_cache(changed, "k", result)
        assert cache.read_cache(changed, "k", Catalog) == result


@pytest.mark.parametrize("data", ["null", "[]", "1", '"x"', "{}", '{"version": "1"}', "[" * 100_000, ""])
def test_other_data_is_no_catalog(tmp_path: Path, data: str) -> None:
    """Data that is not a mapping, lacks keys or is nested too deeply is no catalog."""
    path = tmp_path / "catalog.json"
    path.write_text(f'{{"key": "k", "catalog": {data}}}')
    path.chmod(0o600)
    assert cache.read_cache(path, "k", Catalog) is None


def test_parts_of_killed_processes_are_removed(tmp_path: Path) -> None:
    """Writing a cache removes what a killed process left of this one, and no other file."""
    for name in ("catalog.json.abc123", "catalog.jsonl"):
        (tmp_path / name).write_text("half")
    cache.write_cache(tmp_path / "catalog.json", "k", catalog())
    assert sorted(item.name for item in tmp_path.iterdir()) == ["catalog.json", "catalog.jsonl"]


def test_a_part_that_another_process_removes_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processes that write at once: the one whose part is gone leaves the cache as it is."""
    path, replace = tmp_path / "catalog.json", os.replace
    cache.write_cache(path, "k", catalog())

    def remove_and_replace(part: str, target: Path) -> None:
        os.unlink(part)
        replace(part, target)

    monkeypatch.setattr(cache.os, "replace", remove_and_replace)
    cache.write_cache(path, "other", catalog())
    assert cache.read_cache(path, "k", Catalog) == catalog()
    assert list(tmp_path.iterdir()) == [path]
