"""What a watch said survives it."""

from __future__ import annotations

from pathlib import Path

import pytest

from triage.base.errors import InputError
from triage.model.watch import Episode, News
from triage.watch import memory
from triage.watch.policy import Said

SAID = {0: Said(("known", "cuda.out-of-memory", (3,)), 1, 1763700000.25), 2: Said(("clean", "", ()), 2)}
SILENT = News("silent", 1763700000.5, "rank 3 said nothing for 9.0 s", (3,), hosts=("node1",))
KEPT = memory.Memory(SAID, frozenset({2}), Episode((SILENT,), frozenset({"silent 3"})), (2.0, 2.25))


def test_it_comes_back_for_the_same_files(tmp_path: Path) -> None:
    """Saved and loaded: the same, as long as one of the files is still followed."""
    memory.save(tmp_path / "s" / "m.json", [(1, 2), (1, 3)], KEPT)
    assert memory.load(tmp_path / "s" / "m.json", [(1, 3), (1, 9)]) == KEPT


def test_another_job_under_the_same_paths_starts_anew(tmp_path: Path) -> None:
    """Other files: nothing was said of them."""
    memory.save(tmp_path / "m.json", [(1, 2)], KEPT)
    assert memory.load(tmp_path / "m.json", [(1, 5)]) == memory.Memory()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"version": 1}',
        '{"version": 9, "files": [[1, 2]], "said": {}}',
        '{"version": 3, "files": [[1, 2]], "said": {"x": 1}}',
        '{"version": 3, "files": [[1, 2]], "said": {}, "unsure": [], "episode": {"news": [], "wrong": []}, "base": []}',
    ],
)
def test_a_damaged_memory_is_none(tmp_path: Path, text: str) -> None:
    """Better said twice than not at all."""
    (tmp_path / "m.json").write_text(text)
    assert memory.load(tmp_path / "m.json", [(1, 2)]) == memory.Memory()


def test_a_place_that_cannot_be_written_says_what_to_do(tmp_path: Path) -> None:
    """A file where a directory is needed."""
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError) as caught:
        memory.save(tmp_path / "file" / "m.json", [(1, 2)], KEPT)
    assert "--state" in caught.value.hint


def test_the_place_depends_on_the_paths_alone() -> None:
    """In any order."""
    assert memory.place(["/a", "/b"]) == memory.place(["/b", "/a"]) != memory.place(["/a"])
