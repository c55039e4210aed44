"""triage.catalog.stored_catalog"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from triage.catalog import load
from triage.catalog.model import Catalog
from triage.catalog.stored_catalog import read_catalog, write_catalog

SOURCES = ["/signatures"]


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return load.load()


def without_samples(catalog: Catalog) -> Catalog:
    bare = (replace(one, samples_match=(), samples_no_match=()) for one in catalog.signatures)
    return replace(catalog, signatures=tuple(bare))


def change(path: Path, **changes: Any) -> None:
    """Change parts of the stored catalog; its key stays."""
    content = msgspec.json.decode(path.read_bytes())
    content["catalog"].update(changes)
    path.write_bytes(msgspec.json.encode(content))


def name_file_of(part: str, directory: Path) -> Path:
    (path,) = directory.glob(f"{part}-*.json")
    return path


def test_the_shipped_catalog_comes_back(tmp_path: Path, catalog: Catalog) -> None:
    """The catalog comes back equal, without samples if so wanted; under another key or other sources there is none."""
    write_catalog(tmp_path, SOURCES, "key", catalog)
    assert read_catalog(tmp_path, SOURCES, "key", with_samples=True) == catalog
    assert read_catalog(tmp_path, SOURCES, "key", with_samples=False) == without_samples(catalog)
    assert read_catalog(tmp_path, SOURCES, "other", with_samples=False) is None
    assert read_catalog(tmp_path, ["/other"], "key", with_samples=False) is None


def test_equal_edges_are_one_object(tmp_path: Path, catalog: Catalog) -> None:
    """Signatures with the same effects share them, in the file and in memory."""
    write_catalog(tmp_path, SOURCES, "key", catalog)
    stored = read_catalog(tmp_path, SOURCES, "key", with_samples=False)
    assert stored is not None
    assert len({id(one.causal_edges) for one in stored.signatures}) == len(
        {one.causal_edges for one in stored.signatures}
    )


def test_without_the_file_of_samples_only_they_are_missing(tmp_path: Path, catalog: Catalog) -> None:
    """Where the samples are lost, who needs them gets no catalog, and who does not gets it."""
    write_catalog(tmp_path, SOURCES, "key", catalog)
    name_file_of("samples", tmp_path).unlink()
    assert read_catalog(tmp_path, SOURCES, "key", with_samples=True) is None
    assert read_catalog(tmp_path, SOURCES, "key", with_samples=False) == without_samples(catalog)


@pytest.mark.parametrize("numbers", [[], [-1], [1], [0, 0], ["0"], None])
def test_numbers_that_do_not_fit_give_no_catalog(tmp_path: Path, catalog: Catalog, numbers: Any) -> None:
    """A number of a list of edges that does not exist, or too many or too few numbers: the file is worthless."""
    one = replace(catalog, signatures=catalog.signatures[:1])
    write_catalog(tmp_path, SOURCES, "key", one)
    path = name_file_of("catalog", tmp_path)
    change(path, edges_of=[0])
    assert read_catalog(tmp_path, SOURCES, "key", with_samples=True) == one
    change(path, edges_of=numbers)
    assert read_catalog(tmp_path, SOURCES, "key", with_samples=False) is None


def test_samples_of_other_signatures_give_no_catalog(tmp_path: Path, catalog: Catalog) -> None:
    """Samples of more or fewer signatures than there are belong to another catalog."""
    write_catalog(tmp_path, SOURCES, "key", catalog)
    path = name_file_of("samples", tmp_path)
    content = msgspec.json.decode(path.read_bytes())
    content["catalog"].pop()
    path.write_bytes(msgspec.json.encode(content))
    assert read_catalog(tmp_path, SOURCES, "key", with_samples=True) is None


def test_a_diagnosis_loads_no_samples(tmp_path: Path, catalog: Catalog) -> None:
    """From the cache, or compiled for it: without samples all else is the same; with them it stays complete."""
    for _ in range(2):
        assert without_samples(load.load((), tmp_path, with_samples=False)) == without_samples(catalog)
    assert load.load((), tmp_path, with_samples=False) == without_samples(catalog)
    assert load.load((), tmp_path) == catalog


def test_files_are_decoded_once_until_they_change(tmp_path: Path, catalog: Catalog) -> None:
    """The same files give the same object; files that are written again, changed or opened to others are read again."""
    write_catalog(tmp_path, SOURCES, "key", catalog)
    first = read_catalog(tmp_path, SOURCES, "key", with_samples=True)
    assert read_catalog(tmp_path, SOURCES, "key", with_samples=True) is first
    write_catalog(tmp_path, SOURCES, "key", replace(catalog, version="changed"))
    second = read_catalog(tmp_path, SOURCES, "key", with_samples=True)
    assert second is not None
    assert second.version == "changed"
    change(name_file_of("catalog", tmp_path), edges=[])
    assert read_catalog(tmp_path, SOURCES, "key", with_samples=True) is None
    write_catalog(tmp_path, SOURCES, "key", catalog)
    assert read_catalog(tmp_path, SOURCES, "key", with_samples=False) is not None
    name_file_of("catalog", tmp_path).chmod(0o666)
    assert read_catalog(tmp_path, SOURCES, "key", with_samples=False) is None
