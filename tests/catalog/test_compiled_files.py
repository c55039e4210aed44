from __future__ import annotations

from pathlib import Path

import pytest

from tests.catalog.factories import GLOO, shipped, write
from triage.catalog import build
from triage.catalog.compiled_files import read_compiled_files
from triage.catalog.match import all_leaves


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A catalog of two signatures."""
    base = shipped(tmp_path / "shipped")
    write(base)
    write(base, "a.two", GLOO.replace("gloo/transport", "two/transport"))
    return base


def read(base: Path) -> dict[str, str]:
    return {one.id: one.title for one in read_compiled_files(base, base / "cache")}


def test_only_changed_files_are_read_again(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second read takes the rest from the cache; removed files are gone, and bad ones left out."""
    files: list[str] = []
    original = build.read_directory

    def record(paths: list[str]) -> object:
        files.extend(Path(path).stem for path in paths)
        return original(paths)

    monkeypatch.setattr(build, "read_directory", record)
    title = "A peer closed its connection"
    assert read(base) == {"a.two": title, "gloo.peer-closed": title}
    assert (read(base), sorted(files)) == ({"a.two": title, "gloo.peer-closed": title}, ["peer-closed", "two"])
    files.clear()
    write(base, text=GLOO.replace(title, "Another title"))
    assert read(base)["gloo.peer-closed"] == "Another title"
    assert files == ["peer-closed"]
    (base / "a" / "two.yaml").unlink()
    write(base, "b.bad", "id: [")
    assert list(read(base)) == ["gloo.peer-closed"]


def test_the_leaves_have_literals(base: Path) -> None:
    """So that the matcher tests a leaf only where one occurs."""
    for one in read_compiled_files(base, base / "cache"):
        assert all(leaf.literals for leaf in all_leaves(one.match) if leaf.text != "during shutdown")
